#include "base/stream_copy.h"

#include "base/check.h"

#include <cstdint>
#include <cstring>

// Sanitizers do not see what streaming stores write.
#if defined(__x86_64__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define CAIRN_STREAM_COPY 1
#include <immintrin.h>
#endif

namespace cairn {

#ifdef CAIRN_STREAM_COPY
namespace {

constexpr std::size_t kLineBytes = 64;

// Copies up to the first whole line of the target; the bytes that took.
std::size_t copy_head(std::byte* target, const std::byte* source, std::size_t bytes) noexcept {
  const std::size_t into_line = reinterpret_cast<std::uintptr_t>(target) % kLineBytes;
  const std::size_t head = into_line == 0 ? 0 : kLineBytes - into_line;
  if (head >= bytes) return 0;
  std::memcpy(target, source, head);
  return head;
}

__attribute__((target("avx512f"))) void stream_lines_512(std::byte* target,
                                                         const std::byte* source,
                                                         std::size_t bytes) noexcept {
  std::size_t at = copy_head(target, source, bytes);
  for (; at + kLineBytes <= bytes; at += kLineBytes) {
    _mm512_stream_si512(reinterpret_cast<__m512i*>(target + at), _mm512_loadu_si512(source + at));
  }
  std::memcpy(target + at, source + at, bytes - at);
}

__attribute__((target("avx2"))) void stream_lines_256(std::byte* target,
                                                      const std::byte* source,
                                                      std::size_t bytes) noexcept {
  std::size_t at = copy_head(target, source, bytes);
  for (; at + kLineBytes <= bytes; at += kLineBytes) {
    const auto* const from = reinterpret_cast<const __m256i*>(source + at);
    auto* const to = reinterpret_cast<__m256i*>(target + at);
    const __m256i low = _mm256_loadu_si256(from);
    const __m256i high = _mm256_loadu_si256(from + 1);
    _mm256_stream_si256(to, low);
    _mm256_stream_si256(to + 1, high);
  }
  std::memcpy(target + at, source + at, bytes - at);
}

}  // namespace

StreamCopy find_stream_copy() noexcept {
  if (__builtin_cpu_supports("avx512f") != 0) return stream_lines_512;
  if (__builtin_cpu_supports("avx2") != 0) return stream_lines_256;
  return nullptr;
}

void stream_fence() noexcept {
  _mm_sfence();
}
#else
StreamCopy find_stream_copy() noexcept {
  return nullptr;
}

void stream_fence() noexcept {}
#endif

void stream_bytes(std::span<std::byte> target, std::span<const std::byte> source) noexcept {
  CAIRN_CHECK(target.size() == source.size());
  if (source.empty()) return;
  static const StreamCopy stream = find_stream_copy();
  if (stream != nullptr) {
    stream(target.data(), source.data(), source.size());
  } else {
    std::memcpy(target.data(), source.data(), source.size());
  }
}

}  // namespace cairn
