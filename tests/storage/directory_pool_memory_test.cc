#include "storage/directory_pool_memory.h"

#include "storage/pool_directory.h"
#include "tests/support/process_runner.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace cairn::storage {
namespace {

using cairn::testing::TempDir;

constexpr ByteCount kSlab = 4_MiB;

Result<std::unique_ptr<PoolMemory>> open_at(const std::string& path,
                                            std::uint64_t incarnation = 0xAB) {
  return open_directory_pool_memory({.directory = path, .incarnation = incarnation});
}

ErrorCode open_error(const std::string& path) {
  const auto memory = open_at(path);
  EXPECT_FALSE(memory);
  return memory ? ErrorCode::kInvalid : memory.error().code;
}

std::vector<std::string> names_in(const std::string& path) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(path))
    names.push_back(entry.path().filename().string());
  std::sort(names.begin(), names.end());
  return names;
}

unsigned mode_of(const std::string& path) {
  struct stat info {};
  EXPECT_EQ(::stat(path.c_str(), &info), 0);
  return info.st_mode & 0777U;
}

// The exit code of `body` in a child process; what a signal ended gives 128 + signal.
int in_child(const std::function<int()>& body) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(body());
  int status = 0;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

class DirectoryPoolMemoryTest : public ::testing::Test {
 protected:
  std::string pool() const { return directory_.path() + "/pool"; }
  TempDir directory_{"/dev/shm"};
};

TEST_F(DirectoryPoolMemoryTest, MakesItsDirectoryForThisUserAlone) {
  const auto memory = open_at(pool() + "/");
  ASSERT_TRUE(memory);
  EXPECT_EQ(mode_of(pool()), 0700U);
  EXPECT_EQ(names_in(pool()), (std::vector<std::string>{"FORMAT.1", "lock", "sessions", "slabs"}));
}

TEST_F(DirectoryPoolMemoryTest, NamesItsFilesByIncarnation) {
  const auto memory = open_at(pool());
  ASSERT_TRUE(memory);
  ASSERT_TRUE((*memory)->create_slab(2, kSlab));
  ASSERT_TRUE((*memory)->create_records(1_MiB));
  const auto lock = (*memory)->create_session_lock(0x123, "pid 7 (a/b)");
  ASSERT_TRUE(lock);
  EXPECT_EQ(names_in(pool() + "/slabs"), std::vector<std::string>{"00000000000000ab.2"});
  EXPECT_EQ(names_in(pool() + "/sessions"),
            std::vector<std::string>{"0000000000000123.00000000000000ab.pid 7 (a_b)"});
  EXPECT_EQ(mode_of(pool() + "/records.00000000000000ab"), 0600U);
  EXPECT_EQ(mode_of(pool() + "/slabs/00000000000000ab.2"), 0600U);
}

TEST_F(DirectoryPoolMemoryTest, PassesNoDescriptorThroughExec) {
  const auto memory = open_at(pool());
  ASSERT_TRUE(memory);
  ASSERT_TRUE((*memory)->create_slab(0, kSlab));
  const auto lock = (*memory)->create_session_lock(1, "pid 1");
  ASSERT_TRUE(lock);
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code gone;
    const std::string target = std::filesystem::read_symlink(entry.path(), gone).string();
    if (target.find(directory_.path()) == std::string::npos) continue;
    const int fd = std::stoi(entry.path().filename().string());
    EXPECT_NE(::fcntl(fd, F_GETFD) & FD_CLOEXEC, 0) << target;
  }
}

TEST_F(DirectoryPoolMemoryTest, LeavesOnlyItsEmptyFoldersBehind) {
  {
    const auto memory = open_at(pool());
    ASSERT_TRUE(memory);
    ASSERT_TRUE((*memory)->create_slab(0, kSlab));
    ASSERT_TRUE((*memory)->create_records(1_MiB));
    ASSERT_TRUE((*memory)->create_session_lock(1, "pid 1"));
  }
  EXPECT_EQ(names_in(pool()), (std::vector<std::string>{"FORMAT.1", "lock", "sessions", "slabs"}));
  EXPECT_TRUE(names_in(pool() + "/slabs").empty());
  EXPECT_TRUE(names_in(pool() + "/sessions").empty());
}

TEST_F(DirectoryPoolMemoryTest, NeedsTheParentOfItsDirectory) {
  EXPECT_EQ(open_error(directory_.path() + "/no/pool"), ErrorCode::kNotFound);
}

TEST_F(DirectoryPoolMemoryTest, RefusesOtherFileSystemsAndMakesNothingThere) {
  EXPECT_EQ(open_error("/proc/cairn-test-pool"), ErrorCode::kUnsupported);
  EXPECT_EQ(open_error("/proc"), ErrorCode::kUnsupported);
}

TEST_F(DirectoryPoolMemoryTest, RefusesADirectoryThatItMayNotWrite) {
  ASSERT_EQ(::mkdir(pool().c_str(), 0555), 0);
  ASSERT_EQ(::chmod(directory_.path().c_str(), 0755), 0);
  const int code = in_child([this] {
    if (::geteuid() == 0 && ::setresuid(65534, 65534, 65534) != 0) return 100;
    const auto memory = open_at(pool());
    return memory ? 101 : static_cast<int>(memory.error().code);
  });
  EXPECT_EQ(code, static_cast<int>(ErrorCode::kPermission));
}

TEST_F(DirectoryPoolMemoryTest, RefusesANewerFormat) {
  ASSERT_EQ(::mkdir(pool().c_str(), 0700), 0);
  const std::ofstream format(pool() + "/FORMAT.2");
  EXPECT_EQ(open_error(pool()), ErrorCode::kVersion);
}

TEST_F(DirectoryPoolMemoryTest, RefusesAFormatThatIsNone) {
  ASSERT_EQ(::mkdir(pool().c_str(), 0700), 0);
  const std::ofstream format(pool() + "/FORMAT.x");
  EXPECT_EQ(open_error(pool()), ErrorCode::kCorrupt);
}

TEST_F(DirectoryPoolMemoryTest, SaysThatSystemCallsFail) {
  ASSERT_EQ(::mkdir(pool().c_str(), 0700), 0);
  ASSERT_EQ(::mkdir((pool() + "/lock").c_str(), 0700), 0);
  EXPECT_EQ(open_error(pool()), ErrorCode::kIo);
}

TEST_F(DirectoryPoolMemoryTest, SaysThatTheFileSystemIsFullInsteadOfDying) {
  const int code = in_child([this] {
    if (::unshare(CLONE_NEWNS) != 0) return 77;
    if (::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) return 77;
    const std::string small = directory_.path();
    if (::mount("tmpfs", small.c_str(), "tmpfs", 0, "size=8m") != 0) return 77;
    const auto memory = open_at(pool());
    if (!memory) return 100;
    const auto slab = (*memory)->create_slab(0, 16_MiB);
    if (!slab) return slab.error().code == ErrorCode::kNoSpace ? 0 : 101;
    const Status status = (*memory)->populate(0, 0_B, 16_MiB);
    if (status) return 102;
    if (status.error().code != ErrorCode::kNoSpace) return 103;
    (*memory)->discard_slab(0);
    if (!(*memory)->create_slab(1, 4_MiB)) return 104;
    return (*memory)->populate(1, 0_B, 4_MiB) ? 0 : 105;
  });
  if (code == 77) GTEST_SKIP() << "needs the right to mount";
  EXPECT_EQ(code, 0);
}

void send_descriptor(int socket, int fd) {
  char byte = 'x';
  iovec data{.iov_base = &byte, .iov_len = 1};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  msghdr message{};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof(control);
  cmsghdr* const header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(sizeof(int));
  std::memcpy(CMSG_DATA(header), &fd, sizeof(fd));
  ::sendmsg(socket, &message, 0);
}

OwnedFd receive_descriptor(int socket) {
  char byte = 0;
  iovec data{.iov_base = &byte, .iov_len = 1};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  msghdr message{};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof(control);
  if (::recvmsg(socket, &message, MSG_CMSG_CLOEXEC) != 1) return {};
  const cmsghdr* const header = CMSG_FIRSTHDR(&message);
  if (header == nullptr) return {};
  int fd = -1;
  std::memcpy(&fd, CMSG_DATA(header), sizeof(fd));
  return OwnedFd(fd);
}

TEST_F(DirectoryPoolMemoryTest, WaitsForTheClientsOfADaemonThatWasKilled) {
  int sockets[2] = {-1, -1};
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets), 0);
  const int code = in_child([&] {
    auto memory = open_at(pool(), 0xDEAD);
    if (!memory || !(*memory)->create_slab(0, kSlab)) return 100;
    if (!(*memory)->create_records(1_MiB)) return 101;
    const auto lock = (*memory)->create_session_lock(1, "pid 7 (client)");
    if (!lock) return 102;
    send_descriptor(sockets[1], lock->get());
    ::raise(SIGKILL);
    return 103;
  });
  ASSERT_EQ(code, 128 + SIGKILL);
  OwnedFd client = receive_descriptor(sockets[0]);
  ::close(sockets[0]);
  ::close(sockets[1]);
  ASSERT_GE(client.get(), 0);

  const auto memory = open_at(pool());
  ASSERT_TRUE(memory);
  auto left = (*memory)->reclaim_predecessors();
  ASSERT_TRUE(left);
  EXPECT_EQ(left->bytes, kSlab);
  EXPECT_EQ(left->holders, std::vector<std::string>{"pid 7 (client) session 0000000000000001"});
  EXPECT_FALSE(std::filesystem::exists(pool() + "/records.000000000000dead"));

  client = OwnedFd();
  left = (*memory)->reclaim_predecessors();
  ASSERT_TRUE(left);
  EXPECT_EQ(left->bytes, 0_B);
  EXPECT_TRUE(names_in(pool() + "/slabs").empty());
  EXPECT_TRUE(names_in(pool() + "/sessions").empty());
}

TEST_F(DirectoryPoolMemoryTest, RemovesWhatADaemonLeftThatHadNoClient) {
  const int code = in_child([this] {
    auto memory = open_at(pool(), 0xDEAD);
    if (!memory || !(*memory)->create_slab(0, kSlab)) return 100;
    ::raise(SIGKILL);
    return 101;
  });
  ASSERT_EQ(code, 128 + SIGKILL);
  const auto memory = open_at(pool());
  ASSERT_TRUE(memory);
  ASSERT_TRUE((*memory)->reclaim_predecessors());
  EXPECT_TRUE(names_in(pool() + "/slabs").empty());
}

TEST_F(DirectoryPoolMemoryTest, LeavesForeignFilesAlone) {
  { ASSERT_TRUE(open_at(pool())); }
  const std::ofstream one(pool() + "/slabs/notes.txt");
  const std::ofstream two(pool() + "/sessions/notes.txt");
  const auto memory = open_at(pool());
  ASSERT_TRUE(memory);
  const auto left = (*memory)->reclaim_predecessors();
  ASSERT_TRUE(left);
  EXPECT_EQ(left->bytes, 0_B);
  EXPECT_EQ(names_in(pool() + "/slabs"), std::vector<std::string>{"notes.txt"});
  EXPECT_EQ(names_in(pool() + "/sessions"), std::vector<std::string>{"notes.txt"});
}

TEST(PoolFileNames, RoundTrip) {
  const SlabFileName slab{.incarnation = 0xFEDCBA9876543210, .slab = 4'000'000'000};
  const auto slab_back = SlabFileName::parse(slab.text());
  ASSERT_TRUE(slab_back);
  EXPECT_EQ(slab_back->incarnation, slab.incarnation);
  EXPECT_EQ(slab_back->slab, slab.slab);
  const SessionFileName session{.id = 7, .incarnation = 9, .description = "pid 1 (x.y)"};
  const auto session_back = SessionFileName::parse(session.text());
  ASSERT_TRUE(session_back);
  EXPECT_EQ(session_back->id, session.id);
  EXPECT_EQ(session_back->incarnation, session.incarnation);
  EXPECT_EQ(session_back->description, session.description);
  EXPECT_EQ(parse_records_file_name(records_file_name(0xAB)), 0xAB);
}

TEST(PoolFileNames, AreRefusedWhenTheyAreNone) {
  for (const char* const name : {"",
                                 "x",
                                 "0000000000000001",
                                 "0000000000000001.",
                                 "0000000000000001.x",
                                 "0000000000000001.1x",
                                 "000000000000000g.1",
                                 "0000000000000001-1"})
    EXPECT_EQ(SlabFileName::parse(name).has_value(), false) << name;
  for (const char* const name : {"",
                                 "0000000000000001",
                                 "0000000000000001.",
                                 "0000000000000001.0000000000000002",
                                 "0000000000000001.x.y"})
    EXPECT_EQ(SessionFileName::parse(name).has_value(), false) << name;
  for (const char* const name : {"records.", "records.1", "records.00000000000000ab.x", "x"})
    EXPECT_EQ(parse_records_file_name(name), std::nullopt) << name;
}

TEST(PoolFileNames, KeepLongDescriptionsWithinAFileName) {
  const SessionFileName session{.id = 1, .incarnation = 2, .description = std::string(1000, 'a')};
  EXPECT_LE(session.text().size(), 255U);
}

}  // namespace
}  // namespace cairn::storage
