#include "base/result.h"

#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <string>
#include <string_view>

namespace cairn {
namespace {

constexpr Error kFull{.code = ErrorCode::kBusy, .sys = 11, .what = "ring"};

Result<int> half_of(int n) {
  if (n % 2 != 0) return kFull;
  return n / 2;
}

Result<int> quarter_of(int n) {
  CAIRN_TRY(const int half, half_of(n));
  CAIRN_TRY(const int quarter, half_of(half));
  return quarter;
}

Status check_quarter(int n, int* steps) {
  CAIRN_TRY_STATUS(quarter_of(n).has_value() ? Status() : Status(kFull));
  ++*steps;
  return {};
}

TEST(Result, HoldsTheValueItWasGiven) {
  const Result<std::string> result = "abc";
  ASSERT_TRUE(result.has_value());
  EXPECT_TRUE(static_cast<bool>(result));
  EXPECT_EQ(*result, "abc");
  EXPECT_EQ(result.value(), "abc");
  EXPECT_EQ(result->size(), 3U);
}

TEST(Result, HoldsTheErrorItWasGivenWithItsNumberAndItsName) {
  const Result<int> result = kFull;
  ASSERT_FALSE(result.has_value());
  EXPECT_EQ(result.error().code, ErrorCode::kBusy);
  EXPECT_EQ(result.error().sys, 11);
  EXPECT_EQ(std::string_view(result.error().what), "ring");
}

TEST(Result, MovesAMoveOnlyValueOut) {
  Result<std::unique_ptr<int>> result = std::make_unique<int>(7);
  const std::unique_ptr<int> taken = std::move(result).value();
  EXPECT_EQ(*taken, 7);
}

TEST(Result, ChangesThroughItsReference) {
  Result<int> result = 1;
  *result += 4;
  EXPECT_EQ(result.value(), 5);
}

TEST(Status, IsOkByDefaultAndAnErrorOtherwise) {
  EXPECT_TRUE(Status().has_value());
  const Status failed = kFull;
  ASSERT_FALSE(failed.has_value());
  EXPECT_EQ(failed.error(), kFull);
}

TEST(Try, GivesTheValuesAndGoesOn) {
  const auto result = quarter_of(12);
  ASSERT_TRUE(result.has_value());
  EXPECT_EQ(*result, 3);
}

TEST(Try, ReturnsTheFirstErrorUnchanged) {
  for (const int odd_at : {5, 6}) {
    const auto result = quarter_of(odd_at);
    ASSERT_FALSE(result.has_value());
    EXPECT_EQ(result.error(), kFull);
  }
}

TEST(TryStatus, RunsWhatFollowsOnlyAfterSuccess) {
  int steps = 0;
  EXPECT_TRUE(check_quarter(4, &steps).has_value());
  EXPECT_EQ(steps, 1);
  EXPECT_FALSE(check_quarter(3, &steps).has_value());
  EXPECT_EQ(steps, 1);
}

TEST(Error, ComparesCodeAndNumberButNotItsWords) {
  EXPECT_EQ((Error{ErrorCode::kIo, 5, "read"}), (Error{ErrorCode::kIo, 5, "write"}));
  EXPECT_FALSE((Error{ErrorCode::kIo, 5, ""}) == (Error{ErrorCode::kIo, 28, ""}));
  EXPECT_FALSE((Error{ErrorCode::kIo, 5, ""}) == (Error{ErrorCode::kNoSpace, 5, ""}));
}

TEST(Error, IsSmallAndTriviallyCopied) {
  static_assert(std::is_trivially_copyable_v<Error>);
  static_assert(sizeof(Error) <= 16);
}

TEST(ErrorCode, HasAWordForEachCode) {
  struct Named {
    ErrorCode code;
    std::string_view name;
  };
  constexpr std::array<Named, 14> kAll = {{{ErrorCode::kInvalid, "invalid"},
                                           {ErrorCode::kNotFound, "not_found"},
                                           {ErrorCode::kExists, "exists"},
                                           {ErrorCode::kBusy, "busy"},
                                           {ErrorCode::kTooLarge, "too_large"},
                                           {ErrorCode::kCorrupt, "corrupt"},
                                           {ErrorCode::kVersion, "version"},
                                           {ErrorCode::kPeerGone, "peer_gone"},
                                           {ErrorCode::kTimeout, "timeout"},
                                           {ErrorCode::kPermission, "permission"},
                                           {ErrorCode::kLocked, "locked"},
                                           {ErrorCode::kUnsupported, "unsupported"},
                                           {ErrorCode::kNoSpace, "no_space"},
                                           {ErrorCode::kIo, "io"}}};
  for (const Named& named : kAll) {
    EXPECT_EQ(std::string_view(error_code_name(named.code)), named.name);
  }
  EXPECT_EQ(std::string_view(error_code_name(static_cast<ErrorCode>(200))), "unknown");
}

}  // namespace
}  // namespace cairn
