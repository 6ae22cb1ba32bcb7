#include "storage/boundary_map.h"

#include "base/check.h"

#include <bit>
#include <utility>

namespace cairn::storage {
namespace {

constexpr std::size_t kSlotsMin = 64;

}  // namespace

BoundaryMap::BoundaryMap()
    : slots_(kSlotsMin),
      shift_(64U - static_cast<unsigned>(std::countr_zero(kSlotsMin))) {}

std::size_t BoundaryMap::home_of(std::uint32_t granule) const noexcept {
  // Fibonacci hashing (Knuth, volume 3, 6.4) of groups of eight, so that the granules on both sides
  // of a boundary are mostly in one cache line.
  const std::uint64_t group = ((granule / 8) * 0x9E3779B97F4A7C15ULL) >> shift_;
  return static_cast<std::size_t>((group & ~std::uint64_t{7}) | (granule % 8));
}

std::size_t BoundaryMap::slot_of(std::uint32_t granule) const noexcept {
  const std::size_t mask = slots_.size() - 1;
  std::size_t at = home_of(granule);
  while (slots_[at].node != kNone && slots_[at].granule != granule)
    at = (at + 1) & mask;
  return at;
}

std::uint32_t BoundaryMap::find(std::uint32_t granule) const noexcept {
  return slots_[slot_of(granule)].node;
}

void BoundaryMap::insert(std::uint32_t granule, std::uint32_t node) noexcept {
  if ((size_ + 1) * 4 > slots_.size() * 3) grow();
  Slot& slot = slots_[slot_of(granule)];
  CAIRN_CHECK(slot.node == kNone);
  slot = {.granule = granule, .node = node};
  ++size_;
}

void BoundaryMap::assign(std::uint32_t granule, std::uint32_t node) noexcept {
  Slot& slot = slots_[slot_of(granule)];
  CAIRN_CHECK(slot.node != kNone);
  slot.node = node;
}

void BoundaryMap::erase(std::uint32_t granule) noexcept {
  const std::size_t mask = slots_.size() - 1;
  std::size_t hole = slot_of(granule);
  CAIRN_CHECK(slots_[hole].node != kNone);
  --size_;
  for (std::size_t at = (hole + 1) & mask; slots_[at].node != kNone; at = (at + 1) & mask) {
    // An entry may move back to the hole unless its home lies after the hole.
    const std::size_t distance = (at - home_of(slots_[at].granule)) & mask;
    if (distance < ((at - hole) & mask)) continue;
    slots_[hole] = slots_[at];
    hole = at;
  }
  slots_[hole] = Slot{};
}

void BoundaryMap::grow() noexcept {
  std::vector<Slot> old = std::exchange(slots_, std::vector<Slot>(slots_.size() * 2));
  --shift_;
  for (const Slot& slot : old) {
    if (slot.node != kNone) slots_[slot_of(slot.granule)] = slot;
  }
}

}  // namespace cairn::storage
