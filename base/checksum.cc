#include "base/checksum.h"

#include "base/check.h"

#include <isa-l/crc.h>
#include <xxhash.h>

#include <algorithm>
#include <cstring>

namespace cairn {
namespace {

// Small enough that the copy is still in the first-level cache when its checksum is taken.
constexpr std::size_t kCopyStepBytes = (2_KiB).value();

// The processor's own string move in words: from memory that is in no cache it writes without
// reading the target's lines first, which memcpy's vector loops do up to a size of megabytes
// (bench/copy_steps). Sanitizers can't see into it, so they get memcpy.
#if defined(__x86_64__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
void copy_step(std::byte* target, const std::byte* source, std::size_t bytes) noexcept {
  std::size_t words = bytes / sizeof(std::uint64_t);
  asm volatile("rep movsq" : "+D"(target), "+S"(source), "+c"(words) : : "memory");
  std::memcpy(target, source, bytes % sizeof(std::uint64_t));
}
#else
void copy_step(std::byte* target, const std::byte* source, std::size_t bytes) noexcept {
  std::memcpy(target, source, bytes);
}
#endif

// ISA-L takes the raw register, without the final xor. It only reads, whatever its prototype says.
std::uint32_t raw_crc(std::uint32_t raw, std::span<const std::byte> bytes) noexcept {
  auto* data = const_cast<unsigned char*>(reinterpret_cast<const unsigned char*>(bytes.data()));
  return crc32_iscsi(data, static_cast<int>(bytes.size()), raw);
}

}  // namespace

std::uint32_t extend_crc32c(std::uint32_t crc, std::span<const std::byte> bytes) noexcept {
  std::uint32_t raw = ~crc;
  while (!bytes.empty()) {  // ISA-L's length is an int
    const std::size_t step = std::min<std::size_t>(bytes.size(), std::size_t{1} << 30U);
    raw = raw_crc(raw, bytes.first(step));
    bytes = bytes.subspan(step);
  }
  return ~raw;
}

std::uint32_t crc32c(std::span<const std::byte> bytes) noexcept {
  return extend_crc32c(0, bytes);
}

std::uint32_t extend_copy_with_crc32c(std::uint32_t crc,
                                      std::span<std::byte> target,
                                      std::span<const std::byte> source) noexcept {
  CAIRN_CHECK(target.size() == source.size());
  std::uint32_t raw = ~crc;
  for (std::size_t at = 0; at < source.size(); at += kCopyStepBytes) {
    const std::size_t step = std::min(kCopyStepBytes, source.size() - at);
    copy_step(target.data() + at, source.data() + at, step);
    raw = raw_crc(raw, target.subspan(at, step));
  }
  return ~raw;
}

void copy_bytes(std::span<std::byte> target, std::span<const std::byte> source) noexcept {
  CAIRN_CHECK(target.size() == source.size());
  if (source.empty()) return;  // an empty span may have no address, and memcpy wants one
  copy_step(target.data(), source.data(), source.size());
}

std::uint32_t copy_with_crc32c(std::span<std::byte> target,
                               std::span<const std::byte> source) noexcept {
  return extend_copy_with_crc32c(0, target, source);
}

std::uint64_t xxh3_64(std::span<const std::byte> bytes) noexcept {
  return XXH3_64bits(bytes.data(), bytes.size());
}

}  // namespace cairn
