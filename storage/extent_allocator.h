// Which granules of an address range are free: two-level segregated fit (Masmano et al., "TLSF: a
// new dynamic memory allocator for real-time systems", 2004) with 32 bins an octave and immediate
// coalescing. It hands out numbers and never touches the memory that they name, so the same code
// serves host and device memory.
#pragma once

#include "base/units.h"
#include "storage/boundary_map.h"
#include "storage/extent.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace cairn::storage {

// In granules.
struct ExtentFigures {
  std::uint64_t capacity = 0;
  std::uint64_t free = 0;
  // Of the free runs; exact below 64 granules, else at least 31/32 of the true figure.
  std::uint32_t largest_run = 0;
  std::uint32_t free_runs = 0;

  // 0: all that is free is one run; towards 1: it is scattered. 0 when nothing is free.
  double fragmentation() const noexcept {
    return free == 0 ? 0.0 : 1.0 - static_cast<double>(largest_run) / static_cast<double>(free);
  }
};

// One thread at a time. Bookkeeping: 16 B and two map entries of 8 B a free run, one byte
// for 64 granules; nothing for what is allocated.
class ExtentAllocator {
 public:
  // Regions at most: 16 TiB of slabs of 64 MiB.
  static constexpr std::size_t kRegionsMax = 262'144;
  // Runs looked at in the bin of the size asked for before the next larger bin is taken.
  static constexpr std::uint32_t kBinStepsMax = 16;
  static constexpr std::uint64_t kGranulesMax = std::uint64_t{1} << 32U;

  ExtentAllocator();

  // Adds granules [first, first + count) as free: a slab. A run never crosses from one region into
  // another. They overlap no region added before, and first + count <= kGranulesMax; count > 0.
  void add_region(std::uint32_t first, std::uint32_t count) noexcept;

  // One run of `count` > 0 granules, the best fit of those looked at. nullopt: no run is as long
  // (or, very rarely, none among the first kBinStepsMax of its bin and no larger bin has one).
  std::optional<Extent> allocate(std::uint32_t count) noexcept;
  // `extent` came from allocate() whole and was not released since. Anything else aborts, at once
  // when it reaches outside the regions, bounds a free run or covers a page of 64 granules of which
  // one is free; what is shorter and lies inside a longer free run may abort only at a later call.
  void release(Extent extent) noexcept;

  ExtentFigures figures() const noexcept;
  std::uint32_t largest_run() const noexcept;
  std::uint64_t free_granules() const noexcept { return free_; }
  std::uint64_t capacity() const noexcept { return capacity_; }
  // Bytes of all bookkeeping.
  ByteCount memory() const noexcept;

 private:
  static constexpr std::uint32_t kNone = BoundaryMap::kNone;
  static constexpr std::uint32_t kBinsPerOctave = 32;
  static constexpr std::uint32_t kOctaves = 28;  // the first holds counts 0 to 31, exact

  // A free run, in the list of its bin. An unused node is in the list of unused nodes by `next`.
  struct Node {
    std::uint32_t first = 0;
    std::uint32_t count = 0;
    std::uint32_t prev = kNone;
    std::uint32_t next = kNone;
  };
  static_assert(sizeof(Node) == 16);

  static std::uint32_t bin_of(std::uint32_t count) noexcept;
  std::uint32_t first_bin_from(std::uint32_t bin) const noexcept;
  std::uint32_t find_fit(std::uint32_t count) const noexcept;
  std::uint32_t best_in_bin(std::uint32_t bin, std::uint32_t count) const noexcept;

  void link(std::uint32_t node) noexcept;
  void unlink(std::uint32_t node) noexcept;
  std::uint32_t take_node() noexcept;
  void drop_node(std::uint32_t node) noexcept;
  void resize(std::uint32_t node, Extent run) noexcept;
  void cut_front(std::uint32_t node, std::uint32_t count) noexcept;
  void add_run(Extent run) noexcept;
  void extend_back(std::uint32_t node, Extent by) noexcept;
  void extend_front(std::uint32_t node, Extent by) noexcept;
  void join(std::uint32_t before, Extent between, std::uint32_t after) noexcept;

  // The region that holds `granule`; aborts if there is none.
  const Extent& region_of(std::uint32_t granule) const noexcept;
  void count_released(Extent extent) noexcept;
  void count_allocated(Extent extent) noexcept;

  std::vector<Node> nodes_;
  std::uint32_t unused_ = kNone;
  BoundaryMap bounds_;
  std::vector<Extent> regions_;  // by first granule
  // Free granules of each page of 64: what makes a wrong release fail. Granules outside the regions
  // count as free.
  std::vector<std::uint8_t> page_free_;
  std::array<std::uint32_t, std::size_t{kOctaves} * kBinsPerOctave> heads_{};
  std::array<std::uint32_t, kOctaves> bins_used_{};  // bit b: bin b of the octave has a run
  std::uint32_t octaves_used_ = 0;
  std::uint64_t capacity_ = 0;
  std::uint64_t free_ = 0;
  std::uint32_t free_runs_ = 0;
};

}  // namespace cairn::storage
