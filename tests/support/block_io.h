// What tests of a BlockDevice are made of: memory that it takes, bytes that can be recognised, and
// waiting for completions.
#pragma once

#include "base/clock.h"
#include "storage/nvme/block_device.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>

namespace cairn::testing {

// Whole pages of memory, zero filled.
class PageBuffer {
 public:
  explicit PageBuffer(ByteCount bytes);
  ~PageBuffer();
  PageBuffer(const PageBuffer&) = delete;
  PageBuffer& operator=(const PageBuffer&) = delete;
  std::span<std::byte> bytes() const noexcept { return bytes_; }
  std::span<std::byte> part(ByteCount offset, ByteCount length) const {
    return bytes_.subspan(offset.value(), length.value());
  }

 private:
  std::span<std::byte> bytes_;
};

// Bytes that follow from `seed`.
void fill(std::span<std::byte> bytes, std::uint64_t seed);
bool is_filled(std::span<const std::byte> bytes, std::uint64_t seed);

using Completions = std::map<std::uint64_t, Result<ByteCount>>;
// Polls until `count` operations have completed. A test failure when one completes twice, or when
// 30 seconds bring no more.
Completions complete(storage::BlockDevice& device, const Clock& clock, std::size_t count);

}  // namespace cairn::testing
