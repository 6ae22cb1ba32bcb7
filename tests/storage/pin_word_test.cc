#include "storage/pin_word.h"

#include "base/atomics.h"

#include <gtest/gtest.h>

namespace cairn::storage {
namespace {

using PinWord = BasicPinWord<StdAtomics>;

TEST(PinWord, AllZeroBytesAreAFreeRecordInNoLife) {
  const PinWord word;
  EXPECT_EQ(word.view().state, RecordState::kFree);
  EXPECT_EQ(word.view().generation, 0U);
  EXPECT_EQ(word.view().pins, 0U);
}

TEST(PinWord, OnlyALivingRecordOfThatGenerationIsPinned) {
  PinWord word;
  const std::uint32_t life = word.reserve();
  EXPECT_FALSE(word.pin(life));
  word.publish();
  EXPECT_FALSE(word.pin(life + 1));
  EXPECT_FALSE(word.pin(0));
  EXPECT_TRUE(word.pin(life));
  EXPECT_EQ(word.view().pins, 1U);
}

TEST(PinWord, APinnedRecordIsNotEvicted) {
  PinWord word;
  const std::uint32_t life = word.reserve();
  word.publish();
  ASSERT_TRUE(word.pin(life));
  EXPECT_FALSE(word.evict());
  EXPECT_EQ(word.unpin(life), Unpinned::kStays);
  EXPECT_TRUE(word.evict());
  EXPECT_FALSE(word.pin(life));
}

TEST(PinWord, TheLastUnpinOfADoomedRecordSaysSoOnce) {
  PinWord word;
  const std::uint32_t life = word.reserve();
  word.publish();
  ASSERT_TRUE(word.pin(life));
  ASSERT_TRUE(word.pin(life));
  EXPECT_EQ(word.doom(), 2U);
  EXPECT_FALSE(word.pin(life));
  EXPECT_EQ(word.unpin(life), Unpinned::kStays);
  EXPECT_EQ(word.unpin(life), Unpinned::kLastOfDoomed);
  EXPECT_EQ(word.unpin(life), Unpinned::kNotPinned);
  word.free_doomed();
  EXPECT_EQ(word.view().state, RecordState::kFree);
}

TEST(PinWord, DoomingAnUnpinnedRecordLeavesTheFreeingToTheCaller) {
  PinWord word;
  word.reserve();
  word.publish();
  EXPECT_EQ(word.doom(), 0U);
  word.free_doomed();
  EXPECT_EQ(word.view().state, RecordState::kFree);
}

TEST(PinWord, ARefOfAnEarlierLifeIsHarmless) {
  PinWord word;
  const std::uint32_t first = word.reserve();
  word.publish();
  ASSERT_TRUE(word.evict());
  const std::uint32_t second = word.reserve();
  word.publish();
  ASSERT_NE(first, second);
  ASSERT_TRUE(word.pin(second));
  EXPECT_FALSE(word.pin(first));
  EXPECT_EQ(word.unpin(first), Unpinned::kNotPinned);
  EXPECT_EQ(word.view().pins, 1U);
}

TEST(PinWord, AnAbortedReservationIsFreeAtOnce) {
  PinWord word;
  const std::uint32_t life = word.reserve();
  word.abort();
  EXPECT_EQ(word.view().state, RecordState::kFree);
  EXPECT_EQ(word.reserve(), life + 1);
}

TEST(PinWord, AStillLookSeesTheEndOfALife) {
  PinWord word;
  const std::uint32_t life = word.reserve();
  EXPECT_FALSE(word.is_still(life));
  word.publish();
  EXPECT_TRUE(word.is_still(life));
  word.doom();
  EXPECT_FALSE(word.is_still(life));
}

TEST(PinWordDeathTest, StepsOutOfTurnAreBugs) {
  PinWord word;
  EXPECT_DEATH(word.publish(), "check_failed");
  EXPECT_DEATH(word.free_doomed(), "check_failed");
  EXPECT_DEATH(word.evict(), "check_failed");
  word.reserve();
  EXPECT_DEATH(word.reserve(), "check_failed");
}

}  // namespace
}  // namespace cairn::storage
