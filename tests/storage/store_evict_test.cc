#include "tests/storage/store_fixture.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>

namespace cairn::storage {
namespace {

using Chain = std::vector<std::uint64_t>;

// Fills the tier of `f` with blocks 1 to `count`, 1 the coldest.
void fill(StoreFixture& f, std::uint64_t count) {
  for (std::uint64_t i = 1; i <= count; ++i)
    ASSERT_EQ(f.put_one(i), BlockStatus::kOk);
}

TEST(StoreEvict, AFullStoreDropsItsColdestBlock) {
  StoreFixture f({.frames = 4});
  fill(f, 4);
  EXPECT_EQ(f.put_one(5), BlockStatus::kOk);
  EXPECT_FALSE(f.has(1));
  for (std::uint64_t i = 2; i <= 5; ++i)
    EXPECT_TRUE(f.has(i)) << i;
  EXPECT_EQ(f.store().stats().evictions, 1U);
  EXPECT_EQ(f.store().stats().evicted_bytes, ByteCount(8192));
}

TEST(StoreEvict, PinsAtTheColdEndAreSteppedOver) {
  StoreFixture f({.frames = 8});
  fill(f, 8);
  std::vector<BlockRef> pins;
  for (std::uint64_t i = 1; i <= 5; ++i)
    pins.push_back(f.pin(i)->ref);
  for (std::uint64_t i = 9; i <= 30; ++i)
    ASSERT_EQ(f.put_one(i), BlockStatus::kOk);
  for (std::uint64_t i = 1; i <= 5; ++i)
    EXPECT_TRUE(f.has(i)) << i;
  for (const BlockRef& ref : pins)
    f.store().unpin(ref);
  ASSERT_EQ(f.put_one(31), BlockStatus::kOk);
  EXPECT_FALSE(f.has(1));
}

TEST(StoreEvict, BusyFramesMeansThatEveryFrameIsPinnedOrReserved) {
  StoreFixture f({.frames = 4});
  fill(f, 2);
  const auto first = f.pin(1);
  const auto second = f.pin(2);
  const ReserveOutcome third = f.reserve_one(3);
  const ReserveOutcome fourth = f.reserve_one(4);
  ASSERT_EQ(fourth.status, BlockStatus::kOk);
  const ReserveOutcome refused = f.reserve_one(5);
  EXPECT_EQ(refused.status, BlockStatus::kBusy);
  EXPECT_EQ(refused.reason, BusyReason::kFrames);
  EXPECT_EQ(f.store().stats().resident_blocks, 2U);
  f.store().unpin(first->ref);
  EXPECT_EQ(f.put_one(5), BlockStatus::kOk);
  EXPECT_FALSE(f.has(1));
  f.store().unpin(second->ref);
  f.store().abort(third.ref);
  f.store().abort(fourth.ref);
}

TEST(StoreEvict, ABusyChainIsCutBehindTheItemThatFoundNoRoom) {
  StoreFixture f({.frames = 2});
  const std::vector<ReserveOutcome> out = f.reserve(Chain{1, 2, 3, 4});
  EXPECT_EQ(out[1].status, BlockStatus::kOk);
  EXPECT_EQ(out[2].status, BlockStatus::kBusy);
  EXPECT_EQ(out[3].status, BlockStatus::kCut);
}

TEST(StoreEvict, ASetGoesOnBehindABlockThatFoundNoRoom) {
  StoreFixture f({.frames = 2});
  const std::array<ReserveItem, 3> items = {ReserveItem{StoreFixture::digest(1), 4096},
                                            ReserveItem{StoreFixture::digest(2), 3 * 4096},
                                            ReserveItem{StoreFixture::digest(3), 4096}};
  std::array<ReserveOutcome, 3> out;
  f.store().reserve({.scope = f.scope(), .items = items, .is_chain = false}, out);
  EXPECT_EQ(out[0].status, BlockStatus::kOk);
  EXPECT_EQ(out[1].status, BlockStatus::kBusy);
  EXPECT_EQ(out[2].status, BlockStatus::kOk);
}

TEST(StoreEvict, ALargeBlockMayDropMoreThanOneStayUnderTheMutexAllows) {
  StoreFixture f({.frames = 3000});
  fill(f, 3000);
  ASSERT_EQ(f.put_one(5000, 2000 * 8192), BlockStatus::kOk);
  EXPECT_TRUE(f.has(5000));
  EXPECT_GE(f.store().stats().evictions, 2000U);
  EXPECT_TRUE(f.has(3000));
}

TEST(StoreEvict, AChainIsNotEvictedForItsOwnContinuation) {
  StoreFixture f({.frames = 6});
  f.put(Chain{1, 2, 3});
  f.put(Chain{10, 11, 12});
  f.put(Chain{1, 2, 3, 4, 5});
  for (std::uint64_t i = 1; i <= 5; ++i)
    EXPECT_TRUE(f.has(i)) << i;
}

TEST(StoreEvict, EvictingBytesDropsTheColdestUntilEnoughIsFree) {
  StoreFixture f({.frames = 8});
  fill(f, 8);
  EXPECT_EQ(f.store().evict(8_KiB * 3 - 1_B), 8_KiB * 3);
  EXPECT_FALSE(f.has(3));
  EXPECT_TRUE(f.has(4));
  const auto pinned = f.pin(4);
  EXPECT_EQ(f.store().evict(1_GiB), 8_KiB * 4);
  EXPECT_TRUE(f.has(4));
  EXPECT_EQ(f.store().evict(ByteCount(0)), ByteCount(0));
  f.store().unpin(pinned->ref);
}

TEST(StoreRetain, ARetainedBlockStaysWhileOthersCanGo) {
  StoreFixture f({.frames = 8, .retained_share = 0.5});
  fill(f, 8);
  EXPECT_EQ(f.store().retain(f.scope(), StoreFixture::digest(1), Milliseconds(1000)),
            BlockStatus::kOk);
  for (std::uint64_t i = 9; i <= 30; ++i)
    ASSERT_EQ(f.put_one(i), BlockStatus::kOk);
  EXPECT_TRUE(f.has(1));
  EXPECT_EQ(f.store().stats().retained_bytes, ByteCount(8192));
  f.clock().advance(Milliseconds(1000));
  for (std::uint64_t i = 31; i <= 39; ++i)
    ASSERT_EQ(f.put_one(i), BlockStatus::kOk);
  EXPECT_FALSE(f.has(1));
  EXPECT_EQ(f.store().stats().retained_bytes, ByteCount(0));
}

TEST(StoreRetain, WishesEndAtTheBudget) {
  StoreFixture f({.frames = 10, .retained_share = 0.2});
  fill(f, 10);
  const auto retain = [&f](std::uint64_t number, Milliseconds duration) {
    return f.store().retain(f.scope(), StoreFixture::digest(number), duration);
  };
  EXPECT_EQ(retain(1, Milliseconds(10)), BlockStatus::kOk);
  EXPECT_EQ(retain(2, Milliseconds(10)), BlockStatus::kOk);
  EXPECT_EQ(retain(3, Milliseconds(10)), BlockStatus::kQuota);
  EXPECT_EQ(retain(1, Milliseconds(20)), BlockStatus::kOk);
  EXPECT_EQ(retain(99, Milliseconds(10)), BlockStatus::kMiss);
  EXPECT_EQ(retain(1, Milliseconds(0)), BlockStatus::kOk);
  EXPECT_EQ(retain(3, Milliseconds(10)), BlockStatus::kOk);
  f.clock().advance(Milliseconds(10));
  EXPECT_EQ(retain(4, Milliseconds::max()), BlockStatus::kOk);
  EXPECT_EQ(f.store().stats().retained_bytes, ByteCount(8192));
}

TEST(StoreRetain, RetainedBlocksYieldBeforeAnyoneIsToldThatTheStoreIsFull) {
  StoreFixture f({.frames = 4, .retained_share = 0.9});
  fill(f, 3);
  for (std::uint64_t i = 1; i <= 3; ++i) {
    ASSERT_EQ(f.store().retain(f.scope(), StoreFixture::digest(i), Milliseconds(1000)),
              BlockStatus::kOk);
  }
  const ReserveOutcome fourth = f.reserve_one(4);
  ASSERT_EQ(fourth.status, BlockStatus::kOk);
  EXPECT_EQ(f.reserve_one(5).status, BlockStatus::kOk);
  EXPECT_FALSE(f.has(1));
  EXPECT_EQ(f.store().stats().retained_bytes, 8_KiB * 2);
}

TEST(StoreRetain, AReservationsWishBeginsAtItsCommit) {
  StoreFixture f({.frames = 4, .retained_share = 0.5});
  const std::array<ReserveItem, 1> items = {ReserveItem{StoreFixture::digest(1), 4096}};
  std::array<ReserveOutcome, 1> out;
  f.store().reserve({.scope = f.scope(), .items = items, .retain = Milliseconds(50)}, out);
  EXPECT_EQ(f.store().stats().retained_bytes, ByteCount(0));
  f.clock().advance(Milliseconds(100));
  ASSERT_EQ(f.commit_one(out[0], 1), BlockStatus::kOk);
  EXPECT_EQ(f.store().stats().retained_bytes, ByteCount(8192));
  for (std::uint64_t i = 2; i <= 9; ++i)
    ASSERT_EQ(f.put_one(i), BlockStatus::kOk);
  EXPECT_TRUE(f.has(1));
}

TEST(StoreEpoch, AHigherEpochMakesOlderRecordsInvisibleAtOnce) {
  StoreFixture f;
  fill(f, 3);
  f.store().set_epoch(f.scope().slot, StoreFixture::kEpoch - 1);
  EXPECT_TRUE(f.has(1));
  f.store().set_epoch(f.scope().slot, StoreFixture::kEpoch + 1);
  EXPECT_EQ(f.store().epoch(f.scope().slot), StoreFixture::kEpoch + 1);
  Scope next = f.scope();
  next.epoch += 1;
  for (const Scope& scope : {f.scope(), next}) {
    const std::array<BlockDigest, 1> keys = {StoreFixture::digest(1)};
    std::array<LookupHit, 1> hits;
    f.store().lookup(scope, keys, hits);
    EXPECT_EQ(hits[0].tier, TierKind::kNone);
    EXPECT_EQ(f.store().lookup_run(scope, keys, hits), 0U);
    EXPECT_FALSE(f.store().pin(scope, keys[0]).has_value());
    EXPECT_FALSE(f.store().stat(scope, keys[0]).has_value());
    EXPECT_EQ(f.store().retain(scope, keys[0], Milliseconds(1)), BlockStatus::kMiss);
    EXPECT_EQ(f.store().remove(scope, keys[0]), BlockStatus::kMiss);
    EXPECT_TRUE(f.store().list(scope, 0, 10).digests.empty());
  }
}

TEST(StoreEpoch, ACommitAfterAPurgeIsOfTheWrongNamespace) {
  StoreFixture f;
  const ReserveOutcome before = f.reserve_one(1);
  f.store().set_epoch(f.scope().slot, StoreFixture::kEpoch + 1);
  EXPECT_EQ(f.commit_one(before, 1), BlockStatus::kWrongNamespace);
  EXPECT_EQ(f.reserve_one(2).status, BlockStatus::kWrongNamespace);
  EXPECT_EQ(f.store().stats().dram.allocated, ByteCount(0));
}

TEST(StoreEpoch, ACommitUnderAnotherScopeIsRefused) {
  StoreFixture f;
  const ReserveOutcome reserved = f.reserve_one(1);
  Scope other = f.scope();
  other.slot = NamespaceSlot(9);
  f.store().set_epoch(other.slot, other.epoch);
  const std::array<std::uint32_t, 1> checksums = {1};
  const std::array<CommitItem, 1> items = {CommitItem{.ref = reserved.ref, .checksums = checksums}};
  std::array<BlockStatus, 1> out{};
  f.store().commit(other, items, out);
  EXPECT_EQ(out[0], BlockStatus::kWrongNamespace);
}

TEST(StoreEpoch, SweepingDropsWhatAPurgeLeftAndOnlyThat) {
  StoreFixture f({.frames = 64});
  fill(f, 50);
  Scope other = f.scope();
  other.slot = NamespaceSlot(9);
  f.store().set_epoch(other.slot, 7);
  other.epoch = 7;
  const std::array<ReserveItem, 1> items = {ReserveItem{StoreFixture::digest(1), 4096}};
  std::array<ReserveOutcome, 1> reserved;
  f.store().reserve({.scope = other, .items = items}, reserved);
  const std::array<std::uint32_t, 1> checksums = {1};
  const std::array<CommitItem, 1> commits = {
      CommitItem{.ref = reserved[0].ref, .checksums = checksums}};
  std::array<BlockStatus, 1> out{};
  f.store().commit(other, commits, out);
  const auto pinned = f.pin(5);
  f.store().set_epoch(f.scope().slot, StoreFixture::kEpoch + 1);
  EXPECT_FALSE(f.store().sweep(10));
  EXPECT_GT(f.store().stats().resident_blocks, 30U);
  int rounds = 0;
  while (!f.store().sweep(10))
    ASSERT_LT(++rounds, 20);
  EXPECT_EQ(f.store().stats().resident_blocks, 1U);
  EXPECT_EQ(f.store().stats().dram.allocated, 8_KiB * 2);
  f.store().unpin(pinned->ref);
  EXPECT_EQ(f.store().stats().dram.allocated, ByteCount(8192));
  EXPECT_TRUE(f.store().sweep(1));
}

TEST(StoreEpoch, AKeyOfTheNewEpochLivesBesideItsUnsweptElder) {
  StoreFixture f;
  fill(f, 1);
  f.store().set_epoch(f.scope().slot, StoreFixture::kEpoch + 1);
  Scope next = f.scope();
  next.epoch += 1;
  const std::array<ReserveItem, 1> items = {ReserveItem{StoreFixture::digest(1), 100}};
  std::array<ReserveOutcome, 1> reserved;
  f.store().reserve({.scope = next, .items = items}, reserved);
  const std::array<std::uint32_t, 1> checksums = {1};
  const std::array<CommitItem, 1> commits = {
      CommitItem{.ref = reserved[0].ref, .checksums = checksums}};
  std::array<BlockStatus, 1> out{};
  f.store().commit(next, commits, out);
  EXPECT_EQ(out[0], BlockStatus::kOk);
  const auto info = f.store().stat(next, StoreFixture::digest(1));
  ASSERT_TRUE(info.has_value());
  EXPECT_EQ(info->length, 100U);
}

TEST(StoreTier, GrowsWhileTheStoreServes) {
  StoreFixture f({.frames = 2, .records_max = 16});
  fill(f, 2);
  const auto first = f.pin(1);
  const auto second = f.pin(2);
  EXPECT_EQ(f.reserve_one(3).status, BlockStatus::kBusy);
  f.store().with_tier_locked([&f](Tier&) { f.tier().add_granules(2); });
  EXPECT_EQ(f.put_one(3), BlockStatus::kOk);
  f.store().unpin(first->ref);
  f.store().unpin(second->ref);
}

TEST(StoreStatsOf, CountWhatHappened) {
  StoreFixture f;
  fill(f, 3);
  f.store().remove(f.scope(), StoreFixture::digest(1));
  f.reserve_one(9);
  const StoreStats stats = f.store().stats();
  EXPECT_EQ(stats.resident_blocks, 2U);
  EXPECT_EQ(stats.resident_bytes, 8_KiB * 2);
  EXPECT_EQ(stats.open_reservations, 1U);
  EXPECT_EQ(stats.reserved_bytes, ByteCount(8192));
  EXPECT_EQ(stats.commits, 3U);
  EXPECT_EQ(stats.removed, 1U);
  EXPECT_EQ(stats.dram.allocated, 8_KiB * 3);
  EXPECT_EQ(f.store().policy_name(), "lru");
}

}  // namespace
}  // namespace cairn::storage
