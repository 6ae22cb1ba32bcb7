#include "storage/nvme/fixed_buffers.h"

#include "storage/nvme/block_device.h"

#include <algorithm>

namespace cairn::storage {

void FixedBuffers::add(std::span<std::byte> slice) {
  const auto begin = reinterpret_cast<std::uintptr_t>(slice.data());
  const Slice added{
      .begin = begin, .end = begin + slice.size(), .buffer = static_cast<int>(slices_.size())};
  const auto after = std::ranges::upper_bound(slices_, begin, {}, &Slice::begin);
  slices_.insert(after, added);
  bytes_ += ByteCount(slice.size());
}

FixedBuffers::Place FixedBuffers::find(const std::byte* address) const noexcept {
  const auto at = reinterpret_cast<std::uintptr_t>(address);
  const auto after = std::ranges::upper_bound(slices_, at, {}, &Slice::begin);
  if (after == slices_.begin()) return {};
  const Slice& slice = *std::prev(after);
  if (at >= slice.end) return {};
  const ByteCount whole = kIoGranule * (ByteCount(slice.end - at) / kIoGranule);
  if (whole.value() == 0) return {};
  return {.buffer = slice.buffer, .bytes = whole};
}

}  // namespace cairn::storage
