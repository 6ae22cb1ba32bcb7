// The tiers of frames: DRAM, whose header pages lie before the payload in the slabs that clients
// map, and device memory, whose header pages stay in the host's.
#pragma once

#include "base/memory.h"
#include "base/units.h"
#include "storage/extent.h"
#include "storage/frame_allocator.h"
#include "storage/pool.h"
#include "storage/tier.h"

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace cairn::storage {

// What both tiers share: the space of frames and where its slabs lie. Slab n holds the granules
// from n * slab_bytes / granule on, so an extent names its slab by a division. The table of slabs
// has its size from the start: a slab is added under the store's mutex while readers of other slabs
// go on.
class FrameTier : public Tier {
 public:
  ByteCount granule() const noexcept override { return frames_.shape().granule; }
  std::optional<ExtentList> allocate(ByteCount payload) noexcept override;
  void release(const ExtentList& extents) noexcept override;
  PayloadSpans payload(const ExtentList& extents, ByteCount length) const noexcept override;
  void slab_extents(const ExtentList& extents,
                    std::span<SlabExtent, kExtentsMax> out) const noexcept override;
  TierUsage usage() const noexcept override;

  ByteCount memory() const noexcept override;

 protected:
  struct SlabTable {
    ByteCount slab_bytes;         // of every slab but the last, a multiple of the granule
    std::uint32_t slabs_max = 0;  // slab numbers are below; at most 2^32 granules in all
  };
  FrameTier(FrameShape shape, SlabTable table) noexcept;

  // `number` was not added before; `memory` is a multiple of the granule, at most slab_bytes.
  void add_memory(std::uint32_t number, std::uint32_t generation, MemorySpan memory) noexcept;
  MemorySpan memory_of(Extent extent) const noexcept;

 private:
  struct SlabPlace {
    MemorySpan memory;
    std::uint32_t generation = 0;
  };
  const SlabPlace& place_of(Extent extent) const noexcept;
  std::uint64_t offset_of(Extent extent) const noexcept;

  FrameAllocator frames_;
  std::uint32_t slab_granules_;
  std::vector<SlabPlace> slabs_;
};

struct DramTierOptions {
  ByteCount slab_bytes = 1_GiB;  // PoolOptions::slab_bytes
  std::uint32_t slabs_max = 1;   // slabs_max(PoolOptions)
};

// Granules of 4 KiB in the pool's slabs.
class DramTier final : public FrameTier {
 public:
  explicit DramTier(const DramTierOptions& options) noexcept;
  TierKind kind() const noexcept override { return TierKind::kDram; }
  std::span<std::byte> header_page(const ExtentList& extents) const noexcept override;
  // A slab that the pool has made ready; it outlives the tier.
  void add_slab(const Slab& slab) noexcept;
};

struct DeviceTierOptions {
  ByteCount slab_bytes = 1_GiB;
  std::uint32_t slabs_max = 1;
  // Host memory for header pages, 4 KiB a frame; outlives the tier. When it is full there is no
  // room for another frame.
  std::span<std::byte> headers;
};

// Granules of 64 KiB of device memory.
class DeviceTier final : public FrameTier {
 public:
  explicit DeviceTier(const DeviceTierOptions& options) noexcept;
  TierKind kind() const noexcept override { return TierKind::kHbm; }
  std::optional<ExtentList> allocate(ByteCount payload) noexcept override;
  void release(const ExtentList& extents) noexcept override;
  std::span<std::byte> header_page(const ExtentList& extents) const noexcept override;
  // `memory` outlives the tier.
  void add_slab(std::uint32_t number, std::uint32_t generation, MemorySpan memory) noexcept;
  ByteCount memory() const noexcept override;

 private:
  std::span<std::byte> headers_;
  std::vector<std::uint32_t> free_headers_;
  // The header of the frame whose first extent begins at a granule.
  std::vector<std::uint32_t> header_of_granule_;
};

}  // namespace cairn::storage
