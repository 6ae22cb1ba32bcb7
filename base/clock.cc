#include "base/clock.h"

namespace cairn {

MonotonicTime SystemClock::now() const noexcept {
  return {
      std::chrono::duration_cast<Nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
          .count()};
}

std::uint64_t SystemClock::unix_ms() const noexcept {
  const auto since = std::chrono::system_clock::now().time_since_epoch();
  return static_cast<std::uint64_t>(std::chrono::duration_cast<Milliseconds>(since).count());
}

}  // namespace cairn
