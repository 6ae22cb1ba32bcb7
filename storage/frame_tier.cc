#include "storage/frame_tier.h"

#include "base/check.h"

#include <algorithm>

namespace cairn::storage {
namespace {

constexpr ByteCount kDramGranule = 4_KiB;
constexpr ByteCount kDeviceGranule = 64_KiB;

}  // namespace

FrameTier::FrameTier(FrameShape shape, SlabTable table) noexcept
    : frames_(shape),
      slab_granules_(static_cast<std::uint32_t>(table.slab_bytes / shape.granule)),
      slabs_(table.slabs_max) {
  CAIRN_CHECK(slab_granules_ > 0);
  CAIRN_CHECK(shape.granule * slab_granules_ == table.slab_bytes);
  CAIRN_CHECK(std::uint64_t{slab_granules_} * table.slabs_max <= ExtentAllocator::kGranulesMax);
}

void FrameTier::add_memory(std::uint32_t number,
                           std::uint32_t generation,
                           MemorySpan memory) noexcept {
  CAIRN_CHECK(number < slabs_.size());
  CAIRN_CHECK(slabs_[number].memory.address == nullptr);
  const auto granules = static_cast<std::uint32_t>(ByteCount(memory.bytes) / granule());
  CAIRN_CHECK(granules <= slab_granules_);
  CAIRN_CHECK(granule() * granules == ByteCount(memory.bytes));
  slabs_[number] = {.memory = memory, .generation = generation};
  frames_.add_region(number * slab_granules_, granules);
}

const FrameTier::SlabPlace& FrameTier::place_of(Extent extent) const noexcept {
  const SlabPlace& place = slabs_[extent.first / slab_granules_];
  CAIRN_CHECK(place.memory.address != nullptr);
  return place;
}

std::uint64_t FrameTier::offset_of(Extent extent) const noexcept {
  return (granule() * (extent.first % slab_granules_)).value();
}

MemorySpan FrameTier::memory_of(Extent extent) const noexcept {
  const SlabPlace& place = place_of(extent);
  const std::uint64_t offset = offset_of(extent);
  const std::uint64_t bytes = (granule() * extent.count).value();
  CAIRN_CHECK(offset + bytes <= place.memory.bytes);
  return {.address = place.memory.address + offset,
          .bytes = bytes,
          .kind = place.memory.kind,
          .device = place.memory.device};
}

std::optional<ExtentList> FrameTier::allocate(ByteCount payload) noexcept {
  return frames_.allocate(payload);
}

void FrameTier::release(const ExtentList& extents) noexcept {
  frames_.release(extents);
}

PayloadSpans FrameTier::payload(const ExtentList& extents, ByteCount length) const noexcept {
  PayloadSpans spans;
  std::uint64_t left = length.value();
  std::uint64_t header = (granule() * frames_.shape().header_granules).value();
  for (const Extent& extent : extents.items()) {
    if (left == 0) break;
    MemorySpan span = memory_of(extent);
    span.address += header;
    span.bytes = std::min<std::uint64_t>(span.bytes - header, left);
    left -= span.bytes;
    header = 0;
    spans.items[spans.size++] = span;
  }
  CAIRN_CHECK(left == 0);
  return spans;
}

void FrameTier::slab_extents(const ExtentList& extents,
                             std::span<SlabExtent, kExtentsMax> out) const noexcept {
  std::size_t at = 0;
  for (const Extent& extent : extents.items()) {
    out[at++] = {.slab = extent.first / slab_granules_,
                 .generation = place_of(extent).generation,
                 .offset = offset_of(extent),
                 .bytes = (granule() * extent.count).value()};
  }
}

TierUsage FrameTier::usage() const noexcept {
  const ExtentFigures figures = frames_.extents().figures();
  return {.capacity = granule() * figures.capacity,
          .allocated = granule() * (figures.capacity - figures.free),
          .largest_free_run = granule() * figures.largest_run};
}

ByteCount FrameTier::memory() const noexcept {
  return frames_.extents().memory() + ByteCount(slabs_.capacity() * sizeof(SlabPlace));
}

DramTier::DramTier(const DramTierOptions& options) noexcept
    : FrameTier({.granule = kDramGranule, .header_granules = 1},
                {.slab_bytes = options.slab_bytes, .slabs_max = options.slabs_max}) {}

std::span<std::byte> DramTier::header_page(const ExtentList& extents) const noexcept {
  CAIRN_CHECK(!extents.is_empty());
  return memory_of(extents.items().front()).host().first(kHeaderBytes.value());
}

void DramTier::add_slab(const Slab& slab) noexcept {
  add_memory(slab.number,
             slab.generation,
             {.address = slab.bytes.data(), .bytes = slab.bytes.size(), .kind = MemoryKind::kHost});
}

DeviceTier::DeviceTier(const DeviceTierOptions& options) noexcept
    : FrameTier({.granule = kDeviceGranule, .header_granules = 0},
                {.slab_bytes = options.slab_bytes, .slabs_max = options.slabs_max}),
      headers_(options.headers),
      header_of_granule_((options.slab_bytes * options.slabs_max) / kDeviceGranule) {
  const auto count = static_cast<std::uint32_t>(ByteCount(headers_.size()) / kHeaderBytes);
  free_headers_.reserve(count);
  for (std::uint32_t header = count; header > 0; --header)
    free_headers_.push_back(header - 1);
}

std::optional<ExtentList> DeviceTier::allocate(ByteCount payload) noexcept {
  if (free_headers_.empty()) return std::nullopt;
  auto frame = FrameTier::allocate(payload);
  if (!frame) return std::nullopt;
  header_of_granule_[frame->items().front().first] = free_headers_.back();
  free_headers_.pop_back();
  return frame;
}

void DeviceTier::release(const ExtentList& extents) noexcept {
  FrameTier::release(extents);
  free_headers_.push_back(header_of_granule_[extents.items().front().first]);
}

std::span<std::byte> DeviceTier::header_page(const ExtentList& extents) const noexcept {
  CAIRN_CHECK(!extents.is_empty());
  const std::size_t header = header_of_granule_[extents.items().front().first];
  return headers_.subspan(header * kHeaderBytes.value(), kHeaderBytes.value());
}

void DeviceTier::add_slab(std::uint32_t number,
                          std::uint32_t generation,
                          MemorySpan memory) noexcept {
  add_memory(number, generation, memory);
}

ByteCount DeviceTier::memory() const noexcept {
  return FrameTier::memory() +
         ByteCount((free_headers_.capacity() + header_of_granule_.capacity()) *
                   sizeof(std::uint32_t));
}

}  // namespace cairn::storage
