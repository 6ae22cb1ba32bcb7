#include "base/check.h"

#include <gtest/gtest.h>

#include <csignal>

namespace cairn {
namespace {

TEST(CheckDeathTest, NamesConditionAndPlaceAndAborts) {
  const int frames = 3;
  EXPECT_EXIT(CAIRN_CHECK(frames == 4),
              ::testing::KilledBySignal(SIGABRT),
              "check_failed condition=\"frames == 4\" at=.*check_test\\.cc:[0-9]+");
}

TEST(Check, EvaluatesItsConditionOnceAndGoesOn) {
  int calls = 0;
  CAIRN_CHECK(++calls == 1);
  EXPECT_EQ(calls, 1);
}

TEST(Check, IsOneStatement) {
  bool taken = false;
  // NOLINTNEXTLINE(readability-braces-around-statements): whether the macro needs them is the test.
  if (!taken) CAIRN_CHECK(true);
  // NOLINTNEXTLINE(readability-braces-around-statements)
  else
    taken = true;
  EXPECT_FALSE(taken);
}

}  // namespace
}  // namespace cairn
