#include "tests/support/fake_tier.h"

#include <algorithm>
#include <iterator>

namespace cairn::testing {

using storage::Extent;
using storage::ExtentList;

FakeTier::FakeTier(FakeTierOptions options)
    : options_(options),
      memory_(options.has_memory ? options.granules * options.granule.value()
                                 : kHeaderBytes.value()),
      free_(options.granules) {
  runs_[0] = options.granules;
}

void FakeTier::add_granules(std::uint32_t count) {
  ExtentList added;
  added.push({options_.granules, count});
  options_.granules += count;
  if (options_.has_memory) memory_.resize(options_.granules * options_.granule.value());
  release(added);
}

std::optional<Extent> FakeTier::take(std::uint32_t count) noexcept {
  for (auto run = runs_.begin(); run != runs_.end(); ++run) {
    if (run->second < count) continue;
    const Extent extent = {run->first, count};
    const Extent rest = {run->first + count, run->second - count};
    runs_.erase(run);
    if (rest.count > 0) runs_[rest.first] = rest.count;
    free_ -= count;
    return extent;
  }
  return std::nullopt;
}

std::optional<ExtentList> FakeTier::allocate(ByteCount payload) noexcept {
  const auto granules =
      static_cast<std::uint32_t>(divide_up(kHeaderBytes.value(), options_.granule.value()) +
                                 divide_up(payload.value(), options_.granule.value()));
  ExtentList out;
  if (const auto whole = take(granules)) {
    out.push(*whole);
    return out;
  }
  const auto chunk = static_cast<std::uint32_t>(kChunkBytes / options_.granule);
  const std::uint32_t first = chunk + 1;  // a chunk behind the header page
  if (!options_.splits_frames || granules <= first) return std::nullopt;
  std::uint32_t left = granules;
  while (left > 0 && out.size() < kExtentsMax) {
    const bool is_last = out.size() + 1 == kExtentsMax || left <= chunk;
    const auto piece = take(is_last ? left : out.is_empty() ? first : chunk);
    if (!piece) break;
    out.push(*piece);
    left -= piece->count;
  }
  if (left == 0) return out;
  release(out);
  return std::nullopt;
}

void FakeTier::release(const ExtentList& extents) noexcept {
  for (const Extent& extent : extents.items()) {
    auto [run, is_new] = runs_.emplace(extent.first, extent.count);
    if (!is_new) {
      ++bad_releases_;
      continue;
    }
    free_ += extent.count;
    if (const auto after = std::next(run); after != runs_.end()) {
      if (run->first + run->second > after->first) ++bad_releases_;
      if (run->first + run->second == after->first) {
        run->second += after->second;
        runs_.erase(after);
      }
    }
    if (run == runs_.begin()) continue;
    const auto before = std::prev(run);
    if (before->first + before->second > run->first) ++bad_releases_;
    if (before->first + before->second == run->first) {
      before->second += run->second;
      runs_.erase(run);
    }
  }
}

std::byte* FakeTier::address_of(std::uint32_t granule) const noexcept {
  return memory_.data() + std::uint64_t{granule} * options_.granule.value();
}

std::span<std::byte> FakeTier::header_page(const ExtentList& extents) const noexcept {
  const std::uint32_t first = options_.has_memory ? extents.items().front().first : 0;
  return {address_of(first), kHeaderBytes.value()};
}

storage::PayloadSpans FakeTier::payload(const ExtentList& extents,
                                        ByteCount length) const noexcept {
  storage::PayloadSpans out;
  if (!options_.has_memory) return out;
  std::uint64_t left = length.value();
  bool is_first = true;
  for (const Extent& extent : extents.items()) {
    const std::uint64_t skipped = is_first ? kHeaderBytes.value() : 0;
    const std::uint64_t bytes = std::min(left, extent.count * options_.granule.value() - skipped);
    out.items[out.size++] = {.address = address_of(extent.first) + skipped, .bytes = bytes};
    left -= bytes;
    is_first = false;
  }
  return out;
}

void FakeTier::slab_extents(const ExtentList& extents,
                            std::span<storage::SlabExtent, kExtentsMax> out) const noexcept {
  for (std::size_t i = 0; i < extents.size(); ++i) {
    const Extent extent = extents.items()[i];
    out[i] = {.slab = 0,
              .generation = 1,
              .offset = extent.first * options_.granule.value(),
              .bytes = extent.count * options_.granule.value()};
  }
}

storage::TierUsage FakeTier::usage() const noexcept {
  std::uint32_t largest = 0;
  for (const auto& [first, count] : runs_)
    largest = std::max(largest, count);
  return {.capacity = options_.granule * options_.granules,
          .allocated = options_.granule * (options_.granules - free_),
          .largest_free_run = options_.granule * largest};
}

}  // namespace cairn::testing
