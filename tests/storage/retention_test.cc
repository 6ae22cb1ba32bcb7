#include "storage/retention.h"

#include <gtest/gtest.h>

namespace cairn::storage {
namespace {

constexpr MonotonicTime at(std::int64_t ns) {
  return {ns};
}

TEST(Retention, LastsUntilItsTimeAndNotLonger) {
  Retention retention(100_KiB);
  EXPECT_TRUE(retention.retain(1, 8_KiB, at(50)));
  EXPECT_TRUE(retention.is_retained(1, at(49)));
  EXPECT_FALSE(retention.is_retained(1, at(50)));
  EXPECT_FALSE(retention.is_retained(2, at(0)));
}

TEST(Retention, AShorterWishDoesNotCutALongerOne) {
  Retention retention(100_KiB);
  retention.retain(1, 8_KiB, at(50));
  EXPECT_TRUE(retention.retain(1, 8_KiB, at(20)));
  EXPECT_TRUE(retention.is_retained(1, at(49)));
  EXPECT_TRUE(retention.retain(1, 8_KiB, at(80)));
  EXPECT_TRUE(retention.is_retained(1, at(79)));
  EXPECT_EQ(retention.bytes(), 8_KiB);
}

TEST(Retention, TheBudgetIsNeverExceeded) {
  Retention retention(16_KiB);
  EXPECT_TRUE(retention.retain(1, 8_KiB, at(50)));
  EXPECT_TRUE(retention.retain(2, 8_KiB, at(50)));
  EXPECT_FALSE(retention.retain(3, 1_B, at(50)));
  EXPECT_EQ(retention.size(), 2U);
  retention.release(1);
  retention.release(1);
  EXPECT_EQ(retention.bytes(), 8_KiB);
  EXPECT_TRUE(retention.retain(3, 8_KiB, at(50)));
}

TEST(Retention, ForgetsWhatHasRunOutAFewAtATime) {
  Retention retention(100_KiB);
  for (RecordNumber block = 0; block < 10; ++block)
    retention.retain(block, 4_KiB, at(10 + block));
  retention.expire(at(15), 3);
  EXPECT_EQ(retention.size(), 7U);
  retention.expire(at(15), 100);
  EXPECT_EQ(retention.size(), 4U);
  EXPECT_EQ(retention.bytes(), 16_KiB);
  EXPECT_GT(retention.memory(), ByteCount(0));
}

}  // namespace
}  // namespace cairn::storage
