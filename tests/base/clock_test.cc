#include "base/clock.h"

#include "tests/support/manual_clock.h"

#include <gtest/gtest.h>

#include <limits>

namespace cairn {
namespace {

using testing::ManualClock;
using namespace std::chrono_literals;

TEST(MonotonicTime, MovesByDurationsAndMeasuresThem) {
  constexpr MonotonicTime kStart{1'000};
  EXPECT_EQ((kStart + 5us).ns, 6'000);
  EXPECT_EQ((kStart + -1us).ns, 0);
  EXPECT_EQ((kStart + 5us) - kStart, 5us);
  EXPECT_LT(kStart, kStart + 1ns);
}

TEST(MonotonicTime, StopsAtTheEndsOfItsRange) {
  constexpr MonotonicTime kStart{1'000};
  EXPECT_EQ((kStart + Nanoseconds::max()).ns, std::numeric_limits<std::int64_t>::max());
  EXPECT_EQ((MonotonicTime{-1'000} + Nanoseconds::min()).ns,
            std::numeric_limits<std::int64_t>::min());
}

TEST(Deadline, PassesAtItsMomentAndNotBefore) {
  ManualClock clock;
  const Deadline deadline = Deadline::after(clock, 10ms);
  EXPECT_FALSE(deadline.has_passed(clock.now()));
  EXPECT_EQ(deadline.remaining(clock.now()), 10ms);
  clock.advance(10ms - 1ns);
  EXPECT_FALSE(deadline.has_passed(clock.now()));
  EXPECT_EQ(deadline.remaining(clock.now()), 1ns);
  clock.advance(1ns);
  EXPECT_TRUE(deadline.has_passed(clock.now()));
  EXPECT_EQ(deadline.remaining(clock.now()), 0ns);
}

TEST(Deadline, NeverHasANegativeRemainder) {
  ManualClock clock;
  const Deadline deadline = Deadline::after(clock, 0ns);
  EXPECT_TRUE(deadline.has_passed(clock.now()));
  clock.advance(1h);
  EXPECT_EQ(deadline.remaining(clock.now()), 0ns);
}

TEST(Deadline, ForEverNeverPasses) {
  ManualClock clock;
  const Deadline deadline = Deadline::after(clock, Nanoseconds::max());
  clock.advance(24h * 365);
  EXPECT_FALSE(deadline.has_passed(clock.now()));
}

TEST(Deadline, OrdersByItsMoment) {
  ManualClock clock;
  EXPECT_LT(Deadline::after(clock, 1ms), Deadline::after(clock, 2ms));
  EXPECT_EQ(Deadline::after(clock, 1ms).at(), clock.now() + 1ms);
}

TEST(SystemClock, NeverGoesBackAndKnowsTheYear) {
  const SystemClock clock;
  MonotonicTime before = clock.now();
  for (int i = 0; i < 1'000; ++i) {
    const MonotonicTime now = clock.now();
    ASSERT_GE(now, before);
    before = now;
  }
  constexpr std::uint64_t kStartOf2023Ms = 1'672'531'200'000;
  EXPECT_GT(clock.unix_ms(), kStartOf2023Ms);
}

TEST(ManualClock, StandsStillUntilItIsMoved) {
  ManualClock clock;
  const MonotonicTime start = clock.now();
  const std::uint64_t wall = clock.unix_ms();
  EXPECT_EQ(clock.now(), start);
  clock.advance(1500ms);
  EXPECT_EQ(clock.now() - start, 1500ms);
  EXPECT_EQ(clock.unix_ms(), wall + 1500);
}

}  // namespace
}  // namespace cairn
