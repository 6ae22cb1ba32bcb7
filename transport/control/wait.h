// Waiting until a point on the monotonic clock, in the units of the system calls.
#pragma once

#include "base/clock.h"

#include <sys/time.h>

#include <chrono>

namespace cairn::transport {

// The longest single wait of a system call. A longer one is waited for in steps, so that "for
// ever" overflows nothing.
inline constexpr Nanoseconds kWaitStepMax = std::chrono::hours(1);

// From now to `until`: zero once it has passed, at most kWaitStepMax.
Nanoseconds wait_step(MonotonicTime until, const Clock& clock) noexcept;

// Rounded up to whole microseconds, at most kWaitStepMax.
timeval to_timeval(Nanoseconds wait) noexcept;

// Waits by poll(2) until `fd` has one of `events`, an error or a hang-up. False when `until` has
// passed first. Signals do not end it.
bool wait_for(int fd, short events, MonotonicTime until, const Clock& clock) noexcept;

}  // namespace cairn::transport
