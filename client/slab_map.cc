#include "client/slab_map.h"

#include "base/check.h"

#include <algorithm>
#include <utility>

namespace cairn::client {
namespace {

// Pages are made present in steps of this, at the first use of each.
constexpr std::uint64_t kPopulateStep = (2_MiB).value();
constexpr std::uint64_t kSlabBytesMax = std::uint64_t{1} << 40U;

}  // namespace

SlabMap::~SlabMap() {
  for (Slab& slab : slabs_) {
    if (!slab.memory.empty()) mapper_.unmap(slab.memory);
  }
}

void SlabMap::begin_daemon(Descriptor lock) {
  for (std::uint32_t number = 0; number < current_.size(); ++number)
    retire(number);
  current_.clear();
  if (!daemons_.empty() && daemons_.back().mapped == 0) daemons_.back().lock.reset();
  daemons_.push_back({.lock = std::move(lock), .mapped = 0});
}

void SlabMap::replace_lock(Descriptor lock) {
  CAIRN_CHECK(!daemons_.empty());
  daemons_.back().lock = std::move(lock);
}

Status SlabMap::add(const wire::SlabNotice& notice, Descriptor file) {
  CAIRN_CHECK(!daemons_.empty());
  if (notice.slab >= kSlabsMax) return Error{ErrorCode::kTooLarge, 0, "slab number"};
  if (!file.is_open()) return Error{ErrorCode::kCorrupt, 0, "slab without a descriptor"};
  if (notice.bytes == 0 || notice.bytes > kSlabBytesMax) {
    return Error{ErrorCode::kCorrupt, 0, "slab size"};
  }
  if (current_.size() <= notice.slab) current_.resize(notice.slab + 1, kNone);
  const std::uint32_t known = current_[notice.slab];
  if (known != kNone && slabs_[known].generation == notice.generation) return {};
  retire(notice.slab);
  if (free_.empty()) {
    free_.push_back(static_cast<std::uint32_t>(slabs_.size()));
    slabs_.emplace_back();
  }
  const std::uint32_t place = free_.back();
  free_.pop_back();
  Slab& slab = slabs_[place];
  slab.number = notice.slab;
  slab.generation = notice.generation;
  slab.daemon = static_cast<std::uint32_t>(daemons_.size() - 1);
  slab.bytes = ByteCount(notice.bytes);
  slab.file = std::move(file);
  current_[notice.slab] = place;
  return {};
}

Result<std::uint32_t> SlabMap::place_of(const wire::WireExtent& extent) {
  const std::uint32_t place = extent.slab < current_.size() ? current_[extent.slab] : kNone;
  if (place == kNone || slabs_[place].generation != extent.generation) {
    return Error{ErrorCode::kCorrupt, 0, "extent of an unknown slab"};
  }
  Slab& slab = slabs_[place];
  const std::uint64_t size = slab.bytes.value();
  if (extent.offset > size || extent.bytes > size - extent.offset) {
    return Error{ErrorCode::kCorrupt, 0, "extent outside its slab"};
  }
  if (slab.memory.empty()) CAIRN_TRY_STATUS(map(slab));
  populate(slab, extent.offset, extent.offset + extent.bytes);
  return place;
}

Status SlabMap::map(Slab& slab) {
  if (!slab.file.is_open()) return Error{ErrorCode::kIo, 0, "slab could not be mapped"};
  CAIRN_TRY(const std::span<std::byte> memory, mapper_.map(slab.file.release(), slab.bytes));
  CAIRN_CHECK(memory.size() == slab.bytes.value());
  slab.memory = memory;
  slab.is_populated.assign(divide_up(slab.bytes.value(), kPopulateStep), false);
  ++daemons_[slab.daemon].mapped;
  return {};
}

void SlabMap::populate(Slab& slab, std::uint64_t begin, std::uint64_t end) {
  for (std::uint64_t step = begin / kPopulateStep; step * kPopulateStep < end; ++step) {
    if (slab.is_populated[step]) continue;
    slab.is_populated[step] = true;
    const std::uint64_t first = step * kPopulateStep;
    const std::uint64_t bytes = std::min(kPopulateStep, slab.memory.size() - first);
    mapper_.populate(slab.memory.subspan(first, bytes));
  }
}

Result<FramePieces> SlabMap::find(std::span<const wire::WireExtent> extents,
                                  std::uint32_t length,
                                  HeldFrame& frame) {
  constexpr Error kBadExtents{ErrorCode::kCorrupt, 0, "extents of a frame"};
  if (extents.empty() || extents.size() > kExtentsMax) return kBadExtents;
  if (length == 0 || length > kBlockBytesMax.value()) return kBadExtents;
  FramePieces pieces;
  std::uint64_t left = length;
  for (const wire::WireExtent& extent : extents) {
    CAIRN_TRY(const std::uint32_t place, place_of(extent));
    // The header page lies before the payload.
    const std::uint64_t skip = pieces.count == 0 ? kHeaderBytes.value() : 0;
    if (left == 0 || extent.bytes <= skip) return kBadExtents;
    const std::uint64_t bytes = std::min(left, extent.bytes - skip);
    pieces.spans[pieces.count] = slabs_[place].memory.subspan(extent.offset + skip, bytes);
    frame.slabs[pieces.count] = place;
    ++pieces.count;
    left -= bytes;
    if (left > 0 && bytes % kChunkBytes.value() != 0) return kBadExtents;
  }
  if (left > 0) return kBadExtents;
  pieces.length = length;
  frame.extent_count = pieces.count;
  frame.offset = extents.front().offset;
  return pieces;
}

void SlabMap::hold(const HeldFrame& frame) noexcept {
  for (std::uint32_t i = 0; i < frame.extent_count; ++i)
    ++slabs_[frame.slabs[i]].lends;
}

void SlabMap::drop(const HeldFrame& frame) noexcept {
  for (std::uint32_t i = 0; i < frame.extent_count; ++i) {
    Slab& slab = slabs_[frame.slabs[i]];
    CAIRN_CHECK(slab.lends > 0);
    --slab.lends;
    if (slab.is_retired) forget_if_unused(frame.slabs[i]);
  }
}

wire::HeldLend SlabMap::describe(const HeldFrame& frame) const noexcept {
  const Slab& slab = slabs_[frame.slabs[0]];
  return {.slab = slab.number,
          .slab_generation = slab.generation,
          .offset = frame.offset,
          .lend = frame.lend};
}

std::size_t SlabMap::mapped_count() const noexcept {
  return static_cast<std::size_t>(
      std::ranges::count_if(slabs_, [](const Slab& slab) { return !slab.memory.empty(); }));
}

void SlabMap::retire(std::uint32_t number) {
  const std::uint32_t place = std::exchange(current_[number], kNone);
  if (place == kNone) return;
  slabs_[place].is_retired = true;
  forget_if_unused(place);
}

void SlabMap::forget_if_unused(std::uint32_t place) noexcept {
  Slab& slab = slabs_[place];
  if (slab.lends > 0) return;
  if (!slab.memory.empty()) {
    mapper_.unmap(slab.memory);
    Daemon& daemon = daemons_[slab.daemon];
    --daemon.mapped;
    const bool is_gone = slab.daemon + 1 < daemons_.size();
    if (is_gone && daemon.mapped == 0) daemon.lock.reset();
  }
  slab = Slab{};
  free_.push_back(place);
}

}  // namespace cairn::client
