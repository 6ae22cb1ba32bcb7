#include "storage/extent_allocator.h"

#include "base/check.h"

#include <algorithm>
#include <bit>

namespace cairn::storage {
namespace {

constexpr unsigned kBinBits = 5;
constexpr std::uint32_t kExactCounts = 64;     // below, a bin holds one size
constexpr std::uint32_t kLargestSteps = 1024;  // runs looked at for largest_run()

std::uint64_t end_of(Extent extent) noexcept {
  return std::uint64_t{extent.first} + extent.count;
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

void ExtentAllocator::add_run(Extent run) noexcept {
  const std::uint32_t node = take_node();
  nodes_[node].first = run.first;
  nodes_[node].count = run.count;
  link(node);
  bounds_.insert(run.first, node);
  if (run.count > 1) bounds_.insert(run.first + (run.count - 1), node);
  ++free_runs_;
}

void ExtentAllocator::drop_run(std::uint32_t node) noexcept {
  const Extent run{.first = nodes_[node].first, .count = nodes_[node].count};
  unlink(node);
  bounds_.erase(run.first);
  if (run.count > 1) bounds_.erase(run.first + (run.count - 1));
  nodes_[node].next = unused_;
  unused_ = node;
  --free_runs_;
}

// Shortens a longer run by `count` granules at its front; its last granule stays.
void ExtentAllocator::cut_front(std::uint32_t node, std::uint32_t count) noexcept {
  unlink(node);
  Node& run = nodes_[node];
  bounds_.erase(run.first);
  run.first += count;
  run.count -= count;
  if (run.count > 1) bounds_.insert(run.first, node);
  link(node);
}

bool ExtentAllocator::is_start(std::uint64_t granule) const noexcept {
  return ((starts_[granule / 64] >> (granule % 64)) & 1U) != 0;
}

void ExtentAllocator::set_start(std::uint64_t granule) noexcept {
  starts_[granule / 64] |= std::uint64_t{1} << (granule % 64);
}

void ExtentAllocator::clear_start(std::uint64_t granule) noexcept {
  starts_[granule / 64] &= ~(std::uint64_t{1} << (granule % 64));
}

// True if a run begins inside `extent`, its first granule not counted.
bool ExtentAllocator::has_start_within(Extent extent) const noexcept {
  const std::uint64_t begin = std::uint64_t{extent.first} + 1;
  const std::uint64_t end = end_of(extent);
  if (begin == end) return false;
  const std::uint64_t from_begin = ~std::uint64_t{0} << (begin % 64);
  const std::uint64_t to_end = ~std::uint64_t{0} >> (63 - (end - 1) % 64);
  const std::uint64_t last = (end - 1) / 64;
  if (begin / 64 == last) return (starts_[last] & from_begin & to_end) != 0;
  if ((starts_[begin / 64] & from_begin) != 0) return true;
  for (std::uint64_t word = begin / 64 + 1; word < last; ++word) {
    if (starts_[word] != 0) return true;
  }
  return (starts_[last] & to_end) != 0;
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
  if (end / 64 >= starts_.size()) starts_.resize(end / 64 + 1);
  set_start(first);
  set_start(end);
  capacity_ += count;
  free_ += count;
  add_run({.first = first, .count = count});
}

std::optional<Extent> ExtentAllocator::allocate(std::uint32_t count) noexcept {
  CAIRN_CHECK(count > 0);
  const std::uint32_t node = find_fit(count);
  if (node == kNone) return std::nullopt;
  const Extent extent{.first = nodes_[node].first, .count = count};
  if (nodes_[node].count == count) {
    drop_run(node);
  } else {
    cut_front(node, count);
    set_start(std::uint64_t{extent.first} + count);
  }
  free_ -= count;
  return extent;
}

// `run` and the free run beside it, which stops being one of its own.
Extent ExtentAllocator::absorb(Extent run, std::uint32_t node) noexcept {
  const Node beside = nodes_[node];
  drop_run(node);
  clear_start(std::max(run.first, beside.first));
  return {.first = std::min(run.first, beside.first), .count = run.count + beside.count};
}

void ExtentAllocator::release(Extent extent) noexcept {
  CAIRN_CHECK(extent.count > 0);
  const Extent& region = region_of(extent.first);
  const std::uint64_t end = end_of(extent);
  CAIRN_CHECK(end <= end_of(region));
  CAIRN_CHECK(is_start(extent.first));
  CAIRN_CHECK(is_start(end));
  CAIRN_CHECK(!has_start_within(extent));
  CAIRN_CHECK(bounds_.find(extent.first) == kNone);
  Extent run = extent;
  if (extent.first > region.first) {
    const std::uint32_t before = bounds_.find(extent.first - 1);
    if (before != kNone) run = absorb(run, before);
  }
  if (end < end_of(region)) {
    const std::uint32_t after = bounds_.find(static_cast<std::uint32_t>(end));
    if (after != kNone) run = absorb(run, after);
  }
  add_run(run);
  free_ += extent.count;
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
                   regions_.capacity() * sizeof(Extent) +
                   starts_.capacity() * sizeof(std::uint64_t)) +
         bounds_.memory();
}

}  // namespace cairn::storage
