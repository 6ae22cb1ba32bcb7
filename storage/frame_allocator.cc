#include "storage/frame_allocator.h"

#include "base/check.h"

#include <algorithm>
#include <bit>

namespace cairn::storage {

FrameAllocator::FrameAllocator(FrameShape shape) noexcept
    : shape_(shape),
      chunk_granules_(static_cast<std::uint32_t>(kChunkBytes / shape.granule)) {
  CAIRN_CHECK(std::has_single_bit(shape.granule.value()));
  CAIRN_CHECK(shape.granule >= kHeaderBytes);
  CAIRN_CHECK(shape.granule <= kChunkBytes);
}

std::uint32_t FrameAllocator::granules_for(ByteCount payload) const noexcept {
  CAIRN_CHECK(payload.value() > 0);
  CAIRN_CHECK(payload <= kBlockBytesMax);
  return shape_.header_granules +
         static_cast<std::uint32_t>(divide_up(payload.value(), shape_.granule.value()));
}

std::optional<ExtentList> FrameAllocator::allocate(ByteCount payload) noexcept {
  const std::uint32_t granules = granules_for(payload);
  if (extents_.free_granules() < granules) return std::nullopt;
  if (const auto whole = extents_.allocate(granules)) {
    ExtentList frame;
    frame.push(*whole);
    return frame;
  }
  return compose(granules - shape_.header_granules);
}

// The largest piece that can be had: `header` granules and as many whole chunks as fit in one run
// and leave at least a chunk of the `payload` granules for a last piece.
std::optional<Extent> FrameAllocator::allocate_piece(std::uint32_t header,
                                                     std::uint32_t payload) noexcept {
  if (payload < 2 * chunk_granules_) return std::nullopt;
  const std::uint32_t run = extents_.largest_run();
  if (run < header + chunk_granules_) return std::nullopt;
  const std::uint32_t chunks = std::min(run - header, payload - chunk_granules_) / chunk_granules_;
  return extents_.allocate(header + chunks * chunk_granules_);
}

std::optional<ExtentList> FrameAllocator::compose(std::uint32_t payload) noexcept {
  ExtentList frame;
  std::uint32_t header = shape_.header_granules;
  while (frame.size() + 1 < kExtentsMax) {
    const auto piece = allocate_piece(header, payload);
    if (!piece) break;
    frame.push(*piece);
    payload -= piece->count - header;
    header = 0;
    if (const auto last = extents_.allocate(payload)) {
      frame.push(*last);
      return frame;
    }
  }
  release(frame);
  return std::nullopt;
}

void FrameAllocator::release(const ExtentList& extents) noexcept {
  for (const Extent& extent : extents.items())
    extents_.release(extent);
}

}  // namespace cairn::storage
