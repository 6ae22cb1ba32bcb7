// In which order a use of chains touches blocks: every block before its parent, up to the root.
#pragma once

#include "storage/record_table.h"
#include "storage/store.h"

#include <cstdint>
#include <span>
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
  std::vector<std::uint32_t> slots_;  // number + 1; 0 is free
  std::size_t size_ = 0;
};

// Collected without the mutex: links are read as they stand, and whoever touches checks that each
// ref is still alive.
class TouchOrder {
 public:
  explicit TouchOrder(const RecordTable& records) noexcept
      : records_(records) {}

  // Adds a block and its resident ancestors, as far as they are not in yet. A chain's blocks are
  // added root first.
  void add(const TouchTip& tip);
  // The blocks to touch, first to last. Each hangs below what comes after it, whatever the order of
  // add(): a later add() stopped at a block of an earlier one, so the later comes first.
  std::vector<TouchTip> take();

 private:
  const RecordTable& records_;
  RecordSet seen_;
  std::vector<TouchTip> steps_;
  std::vector<std::size_t> segments_;  // where each add()'s steps begin
};

// The parent of a live block, if it is live too.
std::optional<BlockRef> live_parent(const RecordTable& records, BlockRef block) noexcept;

}  // namespace cairn::storage
