#include "transport/process.h"

#include "tests/support/channel_world.h"
#include "tests/support/process_runner.h"
#include "tests/transport/socket_fixture.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <functional>

namespace cairn::transport {
namespace {

using testing::HostilePair;

// A forked child that does nothing until it is ended, and its pidfd. Killed and reaped at the end.
class Child {
 public:
  Child() {
    pid_ = ::fork();
    CAIRN_CHECK(pid_ >= 0);
    if (pid_ == 0) {
      for (;;)
        ::pause();
    }
    pidfd_ = OwnedFd(static_cast<int>(::syscall(SYS_pidfd_open, pid_, 0)));
    CAIRN_CHECK(pidfd_.is_open());
  }
  ~Child() {
    if (is_reaped_) return;
    ::kill(pid_, SIGKILL);
    reap();
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  int pidfd() const { return pidfd_.get(); }
  std::uint32_t pid() const { return static_cast<std::uint32_t>(pid_); }
  void signal(int number) { ASSERT_EQ(::kill(pid_, number), 0); }
  // Waits until the child has changed as waitid(2) says, leaving it to be reaped.
  void await(int change) {
    siginfo_t info{};
    ASSERT_EQ(::waitid(P_PID, static_cast<id_t>(pid_), &info, change | WNOWAIT), 0);
  }
  void reap() {
    ASSERT_EQ(::waitpid(pid_, nullptr, 0), pid_);
    is_reaped_ = true;
  }

 private:
  pid_t pid_ = -1;
  OwnedFd pidfd_;
  bool is_reaped_ = false;
};

Channel::Peer peer_of(std::uint32_t pid) {
  return {.pid = pid, .uid = 0, .name = ""};
}

TEST(HasExited, SaysNoOfALivingProcess) {
  const Child child;
  EXPECT_FALSE(has_exited(child.pidfd()));
}

TEST(HasExited, SaysNoOfAStoppedProcessAndOfOneThatGoesOn) {
  Child child;
  child.signal(SIGSTOP);
  child.await(WSTOPPED);
  EXPECT_FALSE(has_exited(child.pidfd()));
  child.signal(SIGCONT);
  child.await(WCONTINUED);
  EXPECT_FALSE(has_exited(child.pidfd()));
}

TEST(HasExited, SaysYesOfAKilledProcessBeforeAndAfterItIsReaped) {
  Child child;
  child.signal(SIGKILL);
  child.await(WEXITED);
  EXPECT_TRUE(has_exited(child.pidfd()));
  child.reap();
  EXPECT_TRUE(has_exited(child.pidfd()));
}

TEST(HasExited, SaysYesOfAProcessKilledWhileItWasStopped) {
  Child child;
  child.signal(SIGSTOP);
  child.await(WSTOPPED);
  child.signal(SIGKILL);
  child.await(WEXITED);
  EXPECT_TRUE(has_exited(child.pidfd()));
}

TEST(ProcessWatch, IsToldOfADeathByThePoller) {
  const SystemClock clock;
  const auto poller = make_asio_poller(clock).value();
  Child child;
  ASSERT_TRUE(poller->add_descriptor(child.pidfd(), 9));
  std::array<Poller::Event, 2> events;
  EXPECT_EQ(poller->wait(events, clock.now() + std::chrono::milliseconds(5)), 0U);
  child.signal(SIGKILL);
  ASSERT_EQ(poller->wait(events, clock.now() + std::chrono::seconds(10)), 1U);
  EXPECT_EQ(events[0].token, 9U);
  poller->remove_descriptor(child.pidfd());
}

TEST(ProcessWatch, AcceptsTheOwnPidfdThatAPeerSends) {
  const auto watch = make_process_watch();
  HostilePair pair;
  const auto own = watch->open_own();
  ASSERT_TRUE(own);
  EXPECT_EQ(::fcntl(*own, F_GETFD), FD_CLOEXEC);
  testing::send_raw(pair.raw.get(), cairn::testing::make_frame(1, 10), {&*own, 1});
  ASSERT_TRUE(pair.channel->receive().value().has_value());
  const int taken = pair.channel->take_descriptor();
  EXPECT_TRUE(watch->verify(taken, pair.channel->peer()));
  EXPECT_FALSE(watch->has_exited(taken));
  watch->close(taken);
  watch->close(*own);
}

TEST(ProcessWatch, RefusesThePidfdOfAnotherProcess) {
  const Child child;
  EXPECT_TRUE(verify_pidfd(child.pidfd(), peer_of(child.pid())));
  for (const std::uint32_t pid : {child.pid() + 1, 0U, 1U}) {
    const Status verified = verify_pidfd(child.pidfd(), peer_of(pid));
    ASSERT_FALSE(verified);
    EXPECT_EQ(verified.error().code, ErrorCode::kPermission);
  }
}

TEST(ProcessWatch, AcceptsAZombieAndRefusesAProcessThatIsReaped) {
  Child child;
  child.signal(SIGKILL);
  child.await(WEXITED);
  EXPECT_TRUE(verify_pidfd(child.pidfd(), peer_of(child.pid())));
  child.reap();
  const Status verified = verify_pidfd(child.pidfd(), peer_of(child.pid()));
  ASSERT_FALSE(verified);
  EXPECT_EQ(verified.error().code, ErrorCode::kPeerGone);
}

TEST(ProcessWatch, RefusesDescriptorsThatAreNoPidfd) {
  const cairn::testing::TempDir directory;
  const OwnedFd file(::open((directory / "f").c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0600));
  const OwnedFd event(::eventfd(0, EFD_CLOEXEC));
  const OwnedFd proc(::open("/proc/self", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  // A file whose name is that of a pidfd's link.
  const std::string liar = directory / "anon_inode:[pidfd]";
  const OwnedFd named(::open(liar.c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0600));
  const auto self = static_cast<std::uint32_t>(::getpid());
  for (const int fd : {file.get(), event.get(), proc.get(), named.get(), -1, 1 << 20}) {
    const Status verified = verify_pidfd(fd, peer_of(self));
    ASSERT_FALSE(verified) << fd;
    EXPECT_EQ(verified.error().code, ErrorCode::kInvalid) << fd;
  }
}

TEST(ProcessWatch, RefusesThePidfdOfAThread) {
  // PIDFD_THREAD, of kernel 6.9 and later: it would end before the process does.
  const long fd = ::syscall(SYS_pidfd_open, ::getpid(), O_EXCL);
  if (fd < 0) GTEST_SKIP() << "this kernel has no pidfds of threads";
  const OwnedFd owner(static_cast<int>(fd));
  const Status verified =
      verify_pidfd(owner.get(), peer_of(static_cast<std::uint32_t>(::getpid())));
  ASSERT_FALSE(verified);
  EXPECT_EQ(verified.error().code, ErrorCode::kInvalid);
}

}  // namespace
}  // namespace cairn::transport
