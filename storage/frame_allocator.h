// Room for frames: one run where one fits, else up to four pieces, so that free space that lies
// scattered is used before anything is evicted for it.
#pragma once

#include "base/units.h"
#include "storage/extent.h"
#include "storage/extent_allocator.h"

#include <cstdint>
#include <optional>

namespace cairn::storage {

// How a tier lays out a frame.
struct FrameShape {
  ByteCount granule = 4_KiB;          // a power of two, 4 KiB to 256 KiB
  std::uint32_t header_granules = 0;  // of the header page, before the payload: 1 inline, else 0
};

// One thread at a time. Never moves anything that is allocated.
class FrameAllocator {
 public:
  explicit FrameAllocator(FrameShape shape) noexcept;

  void add_region(std::uint32_t first, std::uint32_t count) noexcept {
    extents_.add_region(first, count);
  }
  // Room for the header and `payload` bytes, 1 B to 16 MiB: one extent, or two to four of at least
  // 256 KiB of which all but the last hold whole chunks. nullopt: no room as things lie, and
  // nothing has changed.
  std::optional<ExtentList> allocate(ByteCount payload) noexcept;
  // What allocate() gave.
  void release(const ExtentList& extents) noexcept;

  // Granules of a frame, header included.
  std::uint32_t granules_for(ByteCount payload) const noexcept;
  const FrameShape& shape() const noexcept { return shape_; }
  const ExtentAllocator& extents() const noexcept { return extents_; }

 private:
  std::optional<Extent> allocate_piece(std::uint32_t header, std::uint32_t payload) noexcept;
  std::optional<ExtentList> compose(std::uint32_t payload) noexcept;

  FrameShape shape_;
  std::uint32_t chunk_granules_;
  ExtentAllocator extents_;
};

}  // namespace cairn::storage
