#include "base/bounded_queue.h"

#include "base/random.h"
#include "tests/support/seed.h"

#include <gtest/gtest.h>

#include <deque>
#include <memory>
#include <string>

namespace cairn {
namespace {

TEST(BoundedQueue, GivesItemsBackInTheirOrder) {
  BoundedQueue<std::string> queue(3);
  EXPECT_TRUE(queue.push("a"));
  EXPECT_TRUE(queue.push("b"));
  EXPECT_EQ(queue.pop(), "a");
  EXPECT_EQ(queue.pop(), "b");
  EXPECT_EQ(queue.pop(), std::nullopt);
}

TEST(BoundedQueue, RefusesAnItemWhenFullAndChangesNothing) {
  BoundedQueue<int> queue(2);
  EXPECT_TRUE(queue.is_empty());
  EXPECT_TRUE(queue.push(1));
  EXPECT_TRUE(queue.push(2));
  EXPECT_TRUE(queue.is_full());
  EXPECT_FALSE(queue.push(3));
  EXPECT_EQ(queue.size(), 2U);
  EXPECT_EQ(queue.pop(), 1);
  EXPECT_EQ(queue.pop(), 2);
  EXPECT_TRUE(queue.is_empty());
}

TEST(BoundedQueue, CarriesMoveOnlyItems) {
  BoundedQueue<std::unique_ptr<int>> queue(1);
  EXPECT_TRUE(queue.push(std::make_unique<int>(9)));
  const auto item = queue.pop();
  ASSERT_TRUE(item.has_value());
  EXPECT_EQ(**item, 9);
}

TEST(BoundedQueue, BehavesAsADequeWithABoundUnderAnyOrderOfCalls) {
  const std::uint64_t seed = testing::test_seed();
  SCOPED_TRACE("CAIRN_SEED=" + std::to_string(seed));
  SeededRandom random(seed);
  for (std::size_t capacity = 1; capacity <= 5; ++capacity) {
    BoundedQueue<std::uint64_t> queue(capacity);
    std::deque<std::uint64_t> model;
    for (std::uint64_t step = 0; step < 2'000; ++step) {
      if (random.below(2) == 0) {
        const bool has_room = model.size() < capacity;
        ASSERT_EQ(queue.push(step), has_room);
        if (has_room) model.push_back(step);
      } else if (model.empty()) {
        ASSERT_EQ(queue.pop(), std::nullopt);
      } else {
        ASSERT_EQ(queue.pop(), model.front());
        model.pop_front();
      }
      ASSERT_EQ(queue.size(), model.size());
      ASSERT_EQ(queue.is_full(), model.size() == capacity);
    }
  }
}

TEST(BoundedQueueDeathTest, WithoutRoomForAnItemIsABug) {
  EXPECT_DEATH(BoundedQueue<int>(0), "check_failed");
}

}  // namespace
}  // namespace cairn
