#include "base/units.h"

#include <gtest/gtest.h>

#include <limits>
#include <type_traits>
#include <unordered_set>

namespace cairn {
namespace {

using FrameId = StrongId<struct FrameTag, std::uint32_t>;
using LendId = StrongId<struct LendTag>;
constexpr std::uint64_t kMax = std::numeric_limits<std::uint64_t>::max();

TEST(StrongId, DoesNotTurnIntoANumberOrAnotherIdByItself) {
  static_assert(!std::is_convertible_v<FrameId, std::uint32_t>);
  static_assert(!std::is_convertible_v<std::uint32_t, FrameId>);
  static_assert(!std::is_constructible_v<FrameId, LendId>);
  static_assert(sizeof(FrameId) == sizeof(std::uint32_t));
  EXPECT_EQ(FrameId(7).value(), 7U);
}

TEST(StrongId, ComparesAndOrdersByItsNumber) {
  EXPECT_EQ(LendId(3), LendId(3));
  EXPECT_NE(LendId(3), LendId(4));
  EXPECT_LT(LendId(3), LendId(4));
  EXPECT_EQ(LendId(), LendId(0));
}

TEST(StrongId, IsAKeyOfAHashTable) {
  const std::unordered_set<LendId> ids = {LendId(1), LendId(2), LendId(1)};
  EXPECT_EQ(ids.size(), 2U);
  EXPECT_TRUE(ids.contains(LendId(2)));
}

TEST(ByteCount, AddsSubtractsScalesAndDivides) {
  EXPECT_EQ(4_KiB + 4_KiB, 8_KiB);
  EXPECT_EQ(1_MiB - 4_KiB, ByteCount(1'044'480));
  EXPECT_EQ(256_KiB * 4, 1_MiB);
  EXPECT_EQ(1_GiB / 256_KiB, 4096U);
  ByteCount used = 4_KiB;
  used += 4_KiB;
  used -= 1_KiB;
  EXPECT_EQ(used, 7_KiB);
}

TEST(ByteCount, LiteralsArePowersOfTwo) {
  EXPECT_EQ((3_B).value(), 3U);
  EXPECT_EQ((1_KiB).value(), 1ULL << 10U);
  EXPECT_EQ((1_MiB).value(), 1ULL << 20U);
  EXPECT_EQ((1_GiB).value(), 1ULL << 30U);
}

TEST(ByteCount, IsNotMixedWithPlainNumbers) {
  static_assert(!std::is_convertible_v<std::uint64_t, ByteCount>);
  static_assert(!std::is_convertible_v<ByteCount, std::uint64_t>);
}

TEST(RoundUp, GivesTheNextMultiple) {
  EXPECT_EQ(round_up(0, 4096), 0U);
  EXPECT_EQ(round_up(1, 4096), 4096U);
  EXPECT_EQ(round_up(4096, 4096), 4096U);
  EXPECT_EQ(round_up(4097, 4096), 8192U);
}

TEST(DivideUp, CountsTheLastPartAndNeverWraps) {
  EXPECT_EQ(divide_up(0, 4), 0U);
  EXPECT_EQ(divide_up(1, 4), 1U);
  EXPECT_EQ(divide_up(4, 4), 1U);
  EXPECT_EQ(divide_up(5, 4), 2U);
  EXPECT_EQ(divide_up(kMax, 1), kMax);
  EXPECT_EQ(divide_up(kMax, 4096), 1ULL << 52U);
}

TEST(BlockLimits, AgreeWithOneAnother) {
  EXPECT_EQ(kBlockBytesMax, 16_MiB);
  EXPECT_EQ(kChunkBytes * kChunksMax, kBlockBytesMax);
  EXPECT_EQ(kHeaderBytes, 4_KiB);
  EXPECT_EQ(kExtentsMax, 4U);
}

}  // namespace
}  // namespace cairn
