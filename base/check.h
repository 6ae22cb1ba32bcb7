// CAIRN_CHECK is for bugs and is always on: a cache may crash and refill, it may not serve wrong
// bytes. The world (input, disk, peers, configuration) is answered with Result instead.
#pragma once

namespace cairn {

// Writes one line to stderr and aborts.
[[noreturn]] void check_failed(const char* condition, const char* file, int line) noexcept;

}  // namespace cairn

#define CAIRN_CHECK(condition)                               \
  do {                                                       \
    if (!(condition)) [[unlikely]] {                         \
      ::cairn::check_failed(#condition, __FILE__, __LINE__); \
    }                                                        \
  } while (false)

// For checks that cost more than the work they guard.
#ifdef NDEBUG
#define CAIRN_DCHECK(condition) static_cast<void>(0)
#else
#define CAIRN_DCHECK(condition) CAIRN_CHECK(condition)
#endif
