// Real cairnd processes: how they start, refuse to start, and stop.
#include "storage/key_value.h"
#include "tests/support/process_runner.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

namespace cairn::testing {
namespace {

constexpr Milliseconds kStart{30'000};
constexpr Milliseconds kStop{10'000};
// A wrong configuration is told within a second; the rest is for a machine under load.
constexpr Milliseconds kRefusal{1'000};

constexpr int kExitConfig = 2;
constexpr int kExitUnavailable = 3;

class DaemonStart : public ::testing::Test {
 protected:
  std::vector<std::string> command(std::vector<std::string> settings = {}) const {
    std::vector<std::string> all = {"data_dir=" + (directory_ / "data"),
                                    "listen.unix=" + socket_,
                                    "listen.tcp=",
                                    "admin.listen=",
                                    "pool.dir=" + pool_.path(),
                                    "tiers.dram.size=64MiB"};
    all.insert(all.end(), settings.begin(), settings.end());
    std::vector<std::string> words = {sibling_program("cairnd")};
    for (std::string& setting : all) {
      words.push_back("--set");
      words.push_back(std::move(setting));
    }
    return words;
  }
  // Running and ready, or a test failure.
  std::unique_ptr<Process> serve(std::vector<std::string> settings = {}) {
    auto daemon = Process::start(command(std::move(settings)));
    if (daemon == nullptr) return nullptr;
    const auto line = daemon->wait_for_line("ready", kStart);
    EXPECT_TRUE(line.has_value()) << daemon->errors();
    ready_ = line.value_or("");
    return daemon;
  }
  // Ends by itself with `code`; its stderr.
  std::string refused(int code, std::vector<std::string> settings) {
    const Finished finished = run_to_end({.command = command(std::move(settings)),
                                          .environment = {},
                                          .user = {},
                                          .address_space_max = {}});
    EXPECT_EQ(finished.code, code) << finished.errors;
    EXPECT_EQ(finished.errors.find("ready"), std::string::npos);
    return finished.errors;
  }
  std::string write_config(std::string_view text) {
    std::ofstream(directory_ / "cairnd.toml") << text;
    return directory_ / "cairnd.toml";
  }
  // An address of the ready line: "tcp", "admin".
  std::string address(const std::string& name) const {
    const std::size_t at = ready_.find(" " + name + "=");
    if (at == std::string::npos) return "";
    const std::size_t start = at + name.size() + 2;
    return ready_.substr(start, ready_.find(' ', start) - start);
  }
  // Files (not directories) under pool.dir but those that stay.
  std::vector<std::string> pool_files() const {
    std::vector<std::string> files;
    for (const auto& file : std::filesystem::recursive_directory_iterator(pool_.path())) {
      const std::string name = file.path().filename();
      if (file.is_directory() || name == "lock" || name.starts_with("FORMAT.")) continue;
      files.push_back(file.path());
    }
    return files;
  }

  TempDir directory_;
  TempDir pool_{"/dev/shm"};
  std::string socket_ = directory_ / "run/cairnd.sock";
  std::string ready_;
};

void expect_part(const std::string& text, std::string_view part) {
  EXPECT_NE(text.find(part), std::string::npos) << "no '" << part << "' in: " << text;
}

int connect_to(const std::string& address) {
  sockaddr_in to{};
  to.sin_family = AF_INET;
  const std::size_t colon = address.rfind(':');
  to.sin_port = htons(static_cast<std::uint16_t>(std::stoi(address.substr(colon + 1))));
  ::inet_pton(AF_INET, address.substr(0, colon).c_str(), &to.sin_addr);
  const int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const void* const raw = &to;
  if (::connect(socket, static_cast<const sockaddr*>(raw), sizeof to) == 0) return socket;
  ::close(socket);
  return -1;
}

std::string http_get(const std::string& address, const std::string& path) {
  const int socket = connect_to(address);
  if (socket < 0) return "no connection";
  const std::string request =
      "GET " + path + " HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
  EXPECT_EQ(::send(socket, request.data(), request.size(), MSG_NOSIGNAL),
            static_cast<ssize_t>(request.size()));
  std::string reply;
  std::array<char, 4096> buffer{};
  for (ssize_t got = 0; (got = ::recv(socket, buffer.data(), buffer.size(), 0)) > 0;) {
    reply.append(buffer.data(), static_cast<std::size_t>(got));
  }
  ::close(socket);
  return reply;
}

TEST_F(DaemonStart, ChecksAGoodConfigurationAndOpensNothing) {
  std::vector<std::string> words = command();
  words.emplace_back("--check");

  const auto daemon = Process::start(words);

  EXPECT_EQ(daemon->wait_exit(kRefusal), 0) << daemon->errors();
  EXPECT_EQ(daemon->output(), "the configuration is good\n");
  EXPECT_FALSE(std::filesystem::exists(directory_ / "data"));
  EXPECT_TRUE(std::filesystem::is_empty(pool_.path()));
}

TEST_F(DaemonStart, NamesEveryMistakeOfAFileWithinASecond) {
  const std::string file =
      write_config("[tiers.dram]\nsise = '1GiB'\n[listen]\ntcp = '0.0.0.0:7000'\n");

  for (const char* mode : {"--check", "--set=log.level=error"}) {
    const auto daemon = Process::start({sibling_program("cairnd"), "--config", file, mode});
    EXPECT_EQ(daemon->wait_exit(kRefusal), kExitConfig);
    expect_part(daemon->errors(),
                file + ":2: tiers.dram.sise: no such key; the nearest is tiers.dram.size");
    expect_part(daemon->errors(), file + ":4: listen.tcp = \"0.0.0.0:7000\": it can be reached");
  }
}

TEST_F(DaemonStart, RefusesAnUnknownOption) {
  const Finished finished = run_to_end({.command = {sibling_program("cairnd"), "--conifg"},
                                        .environment = {},
                                        .user = {},
                                        .address_space_max = {}});

  EXPECT_EQ(finished.code, kExitConfig);
  expect_part(finished.errors, "--conifg");
}

TEST_F(DaemonStart, TellsItsAddressesAndServesMetrics) {
  const auto daemon = serve({"listen.tcp=127.0.0.1:0", "admin.listen=127.0.0.1:0"});
  ASSERT_NE(daemon, nullptr);

  EXPECT_EQ(ready_.rfind("ready unix=" + socket_ + " tcp=127.0.0.1:", 0), 0U) << ready_;
  EXPECT_TRUE(ready_.ends_with(" pool=64MiB")) << ready_;
  expect_part(http_get(address("admin"), "/healthz"), "200 OK");
  const std::string metrics = http_get(address("admin"), "/metrics");
  expect_part(metrics, "cairn_tier_capacity_bytes{tier=\"dram\"} 67108864\n");
  expect_part(metrics, "cairn_build_info{version=");
  const int tcp = connect_to(address("tcp"));
  EXPECT_GE(tcp, 0);
  ::close(tcp);
  struct stat socket {};
  ASSERT_EQ(::stat(socket_.c_str(), &socket), 0);
  EXPECT_EQ(socket.st_mode & 0777U, 0600U);
}

TEST_F(DaemonStart, StopsWhenAskedAndLeavesNothing) {
  for (const int signal : {SIGTERM, SIGINT, SIGHUP}) {
    const auto daemon = serve();
    ASSERT_NE(daemon, nullptr);
    EXPECT_FALSE(pool_files().empty());

    daemon->signal(signal);

    EXPECT_EQ(daemon->wait_exit(kStop), 0) << daemon->errors();
    EXPECT_EQ(pool_files(), std::vector<std::string>());
    EXPECT_FALSE(std::filesystem::exists(socket_));
  }
}

TEST_F(DaemonStart, StartsAgainAfterKillNineAndTidiesUp) {
  {
    const auto killed = serve();
    ASSERT_NE(killed, nullptr);
    killed->kill_now();
  }
  EXPECT_FALSE(pool_files().empty());

  const auto daemon = serve();
  ASSERT_NE(daemon, nullptr);
  daemon->signal(SIGTERM);

  EXPECT_EQ(daemon->wait_exit(kStop), 0);
  EXPECT_EQ(pool_files(), std::vector<std::string>());
}

TEST_F(DaemonStart, RefusesADataDirectoryThatIsInUse) {
  const auto first = serve();
  ASSERT_NE(first, nullptr);
  const TempDir other_pool("/dev/shm");

  expect_part(refused(kExitUnavailable,
                      {"pool.dir=" + other_pool.path(), "listen.unix=" + (directory_ / "s")}),
              "data_dir = " + (directory_ / "data") + " (--set): in use by another daemon, pid " +
                  std::to_string(first->pid()) + " (cairnd)");
}

TEST_F(DaemonStart, RefusesAPoolDirectoryThatIsInUse) {
  const auto first = serve();
  ASSERT_NE(first, nullptr);

  expect_part(refused(kExitUnavailable,
                      {"data_dir=" + (directory_ / "other"), "listen.unix=" + (directory_ / "s")}),
              "pool.dir = " + pool_.path() + " (--set): in use by another daemon, pid " +
                  std::to_string(first->pid()) + " (cairnd)");
  EXPECT_TRUE(first->is_running());
}

TEST_F(DaemonStart, RefusesASocketThatAnotherListensOn) {
  const auto first = serve();
  ASSERT_NE(first, nullptr);
  const TempDir other_pool("/dev/shm");

  expect_part(refused(1, {"pool.dir=" + other_pool.path(), "data_dir=" + (directory_ / "other")}),
              "listen.unix = " + socket_ + " (--set): another process listens there");
  EXPECT_TRUE(std::filesystem::exists(socket_));
}

TEST_F(DaemonStart, RefusesAPortThatIsTaken) {
  const auto first = serve({"listen.tcp=127.0.0.1:0", "admin.listen=127.0.0.1:0"});
  ASSERT_NE(first, nullptr);
  const TempDir other_pool("/dev/shm");
  const std::vector<std::string> apart = {"pool.dir=" + other_pool.path(),
                                          "data_dir=" + (directory_ / "other"),
                                          "listen.unix=" + (directory_ / "s")};

  for (const char* key : {"listen.tcp", "admin.listen"}) {
    const std::string taken = address(std::string_view(key) == "listen.tcp" ? "tcp" : "admin");
    std::vector<std::string> settings = apart;
    settings.push_back(std::string(key) + "=" + taken);
    expect_part(refused(1, settings),
                std::string(key) + " = " + taken + " (--set): another process listens there");
  }
}

TEST_F(DaemonStart, RefusesDirectoriesItMayNotWrite) {
  const bool is_root = ::geteuid() == 0;
  const TempDir closed;
  const TempDir closed_pool("/dev/shm");
  const TempDir open_pool("/dev/shm");
  ASSERT_EQ(::chmod(closed.path().c_str(), 0555), 0);
  ASSERT_EQ(::chmod(closed_pool.path().c_str(), 0555), 0);
  ASSERT_EQ(::chmod(open_pool.path().c_str(), 0777), 0);
  ASSERT_EQ(::chmod(directory_.path().c_str(), 0777), 0);
  const auto run = [&](std::vector<std::string> settings) {
    return run_to_end({.command = command(std::move(settings)),
                       .environment = {},
                       .user = is_root ? std::optional<uid_t>(65'534) : std::nullopt,
                       .address_space_max = {}});
  };

  const Finished data = run({"data_dir=" + (closed / "data"), "pool.dir=" + (open_pool / "pool")});
  const Finished pool = run({"pool.dir=" + (closed_pool / "pool")});
  if (data.code == 127) GTEST_SKIP() << "another user cannot run " << sibling_program("cairnd");

  EXPECT_EQ(data.code, kExitUnavailable);
  expect_part(data.errors, "data_dir = " + (closed / "data") + " (--set): this user may not write");
  EXPECT_EQ(pool.code, kExitUnavailable);
  expect_part(pool.errors, "pool.dir = " + (closed_pool / "pool"));
  expect_part(pool.errors, "this user may not write there");
}

TEST_F(DaemonStart, RefusesAPoolOnAnotherFileSystem) {
  const std::string errors = refused(kExitUnavailable, {"pool.dir=/proc/cairn-pool"});

  expect_part(errors, "pool.dir = /proc/cairn-pool (--set): its file system is neither tmpfs nor");
}

TEST_F(DaemonStart, RefusesNewerFormats) {
  {
    std::ofstream(pool_ / "FORMAT.99") << "";
    expect_part(refused(kExitUnavailable, {}), "written by a newer version of cairnd");
    std::filesystem::remove(pool_ / "FORMAT.99");
  }
  std::filesystem::create_directory(directory_ / "data");
  {
    const auto store =
        storage::open_rocksdb({.directory = directory_ / "data/rocksdb", .in_memory = false});
    ASSERT_TRUE(store.has_value());
    ASSERT_TRUE(
        (*store)->write({{storage::Table::kMeta, "FORMAT", std::string("\x63\0\0\0", 4)}}, true));
  }

  const std::string errors = refused(kExitUnavailable, {});

  expect_part(errors, "data_dir = " + (directory_ / "data/rocksdb"));
  expect_part(errors, "written by a newer version of cairnd");
}

TEST_F(DaemonStart, RefusesAPoolThatDoesNotFitTheMachine) {
  const std::string errors = refused(kExitConfig, {"tiers.dram.size=16TiB"});

  expect_part(errors, "tiers.dram.size = 16TiB (--set): does not fit: ");
  expect_part(errors, " needed, the ");
  expect_part(errors, " leaves ");
  EXPECT_EQ(pool_files(), std::vector<std::string>());
}

TEST_F(DaemonStart, RefusesAPoolBeyondItsAddressSpace) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "a sanitizer's shadow memory is beyond every limit";
#endif
  const Finished finished = run_to_end({.command = command({"tiers.dram.size=1GiB"}),
                                        .environment = {},
                                        .user = {},
                                        .address_space_max = std::uint64_t{1} << 30U});

  EXPECT_EQ(finished.code, kExitConfig) << finished.errors;
  expect_part(finished.errors, "tiers.dram.size = 1GiB (--set): does not fit: ");
}

TEST_F(DaemonStart, EndsWithOneLineAtABusError) {
  const auto daemon = serve();
  ASSERT_NE(daemon, nullptr);

  daemon->signal(SIGBUS);

  EXPECT_EQ(daemon->wait_exit(kStop), 1);
  expect_part(daemon->errors(), "cairnd: bus error outside of any mapped file\n");
}

TEST_F(DaemonStart, EndsAtOnceAtASecondSignal) {
  const auto daemon = serve();
  ASSERT_NE(daemon, nullptr);

  // Both are there when it wakes up: the lower number is the request, the other one the second.
  daemon->signal(SIGSTOP);
  daemon->signal(SIGTERM);
  daemon->signal(SIGINT);
  daemon->signal(SIGCONT);

  EXPECT_EQ(daemon->wait_exit(kStop), 128 + SIGTERM) << daemon->errors();
}

}  // namespace
}  // namespace cairn::testing
