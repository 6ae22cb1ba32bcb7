#include "client/lend_table.h"

#include <utility>

namespace cairn::client {
namespace {

constexpr std::size_t kPlacesMin = 256;

}  // namespace

LendTable::LendTable()
    : places_(kPlacesMin) {}

std::size_t LendTable::home_of(std::uint64_t lend) const noexcept {
  // Fibonacci hashing: ids are given in runs, and the high half of the product spreads them.
  constexpr std::uint64_t kGolden = 0x9E3779B97F4A7C15;
  return static_cast<std::size_t>((lend * kGolden) >> 32U) & (places_.size() - 1);
}

std::size_t LendTable::place_of(std::uint64_t lend) const noexcept {
  std::size_t place = home_of(lend);
  while (places_[place].lend != 0 && places_[place].lend != lend) {
    place = (place + 1) & (places_.size() - 1);
  }
  return place;
}

bool LendTable::insert(const HeldFrame& frame) {
  if (2 * (size_ + 1) > places_.size()) grow();
  HeldFrame& place = places_[place_of(frame.lend)];
  if (place.lend != 0) return false;
  place = frame;
  ++size_;
  return true;
}

HeldFrame* LendTable::find(std::uint64_t lend) noexcept {
  if (lend == 0) return nullptr;
  HeldFrame& place = places_[place_of(lend)];
  return place.lend == 0 ? nullptr : &place;
}

const HeldFrame* LendTable::find(std::uint64_t lend) const noexcept {
  if (lend == 0) return nullptr;
  const HeldFrame& place = places_[place_of(lend)];
  return place.lend == 0 ? nullptr : &place;
}

void LendTable::erase(std::uint64_t lend) noexcept {
  if (find(lend) == nullptr) return;
  const std::size_t mask = places_.size() - 1;
  std::size_t hole = place_of(lend);
  // Later entries of the run move up, so that no search stops early at the hole.
  for (std::size_t next = (hole + 1) & mask; places_[next].lend != 0; next = (next + 1) & mask) {
    const std::size_t home = home_of(places_[next].lend);
    if (((next - home) & mask) < ((next - hole) & mask)) continue;
    places_[hole] = places_[next];
    hole = next;
  }
  places_[hole] = HeldFrame{};
  --size_;
}

void LendTable::grow() {
  std::vector<HeldFrame> old = std::exchange(places_, std::vector<HeldFrame>(2 * places_.size()));
  for (const HeldFrame& frame : old) {
    if (frame.lend != 0) places_[place_of(frame.lend)] = frame;
  }
}

}  // namespace cairn::client
