#include "storage/nvme/log_index.h"

#include "base/random.h"
#include "tests/support/seed.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <span>
#include <vector>

namespace cairn::storage {
namespace {

std::unique_ptr<LogIndex> make_index(std::size_t entries) {
  auto index = LogIndex::create(entries);
  EXPECT_TRUE(index.has_value());
  return *std::move(index);
}

LogKey key(std::uint64_t number) {
  std::uint64_t state = number;
  return {.hash = splitmix64(state), .name_space = static_cast<std::uint8_t>(number % 3)};
}

LogPlace random_place(Random& random) {
  const auto below = [&](std::uint64_t end) { return random.below(end); };
  return {.device = static_cast<std::uint8_t>(below(kLogDevicesMax)),
          .segment = static_cast<std::uint32_t>(below(kLogSegmentsMax)),
          .page = static_cast<std::uint16_t>(1 + below(65'535)),
          .pages = static_cast<std::uint16_t>(kFramePagesMin +
                                              below(kFramePagesMax - kFramePagesMin + 1)),
          .generation = static_cast<std::uint16_t>(below(kPlaceGenerations))};
}

std::vector<LogPlace> places(const LogIndex& index, const LogKey& of) {
  LogCandidates found;
  std::vector<LogPlace> out;
  for (const LogCandidate& candidate : std::span(found).first(index.find(of, found)))
    out.push_back(candidate.place);
  return out;
}

bool has(const LogIndex& index, const LogKey& of, const LogPlace& place) {
  return std::ranges::count(places(index, of), place) > 0;
}

std::uint8_t hits(const LogIndex& index, const LogKey& of) {
  LogCandidates found;
  return index.find(of, found) == 0 ? 0xFF : found[0].hits;
}

TEST(LogIndex, KeepsEveryFieldOfAPlace) {
  SeededRandom random(testing::test_seed());
  const auto index = make_index(1'000);
  const std::vector<LogPlace> edges = {
      {.device = 0, .segment = 0, .page = 1, .pages = kFramePagesMin, .generation = 0},
      {.device = kLogDevicesMax - 1,
       .segment = kLogSegmentsMax - 1,
       .page = 65'535,
       .pages = kFramePagesMax,
       .generation = kPlaceGenerations - 1},
      random_place(random)};
  for (std::size_t i = 0; i < edges.size(); ++i)
    EXPECT_EQ(index->insert(key(i), edges[i]), std::nullopt);
  for (std::size_t i = 0; i < edges.size(); ++i)
    EXPECT_EQ(places(*index, key(i)), std::vector{edges[i]});
  EXPECT_EQ(index->entries(), edges.size());
}

TEST(LogIndex, AnotherNamespaceIsAnotherKey) {
  SeededRandom random(testing::test_seed());
  const auto index = make_index(100);
  index->insert(key(1), random_place(random));
  LogKey other = key(1);
  ++other.name_space;
  EXPECT_TRUE(places(*index, other).empty());
}

TEST(LogIndex, ReplacesAndErasesOnlyWhatIsExpected) {
  SeededRandom random(testing::test_seed());
  const auto index = make_index(100);
  const LogPlace old = random_place(random);
  LogPlace next = old;
  next.generation = static_cast<std::uint16_t>((old.generation + 1) % kPlaceGenerations);
  index->insert(key(1), old);
  EXPECT_FALSE(index->replace(key(1), next, old));
  EXPECT_FALSE(index->erase(key(1), next));
  EXPECT_TRUE(index->replace(key(1), old, next));
  EXPECT_EQ(places(*index, key(1)), std::vector{next});
  EXPECT_FALSE(index->erase(key(1), old));
  EXPECT_TRUE(index->erase(key(1), next));
  EXPECT_TRUE(places(*index, key(1)).empty());
  EXPECT_EQ(index->entries(), 0U);
}

TEST(LogIndex, CountsTouchesUpToSevenAndAnewAfterAReplace) {
  SeededRandom random(testing::test_seed());
  const auto index = make_index(100);
  const LogPlace place = random_place(random);
  index->insert(key(1), place);
  EXPECT_EQ(hits(*index, key(1)), 0);
  for (int i = 0; i < 10; ++i)
    index->touch(key(1), place);
  EXPECT_EQ(hits(*index, key(1)), 7);
  LogPlace next = place;
  next.page = place.page == 1 ? 2 : 1;
  index->touch(key(1), next);  // not there: no effect
  EXPECT_TRUE(index->replace(key(1), place, next));
  EXPECT_EQ(hits(*index, key(1)), 0);
}

// Against a map, in a table so small that entries have to leave.
TEST(LogIndex, DoesWhatAMapDoesButForWhatItSaysLeft) {
  SeededRandom random(testing::test_seed());
  const auto index = make_index(500);
  std::map<std::uint64_t, LogPlace> model;
  const auto forget = [&](const LogPlace& place) {
    const auto found =
        std::ranges::find_if(model, [&](const auto& entry) { return entry.second == place; });
    ASSERT_NE(found, model.end());
    model.erase(found);
  };
  for (int step = 0; step < 40'000; ++step) {
    const std::uint64_t number = random.below(900);
    const auto at = model.find(number);
    const LogPlace place = random_place(random);
    if (at == model.end()) {
      const auto left = index->insert(key(number), place);
      if (left) forget(*left);
      model.emplace(number, place);
    } else if (random.below(2) == 0) {
      ASSERT_TRUE(index->replace(key(number), at->second, place));
      at->second = place;
    } else {
      ASSERT_TRUE(index->erase(key(number), at->second));
      model.erase(at);
    }
    ASSERT_EQ(index->entries(), model.size());
  }
  for (const auto& [number, place] : model)
    ASSERT_TRUE(has(*index, key(number), place)) << number;
  EXPECT_GT(index->displaced(), 0U);
}

TEST(LogIndex, TheOneThatWasTouchedLeastLeaves) {
  SeededRandom random(testing::test_seed());
  const auto index = make_index(1);  // one bucket
  ASSERT_EQ(index->slots(), 8U);
  std::vector<LogPlace> all;
  for (std::uint64_t i = 0; i < 8; ++i) {
    all.push_back(random_place(random));
    index->insert(key(i), all.back());
  }
  for (std::uint64_t i = 0; i < 8; ++i) {
    if (i != 5) index->touch(key(i), all[i]);
  }
  EXPECT_EQ(index->insert(key(99), random_place(random)), all[5]);
}

TEST(LogIndex, CostsAtMostTwentyBytesAnEntryAndDropsFewOnTheWay) {
  constexpr std::size_t kEntries = 1'000'000;
  SeededRandom random(testing::test_seed());
  const auto index = make_index(kEntries);
  EXPECT_LE(index->memory().value(), kEntries * 20);
  for (std::uint64_t i = 0; i < kEntries; ++i)
    index->insert(key(i), random_place(random));
  EXPECT_LT(index->displaced(), kEntries / 500);
  std::size_t false_candidates = 0;
  for (std::uint64_t i = kEntries; i < 2 * kEntries; ++i)
    false_candidates += places(*index, key(i)).size();
  EXPECT_EQ(false_candidates, 0U);  // 16 slots of 2^-40 each a lookup
}

}  // namespace
}  // namespace cairn::storage
