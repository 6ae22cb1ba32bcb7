// Threads on one store. Run under the thread sanitizer, and useful without it: every byte that a
// reader sees is checked, and at the end everything is accounted for.
#include "base/random.h"
#include "storage/block_index.h"
#include "tests/storage/store_fixture.h"
#include "tests/support/seed.h"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <thread>
#include <vector>

namespace cairn::storage {
namespace {

constexpr std::uint64_t kKeys = 200;
constexpr std::uint32_t kFrames = 64;
constexpr std::uint32_t kLength = 256;
constexpr int kSteps = 4000;

// What the threads count, for the sums at the end.
struct Counts {
  std::atomic<std::uint64_t> reads{0};
  std::atomic<std::uint64_t> wrong{0};
  std::atomic<std::uint64_t> puts{0};
};

void read_one(StoreFixture& f, std::uint64_t number, Counts& counts) {
  const auto pinned = f.pin(number);
  if (!pinned) return;
  const std::vector<std::byte> seen = f.read(pinned->extents, pinned->length);
  if (seen != StoreFixture::body(number, kLength)) ++counts.wrong;
  std::array<std::uint32_t, 1> checksums{};
  if (!f.store().checksums(*pinned, checksums).has_value() || checksums[0] != crc32c(seen))
    ++counts.wrong;
  const std::array<BlockRef, 1> refs = {pinned->ref};
  f.store().touch_root_first(refs);
  f.store().unpin(pinned->ref);
  ++counts.reads;
}

// A chain of three whose last two may be anywhere.
void put_chain(StoreFixture& f, SeededRandom& random, Counts& counts) {
  const std::array<std::uint64_t, 3> chain = {
      1 + random.below(8), 1 + random.below(kKeys), 1 + random.below(kKeys)};
  std::array<ReserveItem, 3> items;
  for (std::size_t i = 0; i < 3; ++i)
    items[i] = {StoreFixture::digest(chain[i]), kLength};
  std::array<ReserveOutcome, 3> reserved;
  f.store().reserve({.scope = f.scope(), .items = items}, reserved);
  std::array<std::array<std::uint32_t, 1>, 3> checksums{};
  std::vector<CommitItem> commits;
  for (std::size_t i = 0; i < 3; ++i) {
    if (reserved[i].status != BlockStatus::kOk) continue;
    if (random.below(10) == 0) {
      f.store().abort(reserved[i].ref);
      continue;
    }
    const std::vector<std::byte> body = StoreFixture::body(chain[i], kLength);
    f.write(reserved[i].extents, body);
    checksums[i][0] = crc32c(body);
    commits.push_back({.ref = reserved[i].ref, .checksums = checksums[i]});
  }
  std::vector<BlockStatus> out(commits.size());
  f.store().commit(f.scope(), commits, out);
  for (const BlockStatus status : out)
    if (status == BlockStatus::kOk) ++counts.puts;
}

void ask(StoreFixture& f, SeededRandom& random) {
  std::vector<BlockDigest> keys;
  keys.reserve(40);
  for (int i = 0; i < 40; ++i)
    keys.push_back(StoreFixture::digest(1 + random.below(kKeys)));
  std::vector<LookupHit> hits(keys.size());
  f.store().lookup(f.scope(), keys, hits);
  for (const LookupHit& hit : hits)
    ASSERT_TRUE(hit.tier == TierKind::kNone || hit.length == kLength);
  f.store().lookup_run(f.scope(), keys, hits);
  f.store().list(f.scope(), 0, 16);
}

void live(StoreFixture& f, std::uint64_t seed, Counts& counts) {
  SeededRandom random(seed);
  for (int step = 0; step < kSteps; ++step) {
    const std::uint64_t number = 1 + random.below(kKeys);
    switch (random.below(16)) {
      case 0:
        f.store().remove(f.scope(), StoreFixture::digest(number));
        break;
      case 1:
        f.store().evict(ByteCount(8192));
        break;
      case 2:
        f.store().retain(f.scope(), StoreFixture::digest(number), Milliseconds(5));
        f.clock().advance(Milliseconds(1));
        break;
      case 3:
        ask(f, random);
        break;
      case 4:
      case 5:
      case 6:
        put_chain(f, random, counts);
        break;
      default:
        read_one(f, number, counts);
    }
  }
}

TEST(StoreConcurrency, ReadersNeverSeeAnotherBlocksBytesAndEveryFrameComesBack) {
  const std::uint64_t seed = testing::test_seed();
  SCOPED_TRACE("CAIRN_SEED=" + std::to_string(seed));
  StoreFixture f({.frames = kFrames});
  Counts counts;
  std::vector<std::thread> threads;
  for (std::uint64_t i = 0; i < 4; ++i)
    threads.emplace_back([&f, &counts, seed, i] { live(f, seed * 100 + i, counts); });
  for (std::thread& thread : threads)
    thread.join();
  EXPECT_EQ(counts.wrong, 0U);
  EXPECT_GT(counts.reads, 0U);
  EXPECT_GT(counts.puts, 0U);
  EXPECT_EQ(f.store().stats().open_reservations, 0U);
  f.store().evict(1_GiB);
  const StoreStats stats = f.store().stats();
  EXPECT_EQ(stats.resident_blocks, 0U);
  EXPECT_EQ(stats.resident_bytes, ByteCount(0));
  EXPECT_EQ(stats.dram.allocated, ByteCount(0));
  EXPECT_EQ(stats.corrupt_headers, 0U);
  EXPECT_EQ(f.tier().bad_releases(), 0U);
}

TEST(StoreConcurrency, AfterAPurgeReturnsNobodyIsGivenTheOldEpoch) {
  StoreFixture f({.frames = kFrames});
  std::atomic<std::uint64_t> purged{StoreFixture::kEpoch};
  std::atomic<bool> is_done{false};
  std::atomic<std::uint64_t> late{0};
  std::vector<std::thread> readers;
  readers.reserve(3);
  for (int i = 0; i < 3; ++i) {
    readers.emplace_back([&] {
      while (!is_done) {
        const std::uint64_t before = purged;
        Scope scope = f.scope();
        scope.epoch = before - 1;
        const std::array<BlockDigest, 1> keys = {StoreFixture::digest(1)};
        std::array<LookupHit, 1> hits;
        f.store().lookup(scope, keys, hits);
        if (hits[0].tier != TierKind::kNone || f.store().pin(scope, keys[0])) ++late;
      }
    });
  }
  Scope scope = f.scope();
  for (int round = 0; round < 2000; ++round) {
    const std::array<ReserveItem, 1> items = {ReserveItem{StoreFixture::digest(1), kLength}};
    std::array<ReserveOutcome, 1> reserved;
    f.store().reserve({.scope = scope, .items = items}, reserved);
    ASSERT_EQ(reserved[0].status, BlockStatus::kOk);
    const std::array<std::uint32_t, 1> checksums = {1};
    const std::array<CommitItem, 1> commits = {
        CommitItem{.ref = reserved[0].ref, .checksums = checksums}};
    std::array<BlockStatus, 1> out{};
    f.store().commit(scope, commits, out);
    ASSERT_EQ(out[0], BlockStatus::kOk);
    ++scope.epoch;
    f.store().set_epoch(scope.slot, scope.epoch);
    purged = scope.epoch;
    while (!f.store().sweep(8)) {
    }
  }
  is_done = true;
  for (std::thread& reader : readers)
    reader.join();
  EXPECT_EQ(late, 0U);
  EXPECT_EQ(f.store().stats().dram.allocated, ByteCount(0));
}

TEST(StoreConcurrency, ABlockThatStaysIsFoundWhileTheIndexGrowsAroundIt) {
  constexpr std::uint32_t kBlocks = 6000;
  StoreFixture f({.frames = kBlocks + 8, .has_memory = false});
  ASSERT_EQ(f.put_one(1), BlockStatus::kOk);
  std::atomic<bool> is_done{false};
  std::atomic<std::uint64_t> missed{0};
  std::vector<std::thread> readers;
  readers.reserve(3);
  for (int i = 0; i < 3; ++i) {
    readers.emplace_back([&] {
      while (!is_done)
        if (!f.has(1)) ++missed;
    });
  }
  for (std::uint64_t i = 2; i <= kBlocks; ++i)
    ASSERT_EQ(f.put_one(i), BlockStatus::kOk);
  is_done = true;
  for (std::thread& reader : readers)
    reader.join();
  EXPECT_EQ(missed, 0U);
}

// Puts block 1 with the body of that number; the answer of reserve or commit.
BlockStatus put_body(StoreFixture& f, std::uint64_t number) {
  const ReserveOutcome reserved = f.reserve_one(1, kLength);
  if (reserved.status != BlockStatus::kOk) return reserved.status;
  const std::vector<std::byte> body = StoreFixture::body(number, kLength);
  f.write(reserved.extents, body);
  const std::array<std::uint32_t, 1> checksums = {crc32c(body)};
  const std::array<CommitItem, 1> commits = {
      CommitItem{.ref = reserved.ref, .checksums = checksums}};
  std::array<BlockStatus, 1> out{};
  f.store().commit(f.scope(), commits, out);
  return out[0];
}

// Two writers of one key: one body wins whole, each time.
TEST(StoreConcurrency, OfTwoWritersOfOneKeyOneWins) {
  StoreFixture f({.frames = 8});
  for (int round = 0; round < 500; ++round) {
    std::array<BlockStatus, 2> statuses{};
    std::array<std::thread, 2> writers;
    for (std::size_t i = 0; i < 2; ++i)
      writers[i] = std::thread([&f, &statuses, i] { statuses[i] = put_body(f, 100 + i); });
    for (std::thread& writer : writers)
      writer.join();
    const bool is_first = statuses[0] == BlockStatus::kOk;
    ASSERT_EQ(statuses[is_first ? 0 : 1], BlockStatus::kOk);
    ASSERT_EQ(statuses[is_first ? 1 : 0], BlockStatus::kExists);
    const auto pinned = f.pin(1);
    ASSERT_TRUE(pinned.has_value());
    EXPECT_EQ(f.read(pinned->extents, kLength), StoreFixture::body(is_first ? 100 : 101, kLength));
    f.store().unpin(pinned->ref);
    f.store().remove(f.scope(), StoreFixture::digest(1));
  }
}

}  // namespace
}  // namespace cairn::storage
