#include "storage/touch_order.h"

namespace cairn::storage {
namespace {

constexpr std::size_t kSetSlotsMin = 256;  // a power of two

}  // namespace

RecordSet::RecordSet()
    : slots_(kSetSlotsMin) {}

bool RecordSet::insert(RecordNumber number) {
  if (size_ * 2 >= slots_.size()) grow();
  return place(number);
}

bool RecordSet::place(RecordNumber number) {
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
    if (slot != 0) place(slot - 1);
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
