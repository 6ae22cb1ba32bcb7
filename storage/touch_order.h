// In which order a use of chains touches blocks: every block before its parent, up to the root.
#pragma once

#include "storage/store.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace cairn::storage {

// Ancestors that one touch walks up to.
inline constexpr std::size_t kAncestorsMax = 16'384;

// One block that is used. A block that this very call handed to the policy carries the number of
// that insertion, from 1 on: it need not be touched as well while the order is right without.
struct TouchTip {
  BlockRef ref;
  std::uint32_t insertion = 0;
};

// Numbers that were seen, in a table of twice their count.
class RecordSet {
 public:
  RecordSet();
  // False when it was in already.
  bool insert(RecordNumber number);

 private:
  void grow();
  // insert() where there is room.
  bool place(RecordNumber number);
  std::vector<std::uint32_t> slots_;  // number + 1; 0 is free
  std::size_t size_ = 0;
};

class TouchOrder {
 public:
  // Adds a block and its resident ancestors, as far as they are not in yet. A chain's blocks are
  // added root first. parent_of(BlockRef) gives the resident parent or nullopt.
  template <typename ParentOf>
  void add(const TouchTip& tip, ParentOf&& parent_of) {
    if (!seen_.insert(tip.ref.record)) return;
    segments_.push_back(steps_.size());
    steps_.push_back(tip);
    BlockRef at = tip.ref;
    for (std::size_t step = 0; step < kAncestorsMax; ++step) {
      const std::optional<BlockRef> parent = parent_of(at);
      if (!parent || !seen_.insert(parent->record)) return;
      steps_.push_back({*parent, 0});
      at = *parent;
    }
  }
  // The blocks to touch, first to last. Each hangs below what comes after it, whatever the order of
  // add(): a later add() stopped at a block of an earlier one, so the later comes first.
  std::vector<TouchTip> take();

 private:
  RecordSet seen_;
  std::vector<TouchTip> steps_;
  std::vector<std::size_t> segments_;  // where each add()'s steps begin
};

}  // namespace cairn::storage
