#include "storage/pool.h"

#include "storage/frame_tier.h"
#include "tests/support/sim_pool_memory.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

namespace cairn::storage {
namespace {

using cairn::testing::SimMachine;
using cairn::testing::SimPoolMemory;

constexpr std::uint32_t kGeneration = 9;

PoolOptions options_of(ByteCount size, ByteCount slab_bytes = 64_MiB) {
  return {.size = size, .slab_bytes = slab_bytes, .populate_threads = 0};
}

class PoolTest : public ::testing::Test {
 protected:
  void SetUp() override { memory_ = std::move(*machine_.start_daemon()); }
  std::unique_ptr<Pool> open(const PoolOptions& options) {
    auto pool = Pool::open(options, *memory_, kGeneration);
    EXPECT_TRUE(pool) << pool.error().what;
    return std::move(*pool);
  }
  // Steps until nothing comes any more; what came, and the failures on the way.
  struct Steps {
    std::vector<Slab> slabs;
    std::vector<ErrorCode> failures;
    ByteCount bytes() const {
      ByteCount sum;
      for (const Slab& slab : slabs)
        sum += ByteCount(slab.bytes.size());
      return sum;
    }
  };
  static Steps run(Pool& pool, int steps = 40) {
    Steps all;
    for (int i = 0; i < steps; ++i) {
      const auto ready = pool.step();
      if (!ready) {
        all.failures.push_back(ready.error().code);
        continue;
      }
      all.slabs.insert(all.slabs.end(), ready->begin(), ready->end());
    }
    return all;
  }

  SimMachine machine_;
  std::unique_ptr<SimPoolMemory> memory_;
};

TEST_F(PoolTest, NamesTheFirstOptionThatIsOutOfRange) {
  EXPECT_EQ(options_of(64_MiB).validate(), std::nullopt);
  EXPECT_EQ(PoolOptions().validate(), std::nullopt);
  EXPECT_STREQ(*options_of(63_MiB).validate(), "size");
  EXPECT_STREQ(*options_of(16_GiB * 1024 + 1_B).validate(), "size");
  EXPECT_STREQ(*options_of(1_GiB, 32_MiB).validate(), "slab_bytes");
  EXPECT_STREQ(*options_of(1_GiB, 2_GiB).validate(), "slab_bytes");
  EXPECT_STREQ(*options_of(1_GiB, 96_MiB).validate(), "slab_bytes");
  PoolOptions options;
  options.populate_threads = 65;
  EXPECT_STREQ(*options.validate(), "populate_threads");
  EXPECT_EQ(Pool::open(options, *memory_, 1).error().code, ErrorCode::kInvalid);
}

TEST_F(PoolTest, OpensBeforeAnythingIsPopulated) {
  const auto pool = open(options_of(200_MiB));
  EXPECT_FALSE(pool->is_complete());
  EXPECT_TRUE(pool->ready_slabs().empty());
  EXPECT_EQ(machine_.resident(), 0_B);
}

TEST_F(PoolTest, TellsOfEverySlabOnceAndIsThenComplete) {
  const auto pool = open(options_of(200_MiB));
  const Steps all = run(*pool);
  ASSERT_EQ(all.slabs.size(), 4U);
  for (std::uint32_t i = 0; i < 4; ++i) {
    EXPECT_EQ(all.slabs[i].number, i);
    EXPECT_EQ(all.slabs[i].generation, kGeneration);
    EXPECT_GE(all.slabs[i].fd, 0);
    EXPECT_EQ(all.slabs[i].bytes.size(), (i < 3 ? 64_MiB : 8_MiB).value());
  }
  EXPECT_TRUE(pool->is_complete());
  EXPECT_EQ(pool->ready_slabs().size(), 4U);
  EXPECT_EQ(machine_.resident(), 200_MiB);
}

TEST_F(PoolTest, IsOneSmallerSlabWhenThePoolIsSmallerThanASlab) {
  const auto pool = open(options_of(100_MiB + 1_KiB, 1_GiB));
  const Steps all = run(*pool);
  ASSERT_EQ(all.slabs.size(), 1U);
  EXPECT_EQ(all.bytes(), 100_MiB);
  EXPECT_TRUE(pool->is_complete());
}

TEST_F(PoolTest, ServesSlabsWhileOthersAreBeingPopulated) {
  const auto pool = open(options_of(256_MiB, 128_MiB));
  EXPECT_EQ(run(*pool, 1).slabs.size(), 0U);
  EXPECT_EQ(run(*pool, 1).slabs.size(), 1U);
  EXPECT_FALSE(pool->is_complete());
  EXPECT_EQ(run(*pool, 2).slabs.size(), 1U);
  EXPECT_TRUE(pool->is_complete());
}

TEST_F(PoolTest, PopulatesByItsOwnThreads) {
  PoolOptions options = options_of(512_MiB);
  options.populate_threads = 3;
  const auto pool = open(options);
  std::vector<std::uint32_t> numbers;
  while (!pool->is_complete()) {
    const auto ready = pool->step();
    ASSERT_TRUE(ready);
    for (const Slab& slab : *ready)
      numbers.push_back(slab.number);
  }
  EXPECT_EQ(numbers, (std::vector<std::uint32_t>{0, 1, 2, 3, 4, 5, 6, 7}));
}

TEST_F(PoolTest, EndsItsThreadsInTheMiddleOfTheWork) {
  PoolOptions options = options_of(16_GiB);
  options.populate_threads = 4;
  const auto pool = open(options);
}

TEST_F(PoolTest, StaysAsLargeAsItIsWhenTheMachineIsFull) {
  machine_.faults.space = 150_MiB;
  const auto pool = open(options_of(256_MiB));
  const Steps all = run(*pool);
  EXPECT_EQ(all.bytes(), 128_MiB);
  // Both slabs that failed were given back, and each failure was told.
  EXPECT_EQ(all.failures, (std::vector<ErrorCode>{ErrorCode::kNoSpace, ErrorCode::kNoSpace}));
  EXPECT_EQ(machine_.resident(), 128_MiB);
  EXPECT_FALSE(pool->is_complete());
  EXPECT_EQ(pool->ready_slabs().size(), 2U);
}

TEST_F(PoolTest, SaysThatPopulatingFailed) {
  machine_.faults.populates_max = 1;
  const auto pool = open(options_of(128_MiB));
  const Steps all = run(*pool);
  EXPECT_EQ(all.bytes(), 64_MiB);
  EXPECT_EQ(all.failures, std::vector<ErrorCode>{ErrorCode::kIo});
}

TEST_F(PoolTest, RefusesToOpenWhenASlabCannotBeMade) {
  machine_.faults.creates_max = 1;
  EXPECT_EQ(Pool::open(options_of(128_MiB), *memory_, 1).error().code, ErrorCode::kIo);
}

TEST_F(PoolTest, StartsWithWhatPredecessorsLeaveAndGrowsAsTheyGo) {
  const std::uint64_t one = machine_.add_predecessor(64_MiB, "pid 1 (one)");
  const std::uint64_t two = machine_.add_predecessor(128_MiB, "pid 2 (two)");
  const auto pool = open(options_of(256_MiB));
  EXPECT_EQ(pool->predecessors().bytes, 192_MiB);
  EXPECT_EQ(pool->predecessors().holders, (std::vector<std::string>{"pid 1 (one)", "pid 2 (two)"}));
  EXPECT_EQ(run(*pool).bytes(), 64_MiB);
  EXPECT_FALSE(pool->is_complete());

  machine_.release_predecessor(two);
  EXPECT_EQ(run(*pool).bytes(), 128_MiB);
  EXPECT_EQ(pool->predecessors().bytes, 64_MiB);

  machine_.release_predecessor(one);
  EXPECT_EQ(run(*pool).bytes(), 64_MiB);
  EXPECT_TRUE(pool->is_complete());
  EXPECT_EQ(machine_.resident(), 256_MiB);
}

TEST_F(PoolTest, HasNoSlabWhilePredecessorsHoldEverything) {
  const std::uint64_t holder = machine_.add_predecessor(1_GiB, "pid 1 (one)");
  const auto pool = open(options_of(256_MiB));
  EXPECT_EQ(run(*pool).bytes(), 0_B);
  machine_.release_predecessor(holder);
  EXPECT_EQ(run(*pool).bytes(), 256_MiB);
}

TEST_F(PoolTest, NeverExceedsItsSizeWhateverPredecessorsDo) {
  std::vector<std::uint64_t> holders;
  for (std::uint64_t i = 0; i < 20; ++i)
    holders.push_back(machine_.add_predecessor(2_MiB * (20 + i), "pid"));
  const PoolOptions options = options_of(1_GiB, 256_MiB);
  const auto pool = open(options);
  std::uint32_t highest = 0;
  for (const std::uint64_t holder : holders) {
    machine_.release_predecessor(holder);
    for (const Slab& slab : run(*pool, 4).slabs)
      highest = std::max(highest, slab.number);
    EXPECT_LE(machine_.resident().value(), std::max(1_GiB, pool->predecessors().bytes).value());
  }
  run(*pool);
  EXPECT_TRUE(pool->is_complete());
  EXPECT_LT(highest, slabs_max(options));
}

TEST_F(PoolTest, AsksAgainAfterARefusalWhenAPredecessorHasGone) {
  const std::uint64_t holder = machine_.add_predecessor(64_MiB, "pid 1 (one)");
  machine_.faults.space = 128_MiB;
  const auto pool = open(options_of(192_MiB));
  const Steps before = run(*pool);
  EXPECT_EQ(before.bytes(), 64_MiB);
  EXPECT_EQ(before.failures, std::vector<ErrorCode>{ErrorCode::kNoSpace});
  machine_.release_predecessor(holder);
  EXPECT_EQ(run(*pool).bytes(), 64_MiB);
}

TEST_F(PoolTest, FeedsADramTierOfTheSameOptions) {
  const PoolOptions options = options_of(200_MiB);
  const auto pool = open(options);
  DramTier tier({.slab_bytes = options.slab_bytes, .slabs_max = slabs_max(options)});
  for (const Slab& slab : run(*pool).slabs)
    tier.add_slab(slab);
  EXPECT_EQ(tier.usage().capacity, 200_MiB);
  EXPECT_TRUE(tier.allocate(16_MiB));
}

TEST(SlabsMax, StaysWithinTheGranulesOfATier) {
  for (const ByteCount slab : {64_MiB, 1_GiB}) {
    const PoolOptions options{.size = 16_GiB * 1024, .slab_bytes = slab};
    EXPECT_EQ(slab * slabs_max(options), 16_GiB * 1024);
  }
  EXPECT_EQ(slabs_max(options_of(1_GiB, 1_GiB)), 17U);
}

}  // namespace
}  // namespace cairn::storage
