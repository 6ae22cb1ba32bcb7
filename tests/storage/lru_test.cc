#include "storage/eviction/lru.h"

#include "base/random.h"
#include "tests/support/seed.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace cairn::storage {
namespace {

std::vector<RecordNumber> order_of(const EvictionPolicy& policy) {
  std::vector<RecordNumber> out;
  std::optional<RecordNumber> at;
  while ((at = policy.victim(at)).has_value())
    out.push_back(*at);
  return out;
}

TEST(LruPolicy, TheLeastRecentlyUsedLeavesFirst) {
  const auto policy = make_eviction_policy("lru", 10);
  ASSERT_NE(policy, nullptr);
  EXPECT_EQ(policy->name(), "lru");
  EXPECT_EQ(policy->victim(std::nullopt), std::nullopt);
  for (const RecordNumber block : {0U, 9U, 4U})
    policy->insert(block, {});
  EXPECT_EQ(order_of(*policy), (std::vector<RecordNumber>{0, 9, 4}));
  policy->touch(0);
  EXPECT_EQ(order_of(*policy), (std::vector<RecordNumber>{9, 4, 0}));
  policy->remove(4);
  EXPECT_EQ(order_of(*policy), (std::vector<RecordNumber>{9, 0}));
  EXPECT_EQ(policy->resident(), 2U);
}

TEST(LruPolicy, AskingChangesNothing) {
  const auto policy = make_eviction_policy("lru", 10);
  policy->insert(1, {});
  policy->insert(2, {});
  EXPECT_EQ(order_of(*policy), order_of(*policy));
  EXPECT_EQ(policy->victim(2), std::nullopt);
}

TEST(LruPolicy, KeepsTheOrderOfAnyMixOfUses) {
  const std::uint64_t seed = testing::test_seed();
  SCOPED_TRACE("CAIRN_SEED=" + std::to_string(seed));
  SeededRandom random(seed);
  const auto policy = make_eviction_policy("lru", 50);
  std::vector<RecordNumber> model;
  for (int step = 0; step < 5000; ++step) {
    const auto block = static_cast<RecordNumber>(random.below(50));
    const auto found = std::find(model.begin(), model.end(), block);
    if (found == model.end()) {
      policy->insert(block, {});
      model.push_back(block);
      continue;
    }
    model.erase(found);
    if (random.below(3) == 0) {
      policy->remove(block);
    } else {
      policy->touch(block);
      model.push_back(block);
    }
  }
  EXPECT_EQ(order_of(*policy), model);
  EXPECT_EQ(policy->resident(), model.size());
}

TEST(LruPolicy, CostsEightBytesARecordNumberInUse) {
  const auto policy = make_eviction_policy("lru", 1'000'000);
  policy->insert(99, {});
  EXPECT_EQ(policy->memory(), 8_B * 101);
}

TEST(LruPolicy, UnknownNamesAreNoPolicy) {
  EXPECT_EQ(make_eviction_policy("", 10), nullptr);
  EXPECT_EQ(make_eviction_policy("LRU", 10), nullptr);
}

TEST(LruPolicyDeathTest, ABlockIsInsertedOnceAndTouchedWhileItIsThere) {
  const auto policy = make_eviction_policy("lru", 10);
  policy->insert(1, {});
  EXPECT_DEATH(policy->insert(1, {}), "check_failed");
  EXPECT_DEATH(policy->touch(2), "check_failed");
  EXPECT_DEATH(policy->remove(2), "check_failed");
  EXPECT_DEATH(policy->insert(11, {}), "check_failed");
}

}  // namespace
}  // namespace cairn::storage
