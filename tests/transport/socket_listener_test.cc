#include "transport/control/socket_listener.h"

#include "base/checksum.h"
#include "tests/support/process_runner.h"
#include "tests/transport/socket_fixture.h"
#include "transport/control/socket_address.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <string>

namespace cairn::transport {
namespace {

using cairn::testing::TempDir;
using testing::open_descriptors;

constexpr uid_t kNobody = 65'534;

// Root may do everything, so a test of refusals gives its rights up for a while.
class Unprivileged {
 public:
  Unprivileged() {
    if (was_root_) CAIRN_CHECK(::seteuid(kNobody) == 0);
  }
  ~Unprivileged() {
    if (was_root_) CAIRN_CHECK(::seteuid(0) == 0);
  }
  Unprivileged(const Unprivileged&) = delete;
  Unprivileged& operator=(const Unprivileged&) = delete;

 private:
  bool was_root_ = ::geteuid() == 0;
};

class SocketListenerTest : public ::testing::Test {
 protected:
  Address unix_address() const { return Address::parse("unix:" + path_).value(); }
  // A socket's file as a daemon leaves it that was killed.
  void leave_stale_socket() const {
    const OwnedFd socket(::socket(AF_UNIX, SOCK_STREAM, 0));
    const SocketAddress name = unix_socket_address(path_).value();
    ASSERT_EQ(::bind(socket.get(), &name.any, name.bytes), 0);
    ASSERT_EQ(::listen(socket.get(), 1), 0);
  }
  bool is_there() const {
    struct stat file {};
    return ::lstat(path_.c_str(), &file) == 0;
  }
  ErrorCode code_of(const Address& address) const {
    const auto listener = listen(address);
    EXPECT_FALSE(listener);
    return listener ? ErrorCode::kInvalid : listener.error().code;
  }

  SystemClock clock_;
  TempDir directory_;
  std::string path_ = directory_ / "socket";
};

TEST_F(SocketListenerTest, CreatesItsSocketForItsOwnerAlone) {
  const mode_t old = ::umask(0);
  const auto listener = listen(unix_address());
  ::umask(old);
  ASSERT_TRUE(listener);
  struct stat file {};
  ASSERT_EQ(::stat(path_.c_str(), &file), 0);
  EXPECT_TRUE(S_ISSOCK(file.st_mode));
  EXPECT_EQ(file.st_mode & 0777U, 0600U);
}

TEST_F(SocketListenerTest, RemovesItsSocketAtTheEnd) {
  auto listener = listen(unix_address());
  ASSERT_TRUE(listener);
  EXPECT_TRUE(is_there());
  listener->reset();
  EXPECT_FALSE(is_there());
}

TEST_F(SocketListenerTest, LeavesASocketAloneThatAnotherPutInItsPlace) {
  auto listener = listen(unix_address());
  ASSERT_TRUE(listener);
  ASSERT_EQ(::unlink(path_.c_str()), 0);
  leave_stale_socket();
  listener->reset();
  EXPECT_TRUE(is_there());
}

TEST_F(SocketListenerTest, ReplacesASocketThatNobodyListensOn) {
  leave_stale_socket();
  const auto listener = listen(unix_address());
  ASSERT_TRUE(listener);
  EXPECT_TRUE(make_connector(clock_)->connect(unix_address(), Milliseconds(1'000)));
}

TEST_F(SocketListenerTest, RefusesAPathOnWhichSomebodyListens) {
  const auto first = listen(unix_address());
  ASSERT_TRUE(first);
  EXPECT_EQ(code_of(unix_address()), ErrorCode::kExists);
  EXPECT_TRUE(is_there());
}

TEST_F(SocketListenerTest, NeverRemovesAFileThatIsNoSocket) {
  ASSERT_TRUE(OwnedFd(::open(path_.c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0600)).is_open());
  EXPECT_EQ(code_of(unix_address()), ErrorCode::kExists);
  EXPECT_TRUE(is_there());
}

TEST_F(SocketListenerTest, RefusesAPathThatAnotherProcessIsJustTaking) {
  // The name is the lock's: docs would call it private, the test pins it.
  const OwnedFd lock(::socket(AF_UNIX, SOCK_STREAM, 0));
  const std::uint64_t hash = xxh3_64(std::as_bytes(std::span(path_)));
  const auto name = abstract_socket_address("cairn.listen." + std::to_string(hash));
  ASSERT_EQ(::bind(lock.get(), &name.any, name.bytes), 0);
  EXPECT_EQ(code_of(unix_address()), ErrorCode::kExists);
}

TEST_F(SocketListenerTest, SaysThatItMayNotCreateTheSocket) {
  ASSERT_EQ(::chmod(directory_.path().c_str(), 0500), 0);
  const Unprivileged unprivileged;
  EXPECT_EQ(code_of(unix_address()), ErrorCode::kPermission);
}

TEST_F(SocketListenerTest, SaysThatTheDirectoryIsMissing) {
  path_ = directory_ / "none/socket";
  const auto listener = listen(unix_address());
  ASSERT_FALSE(listener);
  EXPECT_EQ(listener.error().code, ErrorCode::kIo);
  EXPECT_EQ(listener.error().sys, ENOENT);
}

TEST_F(SocketListenerTest, RefusesAddressesThatAreNone) {
  Address too_long;
  too_long.is_unix = true;
  too_long.path = std::string(200, 'p');
  EXPECT_EQ(code_of(too_long), ErrorCode::kInvalid);
  EXPECT_EQ(code_of(Address{}), ErrorCode::kInvalid);
}

TEST_F(SocketListenerTest, ChoosesAPortAndSaysWhich) {
  const auto listener = listen(Address::parse("127.0.0.1:0").value());
  ASSERT_TRUE(listener);
  EXPECT_NE((*listener)->address().port, 0);
  EXPECT_EQ(code_of((*listener)->address()), ErrorCode::kExists);
}

TEST_F(SocketListenerTest, ListensOnIpv6) {
  const auto listener = listen(Address::parse("[::1]:0").value());
  if (!listener) GTEST_SKIP() << "no IPv6 on this machine";
  const auto channel = make_connector(clock_)->connect((*listener)->address(), Milliseconds(1'000));
  ASSERT_TRUE(channel);
  EXPECT_EQ((*channel)->peer().name, (*listener)->address().to_string());
}

TEST_F(SocketListenerTest, RefusesAConnectionWhenNoDescriptorIsLeftAndGoesOn) {
  const auto listener = listen(unix_address());
  ASSERT_TRUE(listener);
  // Once with descriptors left: a sanitizer opens some at the first call.
  EXPECT_EQ((*listener)->accept().value(), nullptr);
  const auto connector = make_connector(clock_);
  const auto refused = connector->connect(unix_address(), Milliseconds(1'000));
  ASSERT_TRUE(refused);
  rlimit old{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &old), 0);
  rlimit full = old;
  full.rlim_cur = open_descriptors();
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &full), 0);
  // Gaps below the limit would still be free.
  std::vector<OwnedFd> fill;
  for (OwnedFd fd(::dup(0)); fd.is_open(); fd = OwnedFd(::dup(0)))
    fill.push_back(std::move(fd));
  const auto accepted = (*listener)->accept();
  fill.clear();
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &old), 0);

  ASSERT_FALSE(accepted);
  EXPECT_EQ(accepted.error().code, ErrorCode::kIo);
  EXPECT_EQ(accepted.error().sys, EMFILE);
  ASSERT_TRUE(connector->wait(**refused, clock_.now() + std::chrono::seconds(5)));
  EXPECT_EQ((*refused)->receive().error().code, ErrorCode::kPeerGone);
  const auto later = connector->connect(unix_address(), Milliseconds(1'000));
  ASSERT_TRUE(later);
  EXPECT_NE((*listener)->accept().value(), nullptr);
}

TEST_F(SocketListenerTest, SaysThatItIsClosedOnceItIsShutDown) {
  const auto listener = listen(Address::parse("127.0.0.1:0").value());
  ASSERT_TRUE(listener);
  ASSERT_EQ(::shutdown((*listener)->fd(), SHUT_RDWR), 0);
  const auto accepted = (*listener)->accept();
  ASSERT_FALSE(accepted);
  EXPECT_EQ(accepted.error().code, ErrorCode::kPeerGone);
}

TEST_F(SocketListenerTest, ConnectingSaysWhatIsWrong) {
  const auto connector = make_connector(clock_);
  const auto code = [&](const Address& address) {
    const auto channel = connector->connect(address, Milliseconds(50));
    return channel ? ErrorCode::kExists : channel.error().code;
  };
  EXPECT_EQ(code(unix_address()), ErrorCode::kPeerGone);
  leave_stale_socket();
  EXPECT_EQ(code(unix_address()), ErrorCode::kPeerGone);
  EXPECT_EQ(code(Address{}), ErrorCode::kInvalid);
  Address too_long = unix_address();
  too_long.path = std::string(200, 'p');
  EXPECT_EQ(code(too_long), ErrorCode::kIo);
  const auto listener = listen(unix_address());
  ASSERT_TRUE(listener);
  const Unprivileged unprivileged;
  EXPECT_EQ(code(unix_address()), ErrorCode::kPermission);
}

TEST_F(SocketListenerTest, ConnectingGivesUpInTimeWhenTheBacklogIsFull) {
  const OwnedFd socket(::socket(AF_UNIX, SOCK_STREAM, 0));
  const SocketAddress name = unix_socket_address(path_).value();
  ASSERT_EQ(::bind(socket.get(), &name.any, name.bytes), 0);
  ASSERT_EQ(::listen(socket.get(), 0), 0);
  const auto connector = make_connector(clock_);
  const auto first = connector->connect(unix_address(), Milliseconds(1'000));
  ASSERT_TRUE(first);
  const MonotonicTime begun = clock_.now();
  const auto second = connector->connect(unix_address(), Milliseconds(30));
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, ErrorCode::kTimeout);
  EXPECT_GE(clock_.now() - begun, Milliseconds(30));
}

}  // namespace
}  // namespace cairn::transport
