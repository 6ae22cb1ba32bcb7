// What this process holds of the pool, by lend id.
#pragma once

#include "base/units.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace cairn::client {

struct HeldFrame {
  std::uint64_t lend = 0;    // 0: a free place
  std::uint64_t offset = 0;  // of its first extent, in slabs[0]
  // A place in SlabMap for each extent.
  std::array<std::uint32_t, kExtentsMax> slabs{};
  std::uint32_t extent_count = 0;
  bool is_reserved = false;  // lent for writing
  // The daemon that lent it is gone for good: giving it back concerns nobody else.
  bool is_local = false;
};

// Open addressing with linear probing. Takes memory only to grow. One thread at a time.
class LendTable {
 public:
  LendTable();
  std::size_t size() const noexcept { return size_; }
  // `frame.lend` is not 0. False, and nothing changes, when it is there already.
  bool insert(const HeldFrame& frame);
  // nullptr: unknown. Valid until the next insert() or erase().
  HeldFrame* find(std::uint64_t lend) noexcept;
  const HeldFrame* find(std::uint64_t lend) const noexcept;
  // Unknown ones are ignored.
  void erase(std::uint64_t lend) noexcept;
  template <typename Visit>
  void for_each(Visit visit) {
    for (HeldFrame& frame : places_) {
      if (frame.lend != 0) visit(frame);
    }
  }

 private:
  std::size_t home_of(std::uint64_t lend) const noexcept;
  std::size_t place_of(std::uint64_t lend) const noexcept;
  void grow();

  std::vector<HeldFrame> places_;  // a power of two
  std::size_t size_ = 0;
};

}  // namespace cairn::client
