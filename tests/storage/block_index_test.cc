#include "storage/block_index.h"

#include "base/random.h"
#include "tests/support/seed.h"

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <utility>
#include <vector>

namespace cairn::storage {
namespace {

std::unique_ptr<BlockIndex> make_index() {
  auto made = BlockIndex::create();
  return made ? std::move(*made) : nullptr;
}

// True when `record` is among the candidates for `tag`, found without the lock.
bool finds(const BlockIndex& index, std::uint32_t tag, std::uint32_t record) {
  const BlockIndex::Reading reading(index);
  return reading.row().find(tag, [record](std::uint32_t n) { return n == record; }) ==
         FindOutcome::kFound;
}

TEST(BlockIndex, FindsWhatWasInsertedUntilItIsErased) {
  const auto index = make_index();
  ASSERT_TRUE(index->insert(7, 100));
  ASSERT_TRUE(index->insert(7, 101));
  ASSERT_TRUE(index->insert(0, 0));
  EXPECT_TRUE(finds(*index, 7, 100));
  EXPECT_TRUE(finds(*index, 7, 101));
  EXPECT_TRUE(finds(*index, 0, 0));
  EXPECT_FALSE(finds(*index, 8, 100));
  index->erase(7, 100);
  EXPECT_FALSE(finds(*index, 7, 100));
  EXPECT_TRUE(finds(*index, 7, 101));
  EXPECT_EQ(index->entries(), 2U);
}

TEST(BlockIndex, KeepsEveryEntryThroughGrowthAndErasure) {
  const std::uint64_t seed = testing::test_seed();
  SCOPED_TRACE("CAIRN_SEED=" + std::to_string(seed));
  SeededRandom random(seed);
  const auto index = make_index();
  std::map<std::uint32_t, std::uint32_t> tags;  // record -> tag
  for (int step = 0; step < 60'000; ++step) {
    if (!tags.empty() && random.below(4) == 0) {
      const auto victim = tags.upper_bound(static_cast<std::uint32_t>(random.below(60'000)));
      if (victim == tags.end()) continue;
      index->erase(victim->second, victim->first);
      EXPECT_FALSE(finds(*index, victim->second, victim->first));
      tags.erase(victim);
    } else {
      const auto tag = static_cast<std::uint32_t>(random.next_u64());
      const auto record = static_cast<std::uint32_t>(step);
      ASSERT_TRUE(index->insert(tag, record));
      tags[record] = tag;
    }
  }
  EXPECT_EQ(index->entries(), tags.size());
  for (const auto& [record, tag] : tags)
    ASSERT_TRUE(finds(*index, tag, record));
}

TEST(BlockIndex, CostsBetweenElevenAndEighteenBytesAnEntry) {
  SeededRandom random(1);
  const auto index = make_index();
  for (std::uint32_t n = 0; n < 200'000; ++n) {
    ASSERT_TRUE(index->insert(static_cast<std::uint32_t>(random.next_u64()), n));
    if (n < 10'000) continue;
    const double bytes = static_cast<double>(index->memory().value()) / (n + 1);
    ASSERT_LT(bytes, 17.3) << n;
    ASSERT_GT(bytes, 11.3) << n;
  }
}

TEST(BlockIndex, ARowIsFreedWhenItsReadersAreGone) {
  const auto index = make_index();
  const ByteCount small = index->memory();
  std::uint32_t n = 0;
  {
    const BlockIndex::Reading reading(*index);
    const std::size_t size = reading.row().size();
    while (index->slots() / kBucketSlots == size) {
      ASSERT_TRUE(index->insert(n * 0x01000193U, n));
      ++n;
    }
    const std::size_t grown = index->slots() / kBucketSlots;
    EXPECT_EQ(index->memory(), ByteCount((size + grown) * 64));
    EXPECT_EQ(reading.row().size(), size);
    index->reclaim();
    EXPECT_GT(index->memory(), ByteCount(grown * 64));
  }
  index->reclaim();
  EXPECT_EQ(index->memory(), ByteCount(index->slots() / kBucketSlots * 64));
  EXPECT_GT(index->memory(), small);
}

TEST(BlockIndex, ACrowdOfEqualTagsIsRefusedAndDoesNotGrowTheIndexForEver) {
  const auto index = make_index();
  std::uint32_t taken = 0;
  while (index->insert(42, taken))
    ASSERT_LT(++taken, 100'000U);
  EXPECT_GE(taken, kProbeBucketsMax * kBucketSlots);
  EXPECT_LT(index->memory(), 64_KiB);
  EXPECT_TRUE(index->insert(0x80000000U, 5));
  for (std::uint32_t n = 0; n < taken; ++n)
    EXPECT_TRUE(finds(*index, 42, n));
  index->erase(42, 0);
  EXPECT_TRUE(index->insert(42, 0));
}

TEST(BucketRow, ProbesPastTheLastBucketToTheFirst) {
  std::vector<BasicBucket<StdAtomics>> buckets(3);
  BasicBucketRow<StdAtomics> row{std::span(buckets)};
  for (std::uint32_t n = 0; n < 21; ++n)
    ASSERT_TRUE(row.insert(0xFFFFFFFF, n));
  EXPECT_FALSE(row.insert(0xFFFFFFFF, 21));
  for (std::uint32_t n = 0; n < 21; ++n) {
    EXPECT_EQ(row.find_locked(0xFFFFFFFF, [n](std::uint32_t found) { return found == n; }),
              FindOutcome::kFound);
  }
  for (std::uint32_t n = 0; n < 21; ++n)
    row.erase(0xFFFFFFFF, n);
  for (const auto& bucket : buckets)
    EXPECT_FALSE(bucket.read_locked(0xFFFFFFFF).has_overflow);
}

}  // namespace
}  // namespace cairn::storage
