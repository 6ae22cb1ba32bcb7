// Where bytes lie in a tier: runs of granules, and the same runs as a client sees them.
#pragma once

#include "base/check.h"
#include "base/units.h"

#include <array>
#include <cstdint>
#include <span>

namespace cairn::storage {

// `count` granules from `first`, counted over all slabs of one tier. A granule is 4 KiB in DRAM and
// 64 KiB in HBM; 32 bits of 4 KiB granules are 16 TiB.
struct Extent {
  std::uint32_t first = 0;
  std::uint32_t count = 0;
  friend bool operator==(const Extent&, const Extent&) noexcept = default;
};

// The one to four extents of a frame, in payload order. Every extent but the last holds whole
// chunks (multiples of 256 KiB of payload); the first begins with the header page where the tier
// keeps headers inline.
class ExtentList {
 public:
  std::span<const Extent> items() const noexcept { return {items_.data(), size_}; }
  std::size_t size() const noexcept { return size_; }
  bool is_empty() const noexcept { return size_ == 0; }
  void push(Extent extent) noexcept {
    CAIRN_CHECK(size_ < kExtentsMax);
    items_[size_++] = extent;
  }
  friend bool operator==(const ExtentList&, const ExtentList&) noexcept = default;

 private:
  std::array<Extent, kExtentsMax> items_{};
  std::uint8_t size_ = 0;
};

// An extent as the wire names it: bytes [offset, offset + bytes) of slab `slab` in its life number
// `generation`.
struct SlabExtent {
  std::uint32_t slab = 0;
  std::uint32_t generation = 0;
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;
  friend bool operator==(const SlabExtent&, const SlabExtent&) noexcept = default;
};

}  // namespace cairn::storage
