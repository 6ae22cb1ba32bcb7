// wake() from other threads; runs under the thread sanitizer.
#include "transport/channel.h"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <thread>
#include <vector>

namespace cairn::transport {
namespace {

// With waits that sleep and that spin.
class PollerWake : public ::testing::TestWithParam<Nanoseconds> {};

INSTANTIATE_TEST_SUITE_P(Spins, PollerWake, ::testing::Values(Nanoseconds(0), Nanoseconds(50'000)));

TEST_P(PollerWake, FromAnotherThreadEndsEachWait) {
  constexpr int kRounds = 2'000;
  const SystemClock clock;
  const auto poller = make_asio_poller(clock, GetParam()).value();
  std::atomic<int> asked{0};
  std::thread other([&] {
    for (int done = 0; done < kRounds; ++done) {
      asked.wait(done);
      poller->wake();
    }
  });
  std::array<Poller::Event, 4> events;
  const MonotonicTime until = clock.now() + std::chrono::seconds(60);
  for (int round = 1; round <= kRounds; ++round) {
    asked.store(round);
    asked.notify_one();
    ASSERT_EQ(poller->wait(events, until), 0U);
  }
  other.join();
  EXPECT_LT(clock.now(), until);
}

TEST_P(PollerWake, FromManyThreadsAtOnceIsNeverLost) {
  constexpr int kThreads = 4;
  constexpr int kWakes = 5'000;
  const SystemClock clock;
  const auto poller = make_asio_poller(clock, GetParam()).value();
  std::atomic<int> given{0};
  std::vector<std::thread> others;
  others.reserve(kThreads);
  for (int i = 0; i < kThreads; ++i) {
    others.emplace_back([&] {
      for (int n = 0; n < kWakes; ++n) {
        given.fetch_add(1);
        poller->wake();
      }
    });
  }
  std::array<Poller::Event, 4> events;
  const MonotonicTime until = clock.now() + std::chrono::seconds(60);
  // Whatever was given before a wake() is seen after the wait() that it ends.
  while (given.load() < kThreads * kWakes) {
    ASSERT_EQ(poller->wait(events, until), 0U);
    ASSERT_LT(clock.now(), until);
  }
  for (std::thread& other : others)
    other.join();
}

}  // namespace
}  // namespace cairn::transport
