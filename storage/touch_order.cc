#include "storage/touch_order.h"

namespace cairn::storage {
namespace {

constexpr std::size_t kSetSlotsMin = 256;  // a power of two

}  // namespace

RecordSet::RecordSet()
    : slots_(kSetSlotsMin) {}

bool RecordSet::insert(RecordNumber number) {
  if (size_ * 2 >= slots_.size()) grow();
  const std::size_t mask = slots_.size() - 1;
  // The golden ratio spreads neighbouring numbers; the slots are never more than half full.
  std::size_t at = (std::size_t{number} * 0x9E3779B97F4A7C15ULL >> 32U) & mask;
  while (slots_[at] != 0) {
    if (slots_[at] == number + 1) return false;
    at = (at + 1) & mask;
  }
  slots_[at] = number + 1;
  ++size_;
  return true;
}

void RecordSet::grow() {
  std::vector<std::uint32_t> old(slots_.size() * 4);
  old.swap(slots_);
  size_ = 0;
  for (const std::uint32_t slot : old)
    if (slot != 0) insert(slot - 1);
}

std::optional<BlockRef> live_parent(const RecordTable& records, BlockRef block) noexcept {
  const Record& record = records[block.record];
  const ParentLink link = record.parent();
  // The record of a block that left meanwhile may hold anything.
  if (!record.pin_word().is_still(block.generation)) return std::nullopt;
  if (link.record == ParentLink::kNoParent) return std::nullopt;
  if (!records[link.record].pin_word().view().is_live(link.generation)) return std::nullopt;
  return BlockRef{link.record, link.generation};
}

void TouchOrder::add(const TouchTip& tip) {
  if (!seen_.insert(tip.ref.record)) return;
  segments_.push_back(steps_.size());
  steps_.push_back(tip);
  BlockRef at = tip.ref;
  for (std::size_t step = 0; step < kAncestorsMax; ++step) {
    const std::optional<BlockRef> parent = live_parent(records_, at);
    if (!parent || !seen_.insert(parent->record)) return;
    steps_.push_back({*parent, 0});
    at = *parent;
  }
}

std::vector<TouchTip> TouchOrder::take() {
  std::vector<TouchTip> order;
  order.reserve(steps_.size());
  for (std::size_t i = segments_.size(); i > 0; --i) {
    const std::size_t begin = segments_[i - 1];
    const std::size_t end = i < segments_.size() ? segments_[i] : steps_.size();
    for (std::size_t step = begin; step < end; ++step)
      order.push_back(steps_[step]);
  }
  return order;
}

}  // namespace cairn::storage
