// Time is handed in. Decisions use the monotonic clock only; wall time is for epochs, boot ids and
// what people read.
#pragma once

#include <chrono>
#include <cstdint>
#include <limits>

namespace cairn {

using Nanoseconds = std::chrono::nanoseconds;
using Milliseconds = std::chrono::milliseconds;

// A point on the monotonic clock, in nanoseconds since an arbitrary origin.
struct MonotonicTime {
  std::int64_t ns = 0;
  friend constexpr auto operator<=>(const MonotonicTime&, const MonotonicTime&) noexcept = default;
  // Stops at the ends of the range, so that "now plus for ever" is a time that never comes.
  friend constexpr MonotonicTime operator+(MonotonicTime t, Nanoseconds d) noexcept {
    std::int64_t sum = 0;
    if (!__builtin_add_overflow(t.ns, d.count(), &sum)) return {sum};
    return {d.count() > 0 ? std::numeric_limits<std::int64_t>::max()
                          : std::numeric_limits<std::int64_t>::min()};
  }
  friend constexpr Nanoseconds operator-(MonotonicTime a, MonotonicTime b) noexcept {
    return Nanoseconds(a.ns - b.ns);
  }
};

// Thread-safe.
class Clock {
 public:
  Clock() = default;
  Clock(const Clock&) = delete;
  Clock& operator=(const Clock&) = delete;
  virtual ~Clock() = default;
  virtual MonotonicTime now() const noexcept = 0;
  virtual std::uint64_t unix_ms() const noexcept = 0;
};

class SystemClock final : public Clock {
 public:
  MonotonicTime now() const noexcept override;
  std::uint64_t unix_ms() const noexcept override;
};

// A moment after which an operation must have ended.
class Deadline {
 public:
  constexpr explicit Deadline(MonotonicTime at)
      : at_(at) {}
  static Deadline after(const Clock& clock, Nanoseconds delay) noexcept {
    return Deadline(clock.now() + delay);
  }
  constexpr MonotonicTime at() const noexcept { return at_; }
  constexpr bool has_passed(MonotonicTime now) const noexcept { return now >= at_; }
  // Zero once passed.
  constexpr Nanoseconds remaining(MonotonicTime now) const noexcept {
    return has_passed(now) ? Nanoseconds(0) : at_ - now;
  }
  friend constexpr auto operator<=>(const Deadline&, const Deadline&) noexcept = default;

 private:
  MonotonicTime at_;
};

}  // namespace cairn
