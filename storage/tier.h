// What a tier of frames promises: room for frames, and where their bytes are. Decisions about which
// block lives or leaves are the store's (storage/store.h), not a tier's.
#pragma once

#include "base/memory.h"
#include "base/units.h"
#include "storage/extent.h"

#include <array>
#include <cstdint>
#include <optional>
#include <span>

namespace cairn::storage {

// On the wire and in metrics; the numbers do not change.
enum class TierKind : std::uint8_t { kNone = 0, kHbm = 1, kDram = 2, kNvme = 3, kPeer = 4 };

struct TierUsage {
  ByteCount capacity;   // of the slabs that are ready, header pages included
  ByteCount allocated;  // rounded up to granules, header pages included
  ByteCount largest_free_run;
};

// The payload of a frame, in order; `size` spans are set.
struct PayloadSpans {
  std::array<MemorySpan, kExtentsMax> items{};
  std::size_t size = 0;
};

// Not thread-safe, except where said: the store calls it under the pool's mutex.
class Tier {
 public:
  Tier() = default;
  Tier(const Tier&) = delete;
  Tier& operator=(const Tier&) = delete;
  virtual ~Tier() = default;

  virtual TierKind kind() const noexcept = 0;
  virtual ByteCount granule() const noexcept = 0;

  // Room for a header page (where headers are inline) and `payload` bytes, 1 B to 16 MiB: one
  // extent if one run fits, else up to four of at least 256 KiB. nullopt: no room as things lie;
  // free something and ask again. Allocating never moves or frees anything.
  virtual std::optional<ExtentList> allocate(ByteCount payload) noexcept = 0;
  // `extents` came from allocate() and nothing refers to them any more.
  virtual void release(const ExtentList& extents) noexcept = 0;

  // Any thread, for extents that the caller holds a pin or a reservation on. The header page is
  // always in host memory.
  virtual std::span<std::byte> header_page(const ExtentList& extents) const noexcept = 0;
  virtual PayloadSpans payload(const ExtentList& extents, ByteCount length) const noexcept = 0;
  // Writes extents.size() entries; the first begins with the header page where headers are inline.
  virtual void slab_extents(const ExtentList& extents,
                            std::span<SlabExtent, kExtentsMax> out) const noexcept = 0;

  virtual TierUsage usage() const noexcept = 0;
  // Bytes of the tier's own bookkeeping, for the budget.
  virtual ByteCount memory() const noexcept = 0;
};

}  // namespace cairn::storage
