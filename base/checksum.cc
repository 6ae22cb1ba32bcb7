#include "base/checksum.h"

#include "base/check.h"
#include "base/stream_copy.h"

#include <isa-l/crc.h>
#include <xxhash.h>

#include <algorithm>
#include <cstring>

namespace cairn {
namespace {

// Small enough that the copy is still in the first-level cache when its checksum is taken.
constexpr std::size_t kCopyStepBytes = (2_KiB).value();
// A streaming copy is bound by the reads of its source: they are asked for this far ahead, into the
// second-level cache, which has more reads under way at a time than the first (bench/copy_steps).
constexpr std::size_t kStreamStepBytes = (1_KiB).value();
constexpr std::size_t kStreamAheadBytes = (4_KiB).value();
constexpr std::size_t kLineBytes = 64;

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

// Asks for [at, at + bytes) of `source`, as much of it as there is.
enum class CacheLevel : std::uint8_t { kFirst, kSecond };
template <CacheLevel kLevel>
void prefetch(std::span<const std::byte> source, std::size_t at, std::size_t bytes) noexcept {
  constexpr int kLocality = kLevel == CacheLevel::kFirst ? 3 : 2;
  const std::size_t end = std::min(source.size(), at + bytes);
  for (; at < end; at += kLineBytes)
    __builtin_prefetch(source.data() + at, 0, kLocality);
}

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
    // The string move cannot look ahead; the next step comes while this one's checksum is taken.
    prefetch<CacheLevel::kFirst>(source, at + step, kCopyStepBytes);
    raw = raw_crc(raw, target.subspan(at, step));
  }
  return ~raw;
}

std::uint32_t stream_with_crc32c(std::span<std::byte> target,
                                 std::span<const std::byte> source) noexcept {
  CAIRN_CHECK(target.size() == source.size());
  static const StreamCopy stream = find_stream_copy();
  if (stream == nullptr) return copy_with_crc32c(target, source);
  std::uint32_t raw = ~0U;
  prefetch<CacheLevel::kSecond>(source, 0, kStreamAheadBytes);
  for (std::size_t at = 0; at < source.size(); at += kStreamStepBytes) {
    const std::size_t step = std::min(kStreamStepBytes, source.size() - at);
    prefetch<CacheLevel::kSecond>(source, at + kStreamAheadBytes, kStreamStepBytes);
    raw = raw_crc(raw, source.subspan(at, step));
    stream(target.data() + at, source.data() + at, step);
  }
  stream_fence();
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
