#include "storage/extent_allocator.h"

#include "base/check.h"

#include <algorithm>
#include <bit>

namespace cairn::storage {
namespace {

constexpr unsigned kBinBits = 5;
constexpr std::uint32_t kExactCounts = 64;  // below, a bin holds one size
constexpr std::uint32_t kPageGranules = 64;
constexpr std::uint32_t kLargestSteps = 1024;  // runs looked at for largest_run()

std::uint64_t end_of(Extent extent) noexcept {
  return std::uint64_t{extent.first} + extent.count;
}

std::uint32_t last_of(Extent extent) noexcept {
  return extent.first + (extent.count - 1);
}

template <typename Visit>
void for_each_page(Extent extent, Visit visit) noexcept {
  std::uint64_t at = extent.first;
  const std::uint64_t end = end_of(extent);
  while (at < end) {
    const std::uint64_t next = std::min(end, (at / kPageGranules + 1) * kPageGranules);
    visit(at / kPageGranules, static_cast<std::uint32_t>(next - at));
    at = next;
  }
}

}  // namespace

ExtentAllocator::ExtentAllocator() {
  heads_.fill(kNone);
}

std::uint32_t ExtentAllocator::bin_of(std::uint32_t count) noexcept {
  if (count < kBinsPerOctave) return count;
  const auto log = static_cast<unsigned>(std::bit_width(count)) - 1;
  const std::uint32_t octave = log - kBinBits + 1;
  return octave * kBinsPerOctave + ((count >> (log - kBinBits)) & (kBinsPerOctave - 1));
}

// The first bin from `bin` on that has a run; kNone if there is none.
std::uint32_t ExtentAllocator::first_bin_from(std::uint32_t bin) const noexcept {
  const std::uint32_t octave = bin / kBinsPerOctave;
  if (octave >= kOctaves) return kNone;
  const std::uint32_t here = bins_used_[octave] & (~0U << (bin % kBinsPerOctave));
  if (here != 0)
    return octave * kBinsPerOctave + static_cast<std::uint32_t>(std::countr_zero(here));
  const std::uint32_t above = octaves_used_ & ~((2U << octave) - 1);
  if (above == 0) return kNone;
  const auto next = static_cast<std::uint32_t>(std::countr_zero(above));
  return next * kBinsPerOctave + static_cast<std::uint32_t>(std::countr_zero(bins_used_[next]));
}

// The shortest run of at least `count` among the first of a bin; kNone if none is long enough.
std::uint32_t ExtentAllocator::best_in_bin(std::uint32_t bin, std::uint32_t count) const noexcept {
  std::uint32_t best = kNone;
  std::uint32_t node = heads_[bin];
  for (std::uint32_t step = 0; step < kBinStepsMax && node != kNone; ++step) {
    const Node& run = nodes_[node];
    if (run.count == count) return node;
    if (run.count > count && (best == kNone || run.count < nodes_[best].count)) best = node;
    node = run.next;
  }
  return best;
}

std::uint32_t ExtentAllocator::find_fit(std::uint32_t count) const noexcept {
  const std::uint32_t own = bin_of(count);
  const std::uint32_t bin = first_bin_from(own);
  if (bin == kNone) return kNone;
  const std::uint32_t node = best_in_bin(bin, count);
  if (node != kNone || bin != own) return node;
  const std::uint32_t larger = first_bin_from(own + 1);
  return larger == kNone ? kNone : best_in_bin(larger, count);
}

void ExtentAllocator::link(std::uint32_t node) noexcept {
  Node& run = nodes_[node];
  const std::uint32_t bin = bin_of(run.count);
  run.prev = kNone;
  run.next = heads_[bin];
  if (run.next != kNone) nodes_[run.next].prev = node;
  heads_[bin] = node;
  bins_used_[bin / kBinsPerOctave] |= 1U << (bin % kBinsPerOctave);
  octaves_used_ |= 1U << (bin / kBinsPerOctave);
}

void ExtentAllocator::unlink(std::uint32_t node) noexcept {
  const Node& run = nodes_[node];
  if (run.next != kNone) nodes_[run.next].prev = run.prev;
  if (run.prev != kNone) {
    nodes_[run.prev].next = run.next;
    return;
  }
  const std::uint32_t bin = bin_of(run.count);
  heads_[bin] = run.next;
  if (run.next != kNone) return;
  const std::uint32_t octave = bin / kBinsPerOctave;
  bins_used_[octave] &= ~(1U << (bin % kBinsPerOctave));
  if (bins_used_[octave] == 0) octaves_used_ &= ~(1U << octave);
}

std::uint32_t ExtentAllocator::take_node() noexcept {
  if (unused_ != kNone) {
    const std::uint32_t node = unused_;
    unused_ = nodes_[node].next;
    return node;
  }
  nodes_.emplace_back();
  return static_cast<std::uint32_t>(nodes_.size() - 1);
}

void ExtentAllocator::drop_node(std::uint32_t node) noexcept {
  nodes_[node].next = unused_;
  unused_ = node;
  --free_runs_;
}

// The run of `node` becomes `run`: it changes its list when its bin does.
void ExtentAllocator::resize(std::uint32_t node, Extent run) noexcept {
  const bool is_moving = bin_of(nodes_[node].count) != bin_of(run.count);
  if (is_moving) unlink(node);
  nodes_[node].first = run.first;
  nodes_[node].count = run.count;
  if (is_moving) link(node);
}

// Takes `count` granules off the front of a run; its last granule stays its bound.
void ExtentAllocator::cut_front(std::uint32_t node, std::uint32_t count) noexcept {
  const Node run = nodes_[node];
  bounds_.erase(run.first);
  if (run.count == count) {
    unlink(node);
    if (count > 1) bounds_.erase(run.first + (count - 1));
    drop_node(node);
    return;
  }
  resize(node, {.first = run.first + count, .count = run.count - count});
  if (run.count > count + 1) bounds_.insert(run.first + count, node);
}

void ExtentAllocator::add_run(Extent run) noexcept {
  const std::uint32_t node = take_node();
  nodes_[node].first = run.first;
  nodes_[node].count = run.count;
  link(node);
  bounds_.insert(run.first, node);
  if (run.count > 1) bounds_.insert(last_of(run), node);
  ++free_runs_;
}

void ExtentAllocator::extend_back(std::uint32_t node, Extent by) noexcept {
  const Node run = nodes_[node];
  if (run.count > 1) bounds_.erase(by.first - 1);
  bounds_.insert(last_of(by), node);
  resize(node, {.first = run.first, .count = run.count + by.count});
}

void ExtentAllocator::extend_front(std::uint32_t node, Extent by) noexcept {
  const Node run = nodes_[node];
  if (run.count > 1) bounds_.erase(run.first);
  bounds_.insert(by.first, node);
  resize(node, {.first = by.first, .count = run.count + by.count});
}

// Two runs and what lies between them become the run of `before`.
void ExtentAllocator::join(std::uint32_t before, Extent between, std::uint32_t after) noexcept {
  const Node left = nodes_[before];
  const Node right = nodes_[after];
  if (left.count > 1) bounds_.erase(between.first - 1);
  if (right.count > 1) bounds_.erase(right.first);
  bounds_.assign(right.first + (right.count - 1), before);
  unlink(after);
  drop_node(after);
  resize(before, {.first = left.first, .count = left.count + between.count + right.count});
}

void ExtentAllocator::count_released(Extent extent) noexcept {
  for_each_page(extent, [this](std::uint64_t page, std::uint32_t granules) {
    CAIRN_CHECK(page_free_[page] + granules <= kPageGranules);
    page_free_[page] = static_cast<std::uint8_t>(page_free_[page] + granules);
  });
}

void ExtentAllocator::count_allocated(Extent extent) noexcept {
  for_each_page(extent, [this](std::uint64_t page, std::uint32_t granules) {
    CAIRN_CHECK(page_free_[page] >= granules);
    page_free_[page] = static_cast<std::uint8_t>(page_free_[page] - granules);
  });
}

const Extent& ExtentAllocator::region_of(std::uint32_t granule) const noexcept {
  const auto after =
      std::upper_bound(regions_.begin(), regions_.end(), granule, [](std::uint32_t g, Extent r) {
        return g < r.first;
      });
  CAIRN_CHECK(after != regions_.begin());
  return *(after - 1);
}

void ExtentAllocator::add_region(std::uint32_t first, std::uint32_t count) noexcept {
  const std::uint64_t end = std::uint64_t{first} + count;
  CAIRN_CHECK(count > 0);
  CAIRN_CHECK(end <= kGranulesMax);
  CAIRN_CHECK(regions_.size() < kRegionsMax);
  const auto at = std::find_if(
      regions_.begin(), regions_.end(), [first](const Extent& r) { return r.first >= first; });
  CAIRN_CHECK(at == regions_.end() || at->first >= end);
  CAIRN_CHECK(at == regions_.begin() || end_of(*(at - 1)) <= first);
  regions_.insert(at, {.first = first, .count = count});
  const std::uint64_t pages = divide_up(end, kPageGranules);
  if (pages > page_free_.size()) page_free_.resize(pages, kPageGranules);
  capacity_ += count;
  free_ += count;
  add_run({.first = first, .count = count});
}

std::optional<Extent> ExtentAllocator::allocate(std::uint32_t count) noexcept {
  CAIRN_CHECK(count > 0);
  const std::uint32_t node = find_fit(count);
  if (node == kNone) return std::nullopt;
  const Extent extent{.first = nodes_[node].first, .count = count};
  cut_front(node, count);
  count_allocated(extent);
  free_ -= count;
  return extent;
}

void ExtentAllocator::release(Extent extent) noexcept {
  CAIRN_CHECK(extent.count > 0);
  const Extent& region = region_of(extent.first);
  const std::uint64_t end = end_of(extent);
  CAIRN_CHECK(end <= end_of(region));
  CAIRN_CHECK(bounds_.find(extent.first) == kNone);
  CAIRN_CHECK(bounds_.find(last_of(extent)) == kNone);
  count_released(extent);
  const std::uint32_t before =
      extent.first == region.first ? kNone : bounds_.find(extent.first - 1);
  const std::uint32_t after =
      end == end_of(region) ? kNone : bounds_.find(static_cast<std::uint32_t>(end));
  free_ += extent.count;
  if (before != kNone && after != kNone) return join(before, extent, after);
  if (before != kNone) return extend_back(before, extent);
  if (after != kNone) return extend_front(after, extent);
  add_run(extent);
}

std::uint32_t ExtentAllocator::largest_run() const noexcept {
  if (octaves_used_ == 0) return 0;
  const auto octave = static_cast<std::uint32_t>(std::bit_width(octaves_used_)) - 1;
  const auto bin = static_cast<std::uint32_t>(std::bit_width(bins_used_[octave])) - 1;
  std::uint32_t node = heads_[octave * kBinsPerOctave + bin];
  std::uint32_t largest = nodes_[node].count;
  if (largest < kExactCounts) return largest;
  for (std::uint32_t step = 0; step < kLargestSteps && node != kNone; ++step) {
    largest = std::max(largest, nodes_[node].count);
    node = nodes_[node].next;
  }
  return largest;
}

ExtentFigures ExtentAllocator::figures() const noexcept {
  return {
      .capacity = capacity_, .free = free_, .largest_run = largest_run(), .free_runs = free_runs_};
}

ByteCount ExtentAllocator::memory() const noexcept {
  return ByteCount(sizeof(ExtentAllocator) + nodes_.capacity() * sizeof(Node) +
                   regions_.capacity() * sizeof(Extent) + page_free_.capacity()) +
         bounds_.memory();
}

}  // namespace cairn::storage
