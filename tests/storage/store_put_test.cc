#include "storage/block_query.h"
#include "tests/storage/store_fixture.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>

namespace cairn::storage {
namespace {

using Chain = std::vector<std::uint64_t>;

std::vector<BlockStatus> all(std::size_t count, BlockStatus status) {
  return std::vector<BlockStatus>(count, status);
}

TEST(StorePut, ABlockIsVisibleOnlyAfterItsCommit) {
  StoreFixture f;
  const ReserveOutcome reserved = f.reserve_one(1);
  ASSERT_EQ(reserved.status, BlockStatus::kOk);
  EXPECT_FALSE(f.has(1));
  EXPECT_FALSE(f.pin(1).has_value());
  EXPECT_EQ(f.commit_one(reserved, 1), BlockStatus::kOk);
  EXPECT_TRUE(f.has(1));
  const auto pinned = f.pin(1);
  ASSERT_TRUE(pinned.has_value());
  EXPECT_EQ(f.read(pinned->extents, pinned->length), StoreFixture::body(1));
  f.store().unpin(pinned->ref);
}

TEST(StorePut, APresentKeyAnswersExistsAndChangesNoByte) {
  StoreFixture f;
  ASSERT_EQ(f.put_one(1), BlockStatus::kOk);
  const StoreStats before = f.store().stats();
  const ReserveOutcome again = f.reserve_one(1, 2 * StoreFixture::kLength);
  EXPECT_EQ(again.status, BlockStatus::kExists);
  EXPECT_TRUE(again.extents.is_empty());
  const StoreStats after = f.store().stats();
  EXPECT_EQ(after.dram.allocated, before.dram.allocated);
  EXPECT_EQ(after.open_reservations, 0U);
  const auto pinned = f.pin(1);
  ASSERT_TRUE(pinned.has_value());
  EXPECT_EQ(f.read(pinned->extents, pinned->length), StoreFixture::body(1));
}

TEST(StorePut, OfTwoReservationsOfOneKeyTheFirstCommitWinsWhole) {
  StoreFixture f;
  const ReserveOutcome first = f.reserve_one(1);
  const ReserveOutcome second = f.reserve_one(1);
  ASSERT_EQ(first.status, BlockStatus::kOk);
  ASSERT_EQ(second.status, BlockStatus::kOk);
  ASSERT_NE(first.extents, second.extents);
  const std::vector<std::byte> other = StoreFixture::body(77);
  f.write(first.extents, StoreFixture::body(1));
  f.write(second.extents, other);
  const std::vector<std::uint32_t> checksums = checksums_of(other);
  const std::array<CommitItem, 1> items = {CommitItem{.ref = second.ref, .checksums = checksums}};
  std::array<BlockStatus, 1> out{};
  f.store().commit(f.scope(), items, out);
  EXPECT_EQ(out[0], BlockStatus::kOk);
  EXPECT_EQ(f.commit_one(first, 1), BlockStatus::kExists);
  const auto pinned = f.pin(1);
  ASSERT_TRUE(pinned.has_value());
  EXPECT_EQ(f.read(pinned->extents, pinned->length), other);
  EXPECT_TRUE(f.store().verify(*pinned));
  const StoreStats stats = f.store().stats();
  EXPECT_EQ(stats.commit_exists, 1U);
  EXPECT_EQ(stats.open_reservations, 0U);
  EXPECT_EQ(stats.dram.allocated, 4_KiB * 2);
}

TEST(StorePut, TheSameKeyTwiceInOneRequestAreTwoReservations) {
  StoreFixture f;
  const std::array<ReserveItem, 2> items = {ReserveItem{StoreFixture::digest(1), 100},
                                            ReserveItem{StoreFixture::digest(1), 100}};
  std::array<ReserveOutcome, 2> out;
  f.store().reserve({.scope = f.scope(), .items = items, .is_chain = false}, out);
  EXPECT_EQ(out[0].status, BlockStatus::kOk);
  EXPECT_EQ(out[1].status, BlockStatus::kOk);
  EXPECT_NE(out[0].ref, out[1].ref);
}

TEST(StorePut, AnAbortedReservationGivesItsFrameBack) {
  StoreFixture f;
  const ReserveOutcome reserved = f.reserve_one(1);
  f.store().abort(reserved.ref);
  EXPECT_EQ(f.store().stats().dram.allocated, ByteCount(0));
  EXPECT_EQ(f.store().stats().reserved_bytes, ByteCount(0));
  EXPECT_EQ(f.commit_one(reserved, 1), BlockStatus::kCancelled);
  f.store().abort(reserved.ref);
  f.store().abort(BlockRef{});
  EXPECT_EQ(f.tier().bad_releases(), 0U);
}

TEST(StorePut, ACommitWithTheWrongNumberOfChecksumsIsInvalidAndEndsTheReservation) {
  StoreFixture f;
  const ReserveOutcome reserved = f.reserve_one(1);
  const std::array<std::uint32_t, 2> checksums = {1, 2};
  const std::array<CommitItem, 1> items = {CommitItem{.ref = reserved.ref, .checksums = checksums}};
  std::array<BlockStatus, 1> out{};
  f.store().commit(f.scope(), items, out);
  EXPECT_EQ(out[0], BlockStatus::kInvalid);
  EXPECT_FALSE(f.has(1));
  EXPECT_EQ(f.store().stats().dram.allocated, ByteCount(0));
}

TEST(StorePut, AttributesOverTwoKibibytesAreTooLarge) {
  StoreFixture f;
  const ReserveOutcome reserved = f.reserve_one(1);
  const std::array<std::uint32_t, 1> checksums = {1};
  const std::vector<std::byte> attributes(2049);
  const std::array<CommitItem, 1> items = {
      CommitItem{.ref = reserved.ref, .checksums = checksums, .attributes = attributes}};
  std::array<BlockStatus, 1> out{};
  f.store().commit(f.scope(), items, out);
  EXPECT_EQ(out[0], BlockStatus::kTooLarge);
  EXPECT_EQ(f.store().stats().open_reservations, 0U);
}

TEST(StorePut, LengthsOutsideTheLimitsAreRefusedAndEvictNothing) {
  StoreFixture f({.frames = 16});
  ASSERT_EQ(f.put_one(1), BlockStatus::kOk);
  EXPECT_EQ(f.reserve_one(2, 0).status, BlockStatus::kInvalid);
  EXPECT_EQ(f.reserve_one(2, (16U << 20U) + 1).status, BlockStatus::kTooLarge);
  EXPECT_EQ(f.reserve_one(2, 16 * 2 * 4096).status, BlockStatus::kTooLarge);
  EXPECT_TRUE(f.has(1));
  EXPECT_EQ(f.reserve_one(2, 15 * 2 * 4096 + 4096).status, BlockStatus::kOk);
  EXPECT_FALSE(f.has(1));
}

TEST(StorePut, AChainIsCutAtItsFirstFailureAndASetIsNot) {
  StoreFixture f;
  const std::array<ReserveItem, 3> items = {ReserveItem{StoreFixture::digest(1), 100},
                                            ReserveItem{StoreFixture::digest(2), 0},
                                            ReserveItem{StoreFixture::digest(3), 100}};
  std::array<ReserveOutcome, 3> out;
  f.store().reserve({.scope = f.scope(), .items = items, .is_chain = true}, out);
  EXPECT_EQ(out[0].status, BlockStatus::kOk);
  EXPECT_EQ(out[1].status, BlockStatus::kInvalid);
  EXPECT_EQ(out[2].status, BlockStatus::kCut);
  f.store().reserve({.scope = f.scope(), .items = items, .is_chain = false}, out);
  EXPECT_EQ(out[1].status, BlockStatus::kInvalid);
  EXPECT_EQ(out[2].status, BlockStatus::kOk);
}

TEST(StorePut, TheBranchIsTheFirstItemThatWasNotThere) {
  StoreFixture f;
  ASSERT_EQ(f.put(Chain{1, 2}), all(2, BlockStatus::kOk));
  const auto reserve = [&f](std::optional<BlockDigest> branch) {
    const std::array<ReserveItem, 4> items = {ReserveItem{StoreFixture::digest(1), 100},
                                              ReserveItem{StoreFixture::digest(2), 100},
                                              ReserveItem{StoreFixture::digest(3), 100},
                                              ReserveItem{StoreFixture::digest(4), 100}};
    std::array<ReserveOutcome, 4> out;
    return f.store().reserve({.scope = f.scope(), .items = items, .branch = branch}, out);
  };
  EXPECT_EQ(reserve(std::nullopt), StoreFixture::digest(3));
  EXPECT_EQ(reserve(StoreFixture::digest(9)), StoreFixture::digest(9));
}

TEST(StorePut, ARequestThatLacksNothingHasNoBranch) {
  StoreFixture f;
  ASSERT_EQ(f.put(Chain{1}), all(1, BlockStatus::kOk));
  const std::array<ReserveItem, 1> items = {ReserveItem{StoreFixture::digest(1), 100}};
  std::array<ReserveOutcome, 1> out;
  EXPECT_EQ(f.store().reserve({.scope = f.scope(), .items = items}, out), std::nullopt);
}

TEST(StorePut, APutOfManyBatchesIsCommittedWhole) {
  StoreFixture f({.frames = 400});
  Chain chain;
  for (std::uint64_t i = 1; i <= 300; ++i)
    chain.push_back(i);
  EXPECT_EQ(f.put(chain), all(300, BlockStatus::kOk));
  const std::vector<BlockDigest> keys = StoreFixture::digests(chain);
  std::vector<LookupHit> hits(keys.size());
  EXPECT_EQ(f.store().lookup_run(f.scope(), keys, hits), 300U);
  EXPECT_EQ(f.store().stats().resident_blocks, 300U);
}

TEST(StorePut, ARecordShortageEvictsAsASpaceShortageDoes) {
  StoreFixture f({.frames = 16, .records_max = 4});
  for (std::uint64_t i = 1; i <= 10; ++i)
    ASSERT_EQ(f.put_one(i), BlockStatus::kOk);
  EXPECT_EQ(f.store().stats().resident_blocks, 4U);
  EXPECT_TRUE(f.has(10));
  EXPECT_FALSE(f.has(6));
}

TEST(StorePut, AFrameOfSeveralExtentsIsWrittenAndRead) {
  StoreFixture f({.frames = 350, .splits_frames = true});
  constexpr std::uint32_t kLarge = 300'000;  // two chunks: 75 granules and the header page
  // Blocks of 70 granules, of which every second goes: no single run is left for the large one.
  std::vector<std::uint64_t> fillers;
  for (std::uint64_t i = 1; f.tier().free_granules() >= 70; ++i) {
    ASSERT_EQ(f.put_one(i, 69 * 4096), BlockStatus::kOk);
    fillers.push_back(i);
  }
  for (std::size_t i = 0; i < fillers.size(); i += 2)
    f.store().remove(f.scope(), StoreFixture::digest(fillers[i]));
  const ReserveOutcome reserved = f.reserve_one(500, kLarge);
  ASSERT_EQ(reserved.status, BlockStatus::kOk);
  ASSERT_GT(reserved.extents.size(), 1U);
  ASSERT_EQ(f.commit_one(reserved, 500, kLarge), BlockStatus::kOk);
  const auto pinned = f.pin(500);
  ASSERT_TRUE(pinned.has_value());
  EXPECT_EQ(pinned->extents, reserved.extents);
  EXPECT_EQ(f.read(pinned->extents, kLarge), StoreFixture::body(500, kLarge));
  EXPECT_TRUE(f.store().verify(*pinned));
}

// Keys of which no honest hash makes so many: their index entries all want the same few buckets.
TEST(StorePut, ACrowdOfEqualHashesIsDeclinedAndLeavesTheStoreAsItWas) {
  constexpr std::uint64_t kCrowd = 300;
  StoreFixture f({.frames = kCrowd, .has_memory = false});
  std::vector<BlockStatus> statuses;
  for (std::uint64_t number = 1; statuses.size() < kCrowd; ++number) {
    if (query_of(f.scope(), StoreFixture::digest(number)).tag() >> 24U != 0x42U) continue;
    statuses.push_back(f.put_one(number));
  }
  const auto kept = std::count(statuses.begin(), statuses.end(), BlockStatus::kOk);
  const auto declined = std::count(statuses.begin(), statuses.end(), BlockStatus::kDeclined);
  EXPECT_GE(kept, 32 * 7);
  EXPECT_GT(declined, 0);
  EXPECT_EQ(kept + declined, static_cast<std::ptrdiff_t>(kCrowd));
  const StoreStats stats = f.store().stats();
  EXPECT_EQ(stats.resident_blocks, static_cast<std::uint64_t>(kept));
  EXPECT_EQ(stats.open_reservations, 0U);
  EXPECT_EQ(stats.dram.allocated.value(), stats.resident_bytes.value());
}

TEST(StoreOpen, RefusesOptionsOutsideTheirRanges) {
  testing::FakeTier tier;
  testing::ManualClock clock;
  StoreOptions options{.records_max = 16};
  const auto memory = LazyMemory::map(Store::records_bytes(options));
  ASSERT_TRUE(memory.has_value());
  const auto open = [&](std::span<std::byte> records, std::unique_ptr<EvictionPolicy> policy) {
    return Store::open(options, tier, {.bytes = records}, std::move(policy), clock);
  };
  const auto lru = [] { return make_eviction_policy("lru", 16); };
  EXPECT_EQ(open((*memory).bytes(), nullptr).error().code, ErrorCode::kInvalid);
  EXPECT_EQ(open((*memory).bytes().first(4096), lru()).error().code, ErrorCode::kNoSpace);
  options.retained_share = 0.95;
  EXPECT_EQ(open((*memory).bytes(), lru()).error().code, ErrorCode::kInvalid);
  options.retained_share = -0.1;
  EXPECT_EQ(open((*memory).bytes(), lru()).error().code, ErrorCode::kInvalid);
  options.retained_share = 0.9;
  EXPECT_TRUE(open((*memory).bytes(), lru()).has_value());
}

TEST(StoreOpen, WithoutANumberThereIsOneRecordPerEightKibibytes) {
  EXPECT_EQ(Store::records_max({.pool_bytes = 1_GiB}), 131'072U);
  EXPECT_EQ(Store::records_bytes({.records_max = 10}), ByteCount(4096 + 1280));
}

class FullRecords final : public RecordsOwner {
 public:
  Status populate_records(ByteCount, ByteCount) noexcept override {
    if (is_full) return Error{ErrorCode::kNoSpace, 0, "full"};
    return {};
  }
  bool is_full = false;
};

// A full file system under the records file: what is there stays, and room is made by eviction.
TEST(StorePut, WithoutMemoryForAnotherRecordEvictsOrSaysBusy) {
  FullRecords records;
  StoreFixture fixture({.frames = 600, .records_owner = &records});
  for (std::uint64_t n = 1; n <= 512; ++n)
    ASSERT_EQ(fixture.put_one(n), BlockStatus::kOk);
  records.is_full = true;
  EXPECT_EQ(fixture.put_one(1'000), BlockStatus::kOk);
  EXPECT_FALSE(fixture.has(1));
  EXPECT_TRUE(fixture.has(2));
  std::vector<PinnedBlock> pinned;
  for (std::uint64_t n = 2; n <= 512; ++n)
    pinned.push_back(*fixture.pin(n));
  pinned.push_back(*fixture.pin(1'000));
  EXPECT_EQ(fixture.reserve_one(1'001).status, BlockStatus::kBusy);
  records.is_full = false;
  EXPECT_EQ(fixture.put_one(1'001), BlockStatus::kOk);
  for (const PinnedBlock& block : pinned)
    fixture.store().unpin(block.ref);
}

}  // namespace
}  // namespace cairn::storage
