// CRC-32C over chunks of payload, and XXH3-64 for our own structures.
#pragma once

#include "base/units.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>

namespace cairn {

// CRC-32C (Castagnoli), initial value and final xor 0xFFFFFFFF, as in RFC 3720 appendix B.4.
std::uint32_t crc32c(std::span<const std::byte> bytes) noexcept;
// Continues a CRC: extend_crc32c(crc32c(a), b) == crc32c(a followed by b).
std::uint32_t extend_crc32c(std::uint32_t crc, std::span<const std::byte> bytes) noexcept;

// Copies `source` to `target` (equal sizes, no overlap) in the way that is fastest for blocks that
// are in no cache (docs/claims.md, bench/copy_steps).
void copy_bytes(std::span<std::byte> target, std::span<const std::byte> source) noexcept;

// As above, and returns the CRC-32C of what is in `target`: each step of 2 KiB is copied, then
// checksummed from the copy, so a source that changes meanwhile cannot give bytes that differ from
// their checksum.
std::uint32_t copy_with_crc32c(std::span<std::byte> target,
                               std::span<const std::byte> source) noexcept;
// The same for a target that no processor reads soon (base/stream_copy.h). Each step of 1 KiB
// is checksummed at the source, then copied: a source that changes meanwhile may give bytes that
// differ from their checksum, which whoever reads them finds out. Without such stores: as above.
std::uint32_t stream_with_crc32c(std::span<std::byte> target,
                                 std::span<const std::byte> source) noexcept;
// copy_with_crc32c(), continuing `crc`.
std::uint32_t extend_copy_with_crc32c(std::uint32_t crc,
                                      std::span<std::byte> target,
                                      std::span<const std::byte> source) noexcept;

std::uint64_t xxh3_64(std::span<const std::byte> bytes) noexcept;

// Chunks of a payload of `length` bytes: ceil(length / 256 KiB), at most 2^32 - 1. 0 for 0. A
// length from outside never gives a small count by wrapping round.
constexpr std::uint32_t chunk_count(std::uint64_t length) noexcept {
  constexpr std::uint64_t kMax = std::numeric_limits<std::uint32_t>::max();
  return static_cast<std::uint32_t>(std::min(divide_up(length, kChunkBytes.value()), kMax));
}

}  // namespace cairn
