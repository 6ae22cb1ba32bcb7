#include "storage/touch_order.h"

#include <gtest/gtest.h>

#include <map>

namespace cairn::storage {
namespace {

// Record n's parent is parents[n]; 0 has none.
class Tree {
 public:
  explicit Tree(std::map<RecordNumber, RecordNumber> parents)
      : parents_(std::move(parents)) {}
  std::vector<RecordNumber> order(const std::vector<RecordNumber>& tips) const {
    TouchOrder touch;
    for (const RecordNumber tip : tips) {
      touch.add({{tip, 1}, 0}, [this](BlockRef block) -> std::optional<BlockRef> {
        const auto found = parents_.find(block.record);
        if (found == parents_.end()) return std::nullopt;
        return BlockRef{found->second, 1};
      });
    }
    std::vector<RecordNumber> out;
    for (const TouchTip& step : touch.take())
      out.push_back(step.ref.record);
    return out;
  }

 private:
  std::map<RecordNumber, RecordNumber> parents_;
};

using Order = std::vector<RecordNumber>;

TEST(TouchOrder, AChainIsTouchedLeafFirstUpToItsRoot) {
  const Tree tree({{4, 3}, {3, 2}, {2, 1}});
  EXPECT_EQ(tree.order({3, 4}), (Order{4, 3, 2, 1}));
  EXPECT_EQ(tree.order({4}), (Order{4, 3, 2, 1}));
  EXPECT_EQ(tree.order({4, 3}), (Order{4, 3, 2, 1}));
}

TEST(TouchOrder, BlocksWithoutLinksAreTouchedLastToFirst) {
  EXPECT_EQ(Tree({}).order({1, 2, 3}), (Order{3, 2, 1}));
}

TEST(TouchOrder, ABranchComesBeforeTheBlockItHangsFrom) {
  const Tree tree({{2, 1}, {3, 2}, {12, 2}, {13, 12}, {22, 12}});
  EXPECT_EQ(tree.order({3, 13, 22}), (Order{22, 13, 12, 3, 2, 1}));
}

TEST(TouchOrder, EveryBlockIsTouchedOnce) {
  const Tree tree({{2, 1}, {3, 1}});
  EXPECT_EQ(tree.order({2, 3, 2, 1}), (Order{3, 2, 1}));
}

TEST(TouchOrder, LinksInACircleEnd) {
  EXPECT_EQ(Tree({{1, 2}, {2, 1}}).order({1}), (Order{1, 2}));
}

TEST(TouchOrder, WalksUpNoFurtherThanItsBound) {
  std::map<RecordNumber, RecordNumber> parents;
  for (RecordNumber n = 1; n <= kAncestorsMax + 100; ++n)
    parents[n] = n - 1;
  const Order order = Tree(parents).order({kAncestorsMax + 100});
  EXPECT_EQ(order.size(), kAncestorsMax + 1);
  EXPECT_EQ(order.back(), 100U);
}

TEST(RecordSet, HoldsWhatWasPutInAfterItHasGrown) {
  RecordSet set;
  for (RecordNumber n = 0; n < 10'000; ++n)
    EXPECT_TRUE(set.insert(n * 64));
  for (RecordNumber n = 0; n < 10'000; ++n)
    EXPECT_FALSE(set.insert(n * 64));
}

}  // namespace
}  // namespace cairn::storage
