#include "base/spin_gate.h"

#include <gtest/gtest.h>

namespace cairn {
namespace {

constexpr Nanoseconds kLimit(50'000);

TEST(SpinGate, SleepsUntilAWaitWasShort) {
  SpinGate gate(kLimit);
  EXPECT_EQ(gate.budget(), Nanoseconds(0));
  gate.waited(kLimit, true);
  EXPECT_EQ(gate.budget(), kLimit);
}

TEST(SpinGate, ForgivesTheTimeOfAWakeUp) {
  SpinGate gate(kLimit);
  gate.waited(2 * kLimit, true);
  EXPECT_EQ(gate.budget(), kLimit);
  gate.waited(2 * kLimit + Nanoseconds(1), true);
  EXPECT_EQ(gate.budget(), Nanoseconds(0));
}

TEST(SpinGate, SleepsAfterAWaitThatNothingEnded) {
  SpinGate gate(kLimit);
  gate.waited(kLimit, true);
  gate.waited(kLimit, false);
  EXPECT_EQ(gate.budget(), Nanoseconds(0));
}

TEST(SpinGate, WithoutALimitNeverSpins) {
  SpinGate gate;
  gate.waited(Nanoseconds(0), true);
  EXPECT_EQ(gate.budget(), Nanoseconds(0));
}

}  // namespace
}  // namespace cairn
