// A tier over plain memory, or over none at all for tests that count frames and never look inside.
#pragma once

#include "storage/tier.h"

#include <cstdint>
#include <map>
#include <vector>

namespace cairn::testing {

struct FakeTierOptions {
  std::uint32_t granules = 1024;
  ByteCount granule = ByteCount(4096);
  // False: one header page serves every frame and payload() gives no memory.
  bool has_memory = true;
  // Frames are put together from up to four runs when no single one fits.
  bool splits_frames = false;
};

// First fit, lowest address; headers inline. Counts what is wrongly released.
class FakeTier final : public storage::Tier {
 public:
  explicit FakeTier(FakeTierOptions options = {});

  storage::TierKind kind() const noexcept override { return storage::TierKind::kDram; }
  ByteCount granule() const noexcept override { return options_.granule; }
  std::optional<storage::ExtentList> allocate(ByteCount payload) noexcept override;
  void release(const storage::ExtentList& extents) noexcept override;
  std::span<std::byte> header_page(const storage::ExtentList& extents) const noexcept override;
  storage::PayloadSpans payload(const storage::ExtentList& extents,
                                ByteCount length) const noexcept override;
  void slab_extents(const storage::ExtentList& extents,
                    std::span<storage::SlabExtent, kExtentsMax> out) const noexcept override;
  storage::TierUsage usage() const noexcept override;
  ByteCount memory() const noexcept override { return ByteCount(0); }

  // More room, as when a slab becomes ready.
  void add_granules(std::uint32_t count);
  std::uint32_t free_granules() const noexcept { return free_; }
  std::uint32_t bad_releases() const noexcept { return bad_releases_; }

 private:
  std::byte* address_of(std::uint32_t granule) const noexcept;
  std::optional<storage::Extent> take(std::uint32_t count) noexcept;

  FakeTierOptions options_;
  mutable std::vector<std::byte> memory_;
  std::map<std::uint32_t, std::uint32_t> runs_;  // free: first -> count
  std::uint32_t free_ = 0;
  std::uint32_t bad_releases_ = 0;
};

}  // namespace cairn::testing
