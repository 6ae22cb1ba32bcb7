#include "storage/extent_allocator.h"

#include "base/random.h"
#include "tests/support/seed.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

namespace cairn::storage {
namespace {

// Which runs are free, kept in the plainest way: by first granule, merged within their region.
class ReferenceModel {
 public:
  void add_region(std::uint32_t first, std::uint32_t count) {
    regions_.insert(first);
    give(first, count);
  }
  void take(Extent extent) {
    auto run = free_.upper_bound(extent.first);
    ASSERT_NE(run, free_.begin());
    --run;
    const auto [first, count] = *run;
    ASSERT_GE(first + count, std::uint64_t{extent.first} + extent.count) << "not free";
    free_.erase(run);
    if (first < extent.first) free_[first] = extent.first - first;
    const std::uint64_t end = std::uint64_t{extent.first} + extent.count;
    if (end < first + count) free_[end] = first + count - end;
  }
  void give(std::uint64_t first, std::uint64_t count) {
    const auto after = free_.find(first + count);
    if (after != free_.end() && !regions_.contains(after->first)) {
      count += after->second;
      free_.erase(after);
    }
    auto before = free_.lower_bound(first);
    if (before != free_.begin() && !regions_.contains(first)) {
      --before;
      if (before->first + before->second == first) {
        before->second += count;
        return;
      }
    }
    free_[first] = count;
  }
  std::size_t runs() const { return free_.size(); }
  std::uint64_t free() const {
    std::uint64_t sum = 0;
    for (const auto& [first, count] : free_)
      sum += count;
    return sum;
  }
  std::uint64_t largest() const {
    std::uint64_t most = 0;
    for (const auto& [first, count] : free_)
      most = std::max(most, count);
    return most;
  }

 private:
  std::set<std::uint64_t> regions_;
  std::map<std::uint64_t, std::uint64_t> free_;
};

void expect_same(const ExtentAllocator& allocator, const ReferenceModel& model) {
  const ExtentFigures figures = allocator.figures();
  ASSERT_EQ(figures.free_runs, model.runs());
  ASSERT_EQ(figures.free, model.free());
  ASSERT_LE(figures.largest_run, model.largest());
  ASSERT_GE(std::uint64_t{figures.largest_run} * 32, model.largest() * 31);
}

struct Churn {
  std::uint64_t seed;
  std::uint32_t count_max;
  int steps;
};

// Takes and gives at random; every answer is checked against the model.
class Churning {
 public:
  explicit Churning(const Churn& plan)
      : count_max_(plan.count_max),
        random_(plan.seed) {
    for (const auto& [first, count] : {std::pair<std::uint32_t, std::uint32_t>{4096, 4096},
                                       {0, 4096},
                                       {8192, 1000},
                                       {12288, 4096}}) {
      allocator_.add_region(first, count);
      model_.add_region(first, count);
    }
  }

  void step(int number) {
    const bool is_filling = (number / 500) % 2 == 0;
    if (live_.empty() || random_.below(10) < (is_filling ? 7U : 3U)) {
      take();
    } else {
      give();
    }
  }
  void finish() {
    for (const Extent& extent : live_)
      allocator_.release(extent);
    EXPECT_EQ(allocator_.figures().free_runs, 4U);
    EXPECT_EQ(allocator_.free_granules(), allocator_.capacity());
  }

 private:
  void take() {
    const auto count = static_cast<std::uint32_t>(1 + random_.below(count_max_));
    const std::optional<Extent> extent = allocator_.allocate(count);
    if (!extent) return;
    ASSERT_EQ(extent->count, count);
    ASSERT_NO_FATAL_FAILURE(model_.take(*extent));
    live_.push_back(*extent);
    expect_same(allocator_, model_);
  }
  void give() {
    std::swap(live_[random_.below(live_.size())], live_.back());
    allocator_.release(live_.back());
    model_.give(live_.back().first, live_.back().count);
    live_.pop_back();
    expect_same(allocator_, model_);
  }

  std::uint32_t count_max_;
  SeededRandom random_;
  ExtentAllocator allocator_;
  ReferenceModel model_;
  std::vector<Extent> live_;
};

void churn(const Churn& plan) {
  SCOPED_TRACE(::testing::Message() << "CAIRN_SEED=" << plan.seed);
  Churning churning(plan);
  for (int step = 0; step < plan.steps; ++step)
    ASSERT_NO_FATAL_FAILURE(churning.step(step));
  churning.finish();
}

TEST(ExtentAllocator, NeverOverlapsNeverLosesAndCoalescesFully) {
  const std::uint64_t seed = testing::test_seed();
  churn({.seed = seed, .count_max = 1, .steps = 4000});
  churn({.seed = seed + 1, .count_max = 40, .steps = 8000});
  churn({.seed = seed + 2, .count_max = 700, .steps = 8000});
  churn({.seed = seed + 3, .count_max = 4096, .steps = 4000});
}

TEST(ExtentAllocator, IsEmptyUntilARegionIsAdded) {
  ExtentAllocator allocator;
  EXPECT_EQ(allocator.allocate(1), std::nullopt);
  EXPECT_EQ(allocator.largest_run(), 0U);
  EXPECT_EQ(allocator.figures().fragmentation(), 0.0);
}

TEST(ExtentAllocator, FillsARegionToTheLastGranule) {
  ExtentAllocator allocator;
  allocator.add_region(0, 1000);
  for (int i = 0; i < 10; ++i)
    ASSERT_TRUE(allocator.allocate(100));
  EXPECT_EQ(allocator.allocate(1), std::nullopt);
  EXPECT_EQ(allocator.free_granules(), 0U);
}

TEST(ExtentAllocator, NeverMergesAcrossRegions) {
  ExtentAllocator allocator;
  allocator.add_region(100, 100);
  allocator.add_region(0, 100);
  EXPECT_EQ(allocator.largest_run(), 100U);
  const auto one = allocator.allocate(100);
  const auto two = allocator.allocate(100);
  ASSERT_TRUE(one && two);
  allocator.release(*one);
  allocator.release(*two);
  EXPECT_EQ(allocator.figures().free_runs, 2U);
  EXPECT_EQ(allocator.allocate(101), std::nullopt);
}

TEST(ExtentAllocator, PrefersTheRunThatFitsExactly) {
  ExtentAllocator allocator;
  allocator.add_region(0, 1000);
  const auto small = allocator.allocate(321);
  const auto fence = allocator.allocate(1);
  ASSERT_TRUE(small && fence);
  allocator.release(*small);
  EXPECT_EQ(allocator.allocate(321), small);
}

TEST(ExtentAllocator, ServesTheTopOfTheAddressRange) {
  ExtentAllocator allocator;
  allocator.add_region(0xFFFF'FF00, 0x100);
  const auto all = allocator.allocate(0x100);
  ASSERT_TRUE(all);
  EXPECT_EQ(all->first, 0xFFFF'FF00);
  allocator.release(*all);
  EXPECT_EQ(allocator.free_granules(), 0x100U);
}

TEST(ExtentAllocator, SaysHowScatteredTheFreeSpaceIs) {
  ExtentAllocator allocator;
  allocator.add_region(0, 40);
  std::vector<Extent> live;
  live.reserve(4);
  for (int i = 0; i < 4; ++i)
    live.push_back(*allocator.allocate(10));
  allocator.release(live[0]);
  allocator.release(live[2]);
  EXPECT_EQ(allocator.figures().free, 20U);
  EXPECT_EQ(allocator.figures().largest_run, 10U);
  EXPECT_DOUBLE_EQ(allocator.figures().fragmentation(), 0.5);
}

TEST(ExtentAllocator, KeepsItsBooksSmall) {
  ExtentAllocator allocator;
  constexpr std::uint32_t kGranules = 1U << 20U;
  allocator.add_region(0, kGranules);
  std::vector<Extent> live;
  while (const auto extent = allocator.allocate(17))
    live.push_back(*extent);
  for (std::size_t i = 0; i < live.size(); i += 2)
    allocator.release(live[i]);
  // Every second block free is the worst case: one run beside every resident block.
  const std::uint64_t resident = live.size() / 2;
  EXPECT_LE(allocator.memory().value() / resident, 80U);
}

TEST(ExtentAllocatorDeathTest, AbortsOnADoubleRelease) {
  ExtentAllocator allocator;
  allocator.add_region(0, 1000);
  std::vector<Extent> live;
  live.reserve(3);
  for (int i = 0; i < 3; ++i)
    live.push_back(*allocator.allocate(200));
  allocator.release(live[0]);
  EXPECT_DEATH(allocator.release(live[0]), "bounds_.find");
  allocator.release(live[2]);
  allocator.release(live[1]);
  EXPECT_DEATH(allocator.release(live[1]), "page_free_");
}

TEST(ExtentAllocatorDeathTest, AbortsOnAForeignRelease) {
  ExtentAllocator allocator;
  allocator.add_region(0, 200);
  allocator.add_region(300, 100);
  const auto taken = allocator.allocate(150);
  ASSERT_TRUE(taken);
  EXPECT_DEATH(allocator.release({.first = 0, .count = 0}), "count > 0");
  EXPECT_DEATH(allocator.release({.first = 200, .count = 100}), "end_of");
  EXPECT_DEATH(allocator.release({.first = 100, .count = 150}), "end_of");
  EXPECT_DEATH(allocator.release({.first = 300, .count = 100}), "bounds_.find");
  EXPECT_DEATH(allocator.release({.first = 310, .count = 80}), "page_free_");
}

TEST(ExtentAllocatorDeathTest, AbortsOnAnOverlappingRegion) {
  ExtentAllocator allocator;
  allocator.add_region(100, 100);
  EXPECT_DEATH(allocator.add_region(150, 10), "end_of");
  EXPECT_DEATH(allocator.add_region(50, 51), "at->first");
  EXPECT_DEATH(allocator.add_region(100, 1), "at->first");
}

}  // namespace
}  // namespace cairn::storage
