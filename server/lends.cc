#include "server/lends.h"

#include <bit>
#include <utility>

namespace cairn::server {

bool LentAccount::try_add(ByteCount bytes, ByteCount max) noexcept {
  std::uint64_t held = bytes_.load(std::memory_order_relaxed);
  do {
    if (bytes > max || held > (max - bytes).value()) return false;
  } while (!bytes_.compare_exchange_weak(held, held + bytes.value(), std::memory_order_relaxed));
  return true;
}

void LentAccount::add(ByteCount bytes) noexcept {
  bytes_.fetch_add(bytes.value(), std::memory_order_relaxed);
}

void LentAccount::sub(ByteCount bytes) noexcept {
  const std::uint64_t before = bytes_.fetch_sub(bytes.value(), std::memory_order_relaxed);
  CAIRN_CHECK(before >= bytes.value());
}

LendTable::LendTable()
    : slots_(kSlotsMin) {}

std::size_t LendTable::home_of(LendId id) const noexcept {
  // Ids come in rows, so the multiplication spreads rows of several threads over the table.
  constexpr std::uint64_t kGolden = 0x9E3779B97F4A7C15;
  const int shift = 64 - std::countr_zero(slots_.size());
  return static_cast<std::size_t>((id * kGolden) >> static_cast<unsigned>(shift));
}

std::size_t LendTable::slot_of(LendId id) const noexcept {
  std::size_t slot = home_of(id);
  while (slots_[slot].id != id && slots_[slot].id != 0)
    slot = next(slot);
  return slot;
}

void LendTable::insert(const Lend& lend) {
  CAIRN_CHECK(lend.id != 0);
  if ((size_ + 1) * 4 > slots_.size() * 3) resize(slots_.size() * 2);
  const std::size_t slot = slot_of(lend.id);
  CAIRN_CHECK(slots_[slot].id == 0);
  slots_[slot] = lend;
  bytes_ += lend.bytes();
  ++size_;
}

const Lend* LendTable::find(LendId id) const noexcept {
  if (id == 0) return nullptr;
  const Lend& lend = slots_[slot_of(id)];
  return lend.id == id ? &lend : nullptr;
}

void LendTable::erase(LendId id) noexcept {
  std::size_t hole = slot_of(id);
  CAIRN_CHECK(id != 0 && slots_[hole].id == id);
  bytes_ -= slots_[hole].bytes();
  // Whoever stands behind the hole and was pushed past it moves up, so that no search ends early.
  for (std::size_t slot = next(hole); slots_[slot].id != 0; slot = next(slot)) {
    const std::size_t mask = slots_.size() - 1;
    const std::size_t from_home = (slot - home_of(slots_[slot].id)) & mask;
    const std::size_t from_hole = (slot - hole) & mask;
    if (from_home < from_hole) continue;
    slots_[hole] = slots_[slot];
    hole = slot;
  }
  slots_[hole] = Lend{};
  --size_;
}

std::vector<Lend> LendTable::take_all() {
  std::vector<Lend> lends;
  lends.reserve(size_);
  for (const Lend& lend : slots_) {
    if (lend.id != 0) lends.push_back(lend);
  }
  slots_ = std::vector<Lend>(kSlotsMin);
  size_ = 0;
  bytes_ = ByteCount();
  return lends;
}

void LendTable::resize(std::size_t slots) {
  std::vector<Lend> old = std::exchange(slots_, std::vector<Lend>(slots));
  for (const Lend& lend : old) {
    if (lend.id != 0) slots_[slot_of(lend.id)] = lend;
  }
}

}  // namespace cairn::server
