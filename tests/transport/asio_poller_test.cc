// What the real poller promises beside the contract.
#include "tests/support/channel_world.h"
#include "tests/support/process_runner.h"
#include "tests/transport/socket_fixture.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/eventfd.h>
#include <sys/time.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <vector>

namespace cairn::transport {
namespace {

using cairn::testing::make_frame;
using cairn::testing::TempDir;
using testing::HostilePair;
using testing::open_descriptors;

class AsioPoller : public ::testing::Test {
 protected:
  MonotonicTime after(Nanoseconds delay) const { return clock_.now() + delay; }
  std::size_t wait(Nanoseconds patience) { return poller_->wait(events_, after(patience)); }

  SystemClock clock_;
  std::unique_ptr<Poller> poller_ = make_asio_poller(clock_).value();
  std::array<Poller::Event, 8> events_;
};

constexpr Nanoseconds kShort = std::chrono::milliseconds(5);
constexpr Nanoseconds kLong = std::chrono::seconds(10);

TEST_F(AsioPoller, LetsGoOfDescriptorsWithoutClosingThem) {
  const OwnedFd removed(::eventfd(0, EFD_CLOEXEC));
  const OwnedFd kept(::eventfd(0, EFD_CLOEXEC));
  ASSERT_TRUE(poller_->add_descriptor(removed.get(), 1));
  ASSERT_TRUE(poller_->add_descriptor(kept.get(), 2));
  EXPECT_EQ(wait(kShort), 0U);
  poller_->remove_descriptor(removed.get());
  poller_.reset();
  EXPECT_GE(::fcntl(removed.get(), F_GETFD), 0);
  EXPECT_GE(::fcntl(kept.get(), F_GETFD), 0);
}

TEST_F(AsioPoller, HoldsNoDescriptorAfterItsEnd) {
  const std::size_t before = open_descriptors();
  auto second = make_asio_poller(clock_);
  ASSERT_TRUE(second);
  second->reset();
  EXPECT_EQ(open_descriptors(), before);
}

TEST_F(AsioPoller, ReportsWhatCannotBeWaitedOnOnceAndDoesNotSpin) {
  const TempDir directory;
  const OwnedFd file(::open((directory / "file").c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0600));
  ASSERT_TRUE(poller_->add_descriptor(file.get(), 1));
  EXPECT_EQ(wait(kLong), 1U);
  EXPECT_EQ(wait(kShort), 0U);
  poller_->remove_descriptor(file.get());
}

TEST_F(AsioPoller, ReportsAHangUpToOneWhoDoesNotWantToRead) {
  HostilePair pair;
  ASSERT_TRUE(poller_->add(*pair.channel, 1));
  poller_->want_readable(*pair.channel, false);
  testing::send_raw(pair.raw.get(), make_frame(1, 10), {});
  EXPECT_EQ(wait(kShort), 0U);
  pair.raw.reset();
  for (int i = 0; i < 2; ++i) {
    ASSERT_EQ(wait(kLong), 1U);
    EXPECT_EQ(events_[0].token, 1U);
  }
  poller_->remove(*pair.channel);
}

TEST_F(AsioPoller, ForgetsAnEventThatWasCollectedAndNotYetReported) {
  std::vector<OwnedFd> fds;
  for (Poller::Token token = 1; token <= 4; ++token) {
    fds.emplace_back(::eventfd(1, EFD_CLOEXEC));
    ASSERT_TRUE(poller_->add_descriptor(fds.back().get(), token));
  }
  // A time that has passed makes it collect all and report one.
  Poller::Event first;
  ASSERT_EQ(poller_->wait({&first, 1}, MonotonicTime{}), 1U);
  for (const OwnedFd& fd : fds)
    poller_->remove_descriptor(fd.get());
  EXPECT_EQ(wait(kShort), 0U);
}

TEST_F(AsioPoller, GoesOnWaitingWhenASignalComes) {
  struct sigaction action {};
  action.sa_handler = [](int) {};
  ASSERT_EQ(::sigaction(SIGALRM, &action, nullptr), 0);
  const itimerval timer{{0, 0}, {0, 3'000}};
  ASSERT_EQ(::setitimer(ITIMER_REAL, &timer, nullptr), 0);
  const MonotonicTime until = after(std::chrono::milliseconds(20));
  EXPECT_EQ(poller_->wait(events_, until), 0U);
  EXPECT_GE(clock_.now(), until);
}

Poller* woken_by_signal = nullptr;

TEST_F(AsioPoller, IsWokenFromASignalHandler) {
  woken_by_signal = poller_.get();
  struct sigaction action {};
  action.sa_handler = [](int) { woken_by_signal->wake(); };
  ASSERT_EQ(::sigaction(SIGALRM, &action, nullptr), 0);
  const itimerval timer{{0, 0}, {0, 3'000}};
  ASSERT_EQ(::setitimer(ITIMER_REAL, &timer, nullptr), 0);
  const MonotonicTime until = after(kLong);
  EXPECT_EQ(poller_->wait(events_, until), 0U);
  EXPECT_LT(clock_.now(), until);
}

}  // namespace
}  // namespace cairn::transport
