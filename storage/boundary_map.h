// From the first and the last granule of every free run to its node: what coalescing asks. Open
// addressing with linear probing; removal shifts entries back, so no tombstones gather.
#pragma once

#include "base/units.h"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace cairn::storage {

// One owner. Grows by doubling at three quarters full and never shrinks; a doubling moves every
// entry, so its cost is spread over as many insertions.
class BoundaryMap {
 public:
  static constexpr std::uint32_t kNone = 0xFFFF'FFFF;

  BoundaryMap();
  // kNone if `granule` bounds no free run.
  std::uint32_t find(std::uint32_t granule) const noexcept;
  // `granule` is absent; `node` is not kNone.
  void insert(std::uint32_t granule, std::uint32_t node) noexcept;
  // `granule` is present.
  void assign(std::uint32_t granule, std::uint32_t node) noexcept;
  // `granule` is present.
  void erase(std::uint32_t granule) noexcept;
  std::size_t size() const noexcept { return size_; }
  ByteCount memory() const noexcept { return ByteCount(slots_.capacity() * sizeof(Slot)); }

 private:
  struct Slot {
    std::uint32_t granule = 0;
    std::uint32_t node = kNone;
  };
  std::size_t home_of(std::uint32_t granule) const noexcept;
  // The slot of `granule`, or the empty slot where its search ends.
  std::size_t slot_of(std::uint32_t granule) const noexcept;
  void grow() noexcept;

  std::vector<Slot> slots_;  // a power of two
  std::size_t size_ = 0;
  unsigned shift_ = 0;  // 64 minus the bits of an index
};

}  // namespace cairn::storage
