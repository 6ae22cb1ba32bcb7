#include "base/block_status.h"

#include <gtest/gtest.h>

#include <array>

namespace cairn {
namespace {

// The numbers are on the wire: this list may grow at its end and never change.
TEST(BlockStatus, NumbersAndNamesArePinned) {
  constexpr std::array<std::string_view, 15> kNames = {"ok",
                                                       "exists",
                                                       "miss",
                                                       "cut",
                                                       "busy",
                                                       "declined",
                                                       "timeout",
                                                       "cancelled",
                                                       "corrupt",
                                                       "peer_lost",
                                                       "quota",
                                                       "forbidden",
                                                       "wrong_namespace",
                                                       "too_large",
                                                       "invalid"};
  ASSERT_EQ(kNames.size(), kBlockStatusCount);
  for (std::uint8_t number = 0; number < kBlockStatusCount; ++number) {
    const auto status = block_status_from(number);
    ASSERT_TRUE(status.has_value());
    EXPECT_EQ(static_cast<std::uint8_t>(*status), number);
    EXPECT_EQ(block_status_name(*status), kNames[number]);
  }
}

TEST(BlockStatus, EnumeratorsHaveTheirNumbers) {
  EXPECT_EQ(static_cast<int>(BlockStatus::kOk), 0);
  EXPECT_EQ(static_cast<int>(BlockStatus::kExists), 1);
  EXPECT_EQ(static_cast<int>(BlockStatus::kMiss), 2);
  EXPECT_EQ(static_cast<int>(BlockStatus::kCut), 3);
  EXPECT_EQ(static_cast<int>(BlockStatus::kBusy), 4);
  EXPECT_EQ(static_cast<int>(BlockStatus::kDeclined), 5);
  EXPECT_EQ(static_cast<int>(BlockStatus::kTimeout), 6);
  EXPECT_EQ(static_cast<int>(BlockStatus::kCancelled), 7);
  EXPECT_EQ(static_cast<int>(BlockStatus::kCorrupt), 8);
  EXPECT_EQ(static_cast<int>(BlockStatus::kPeerLost), 9);
  EXPECT_EQ(static_cast<int>(BlockStatus::kQuota), 10);
  EXPECT_EQ(static_cast<int>(BlockStatus::kForbidden), 11);
  EXPECT_EQ(static_cast<int>(BlockStatus::kWrongNamespace), 12);
  EXPECT_EQ(static_cast<int>(BlockStatus::kTooLarge), 13);
  EXPECT_EQ(static_cast<int>(BlockStatus::kInvalid), 14);
}

TEST(BlockStatus, NumbersBeyondTheListAreRefused) {
  for (int number = kBlockStatusCount; number <= 255; ++number) {
    EXPECT_FALSE(block_status_from(static_cast<std::uint8_t>(number)).has_value());
    EXPECT_EQ(block_status_name(static_cast<BlockStatus>(number)), "unknown");
  }
}

TEST(BusyReason, NumbersAndNamesArePinned) {
  constexpr std::array<std::string_view, 5> kNames = {
      "none", "frames", "lent_limit", "window", "rate"};
  ASSERT_EQ(kNames.size(), kBusyReasonCount);
  for (std::uint8_t number = 0; number < kBusyReasonCount; ++number)
    EXPECT_EQ(busy_reason_name(*busy_reason_from(number)), kNames[number]);
  EXPECT_EQ(static_cast<int>(BusyReason::kFrames), 1);
  EXPECT_EQ(static_cast<int>(BusyReason::kLentLimit), 2);
  EXPECT_EQ(static_cast<int>(BusyReason::kWindow), 3);
  EXPECT_EQ(static_cast<int>(BusyReason::kRate), 4);
}

TEST(BusyReason, NumbersBeyondTheListAreRefused) {
  EXPECT_FALSE(busy_reason_from(5).has_value());
  EXPECT_FALSE(busy_reason_from(255).has_value());
  EXPECT_EQ(busy_reason_name(static_cast<BusyReason>(5)), "unknown");
}

}  // namespace
}  // namespace cairn
