// What the daemon asks of the process it runs in, each in a child of its own.
#include "transport/process.h"

#include "server/bus_error.h"
#include "server/client_process.h"
#include "server/process_setup.h"
#include "server/start_failure.h"
#include "tests/support/process_runner.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>

namespace cairn::server {
namespace {

using testing::TempDir;

constexpr std::size_t kPage = 4'096;

// In a child: maps a page of `path`, cuts the file and touches the page.
[[noreturn]] void touch_cut_page(const std::string& path) {
  install_bus_error_handler();
  const int file = ::open(path.c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0600);
  if (file < 0 || ::ftruncate(file, kPage) != 0) ::_exit(90);
  void* const page = ::mmap(nullptr, kPage, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (page == MAP_FAILED || ::ftruncate(file, 0) != 0) ::_exit(91);
  *static_cast<volatile char*>(page) = 1;
  ::_exit(92);
}

TEST(BusErrorHandlerDeathTest, NamesTheFileThatWasCutAndEnds) {
  const TempDir directory("/dev/shm");
  const std::string path = directory / "slab.7";

  EXPECT_EXIT(touch_cut_page(path),
              ::testing::ExitedWithCode(kExitFailed),
              "a mapped file was truncated by somebody, its bytes are gone: " + path);
}

TEST(BusErrorHandlerDeathTest, EndsOnABusErrorOfAnotherKind) {
  const auto raise_it = [] {
    install_bus_error_handler();
    ::raise(SIGBUS);
  };
  EXPECT_EXIT(
      raise_it(), ::testing::ExitedWithCode(kExitFailed), "bus error outside of any mapped file");
}

TEST(StopSignalsDeathTest, ComeOnceInOrderAndThenEndTheProcess) {
  const auto stop_twice = [] {
    hold_stop_signals();
    ::raise(SIGINT);
    wait_for_stop_signal();
    ::raise(SIGTERM);
    ::_exit(90);
  };
  EXPECT_EXIT(stop_twice(), ::testing::KilledBySignal(SIGTERM), "");
}

TEST(StopSignalsDeathTest, LeaveABrokenPipeToTheCaller) {
  const auto write_to_nobody = [] {
    hold_stop_signals();
    int ends[2] = {-1, -1};
    if (::pipe2(ends, O_CLOEXEC) != 0) ::_exit(90);
    ::close(ends[0]);
    ::_exit(::write(ends[1], "x", 1) < 0 && errno == EPIPE ? 0 : 91);
  };
  EXPECT_EXIT(write_to_nobody(), ::testing::ExitedWithCode(0), "");
}

TEST(DescriptorLimitDeathTest, IsRaisedToTheHardLimit) {
  const auto raise_it = [] {
    rlimit limit{};
    if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) ::_exit(90);
    limit.rlim_cur = 16;
    if (::setrlimit(RLIMIT_NOFILE, &limit) != 0) ::_exit(91);
    raise_descriptor_limit();
    if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) ::_exit(92);
    ::_exit(limit.rlim_cur == limit.rlim_max ? 0 : 93);
  };
  EXPECT_EXIT(raise_it(), ::testing::ExitedWithCode(0), "");
}

TEST(PidfdProcess, KnowsTheDescriptorOfThePeer) {
  PidfdProcess processes;
  const Result<int> own = transport::open_own_pidfd();
  ASSERT_TRUE(own.has_value());
  const int file = ::open("/dev/null", O_RDONLY | O_CLOEXEC);

  const auto pid = static_cast<std::uint32_t>(::getpid());
  EXPECT_TRUE(processes.is_process_of(*own, {.pid = pid, .name = ""}));
  EXPECT_FALSE(processes.is_process_of(*own, {.pid = pid + 1, .name = ""}));
  EXPECT_FALSE(processes.has_exited(*own));
  EXPECT_FALSE(processes.is_process_of(file, {.pid = pid, .name = ""}));
  EXPECT_FALSE(processes.is_process_of(-1, {.pid = pid, .name = ""}));
  processes.close(*own);
  processes.close(file);
  EXPECT_EQ(::fcntl(*own, F_GETFD), -1);
}

TEST(PidfdProcess, SeesThatAProcessHasEnded) {
  PidfdProcess processes;
  const pid_t child = ::fork();
  if (child == 0) {
    ::pause();
    ::_exit(0);
  }
  ASSERT_GT(child, 0);
  const int pidfd = static_cast<int>(::syscall(SYS_pidfd_open, child, 0));
  const transport::Channel::Peer peer{.pid = static_cast<std::uint32_t>(child), .name = ""};
  ASSERT_TRUE(processes.is_process_of(pidfd, peer));
  EXPECT_FALSE(processes.has_exited(pidfd));

  ::kill(child, SIGKILL);
  ASSERT_EQ(::waitpid(child, nullptr, 0), child);

  EXPECT_TRUE(processes.has_exited(pidfd));
  EXPECT_FALSE(processes.is_process_of(pidfd, peer));
  processes.close(pidfd);
}

}  // namespace
}  // namespace cairn::server
