// The order of leaving: no parent is colder than its child, whatever mix of puts and gets came
// before.
#include "base/random.h"
#include "tests/storage/store_fixture.h"
#include "tests/support/seed.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

namespace cairn::storage {
namespace {

using Chain = std::vector<std::uint64_t>;

Chain numbers(std::uint64_t first, std::uint64_t last) {
  Chain out;
  for (std::uint64_t i = first; i <= last; ++i)
    out.push_back(i);
  return out;
}

TEST(StoreTouch, AChainLeavesFromItsLeaf) {
  StoreFixture f;
  f.put(Chain{1, 2, 3, 4});
  EXPECT_EQ(f.victims(numbers(1, 4)), (Chain{4, 3, 2, 1}));
}

TEST(StoreTouch, APutAfterItsPrefixTouchesEveryAncestor) {
  StoreFixture f;
  f.put(Chain{1, 2, 3});
  f.put(Chain{10, 11});
  f.put(Chain{4, 5}, 3);
  EXPECT_EQ(f.victims(numbers(1, 11)), (Chain{11, 10, 5, 4, 3, 2, 1}));
}

TEST(StoreTouch, AGetOfAPrefixThenAPutLeavesNoParentColderThanItsChild) {
  StoreFixture f({.frames = 32});
  f.put(Chain{1, 2, 3, 4, 5, 6});
  f.put(Chain{20, 21});
  EXPECT_EQ(f.get_then_put(Chain{1, 2, 3, 30, 31}), 3U);
  EXPECT_EQ(f.victims(numbers(1, 31)), (Chain{6, 5, 4, 21, 20, 31, 30, 3, 2, 1}));
}

TEST(StoreTouch, ExistsIsAUseLeafFirst) {
  StoreFixture f;
  f.put(Chain{1, 2, 3});
  f.put(Chain{10, 11});
  f.put(Chain{1, 2, 3});
  EXPECT_EQ(f.victims(numbers(1, 11)), (Chain{11, 10, 3, 2, 1}));
}

TEST(StoreTouch, ExistsAtTheEndOfALongChainTouchesWhatIsAboveTheRequest) {
  StoreFixture f;
  f.put(Chain{1, 2, 3});
  f.put(Chain{10});
  f.put(Chain{3}, 2);
  EXPECT_EQ(f.victims(numbers(1, 10)), (Chain{10, 3, 2, 1}));
}

TEST(StoreTouch, AHoleThatIsFilledJoinsTheChainAgain) {
  StoreFixture f;
  f.put(Chain{1, 2, 3, 4});
  ASSERT_EQ(f.store().remove(f.scope(), StoreFixture::digest(2)), BlockStatus::kOk);
  f.put(Chain{10});
  f.put(Chain{1, 2, 3, 4});
  f.put(Chain{11});
  f.put(Chain{5}, 4);
  EXPECT_EQ(f.victims(numbers(1, 11)), (Chain{10, 11, 5, 4, 3, 2, 1}));
}

TEST(StoreTouch, AGetOfALaterPartOfAChainTouchesTheEarlierPart) {
  StoreFixture f({.frames = 32});
  f.put(numbers(1, 6));
  f.put(Chain{20});
  std::vector<BlockRef> refs;
  for (std::uint64_t i = 4; i <= 6; ++i)
    refs.push_back(f.pin(i)->ref);
  f.store().touch_root_first(refs);
  for (const BlockRef& ref : refs)
    f.store().unpin(ref);
  EXPECT_EQ(f.victims(numbers(1, 20)), (Chain{20, 6, 5, 4, 3, 2, 1}));
}

TEST(StoreTouch, ItemsCommittedOutOfOrderStillLeaveLeafFirst) {
  StoreFixture f;
  const std::vector<ReserveOutcome> reserved = f.reserve(Chain{1, 2, 3});
  const std::vector<std::uint32_t> checksums = {1};
  std::vector<CommitItem> items;
  for (const std::size_t i : {2, 0, 1})
    items.push_back({.ref = reserved[i].ref, .checksums = checksums});
  std::vector<BlockStatus> out(3);
  f.store().commit(f.scope(), items, out);
  EXPECT_EQ(f.victims(numbers(1, 3)), (Chain{3, 2, 1}));
}

TEST(StoreTouch, AParentThatLostToAnotherCommitIsFoundByItsDigest) {
  StoreFixture f;
  const std::vector<ReserveOutcome> reserved = f.reserve(Chain{1, 2});
  ASSERT_EQ(f.put_one(1), BlockStatus::kOk);
  EXPECT_EQ(f.commit_one(reserved[0], 1), BlockStatus::kExists);
  EXPECT_EQ(f.commit_one(reserved[1], 2), BlockStatus::kOk);
  f.put(Chain{10});
  f.put(Chain{3}, 2);
  EXPECT_EQ(f.victims(numbers(1, 10)), (Chain{10, 3, 2, 1}));
}

TEST(StoreTouch, ALongPutOfManyBatchesLeavesLeafFirst) {
  StoreFixture f({.frames = 300});
  const Chain chain = numbers(1, 200);
  f.put(chain);
  Chain expected(chain.rbegin(), chain.rend());
  EXPECT_EQ(f.victims(chain), expected);
}

TEST(StoreTouch, BatchesOfOneChainKeepTheWholeInOrder) {
  StoreFixture f({.frames = 300});
  f.put(numbers(1, 64));
  f.put(numbers(65, 128), 64);
  f.put(numbers(129, 150), 128);
  Chain expected = numbers(1, 150);
  std::reverse(expected.begin(), expected.end());
  EXPECT_EQ(f.victims(numbers(1, 150)), expected);
}

TEST(StoreTouch, SiblingsOfOneParentShareItsTouch) {
  StoreFixture f;
  f.put(Chain{1, 2});
  f.put(Chain{10});
  const std::array<ReserveItem, 3> items = {ReserveItem{StoreFixture::digest(3), 4096},
                                            ReserveItem{StoreFixture::digest(4), 4096},
                                            ReserveItem{StoreFixture::digest(5), 4096}};
  std::array<ReserveOutcome, 3> reserved;
  f.store().reserve(
      {.scope = f.scope(), .items = items, .is_chain = false, .parent = StoreFixture::digest(2)},
      reserved);
  const std::vector<std::uint32_t> checksums = {1};
  std::vector<CommitItem> commits;
  commits.reserve(reserved.size());
  for (const ReserveOutcome& outcome : reserved)
    commits.push_back({.ref = outcome.ref, .checksums = checksums});
  std::vector<BlockStatus> out(3);
  f.store().commit(f.scope(), commits, out);
  const Chain left = f.victims(numbers(1, 10));
  EXPECT_EQ(left.front(), 10U);
  EXPECT_EQ(Chain(left.end() - 2, left.end()), (Chain{2, 1}));
}

// Chains are paths in a random tree; block n's parent is parents[n]. A block may be put only while
// its path is, so a resident block always has a resident parent unless the parent was removed.
TEST(StoreTouch, NoParentIsColderThanItsChildAfterAnyMixOfUses) {
  const std::uint64_t seed = testing::test_seed();
  SCOPED_TRACE("CAIRN_SEED=" + std::to_string(seed));
  SeededRandom random(seed);
  for (int round = 0; round < 20; ++round) {
    StoreFixture f({.frames = 60});
    std::map<std::uint64_t, std::uint64_t> parents;
    for (std::uint64_t n = 1; n <= 120; ++n)
      parents[n] = n <= 3 ? 0 : 1 + random.below(n - 1);
    for (int step = 0; step < 200; ++step) {
      Chain chain;
      for (std::uint64_t at = 1 + random.below(120); at != 0; at = parents[at])
        chain.insert(chain.begin(), at);
      const std::uint64_t kind = random.below(10);
      if (kind < 6) {
        f.get_then_put(chain);
      } else if (kind < 9) {
        f.put(chain);
      } else {
        f.store().remove(f.scope(), StoreFixture::digest(chain[random.below(chain.size())]));
      }
    }
    const Chain order = f.victims(numbers(1, 120));
    std::map<std::uint64_t, std::size_t> left_at;
    for (std::size_t i = 0; i < order.size(); ++i)
      left_at[order[i]] = i;
    for (const auto& [child, at] : left_at) {
      const auto parent = left_at.find(parents[child]);
      if (parent == left_at.end()) continue;
      EXPECT_LT(at, parent->second) << "block " << child << " left after its parent";
    }
  }
}

}  // namespace
}  // namespace cairn::storage
