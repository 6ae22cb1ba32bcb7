#include "transport/control/wait.h"

#include <poll.h>

#include <algorithm>
#include <cerrno>

namespace cairn::transport {

Nanoseconds wait_step(MonotonicTime until, const Clock& clock) noexcept {
  return std::min(Deadline(until).remaining(clock.now()), kWaitStepMax);
}

timeval to_timeval(Nanoseconds wait) noexcept {
  const Nanoseconds step = std::clamp(wait, Nanoseconds(0), kWaitStepMax);
  const auto rounded = std::chrono::ceil<std::chrono::microseconds>(step);
  const auto seconds = std::chrono::floor<std::chrono::seconds>(rounded);
  timeval value{};
  value.tv_sec = seconds.count();
  value.tv_usec = (rounded - seconds).count();
  return value;
}

bool wait_for(int fd, short events, MonotonicTime until, const Clock& clock) noexcept {
  for (;;) {
    const Nanoseconds step = wait_step(until, clock);
    const auto seconds = std::chrono::floor<std::chrono::seconds>(step);
    timespec timeout{};
    timeout.tv_sec = seconds.count();
    timeout.tv_nsec = (step - seconds).count();
    pollfd entry{fd, events, 0};
    const int ready = ::ppoll(&entry, 1, &timeout, nullptr);
    if (ready > 0) return true;
    if (ready < 0 && errno != EINTR) return true;  // the call that follows will say what is wrong
    if (ready == 0 && step < kWaitStepMax) return false;
  }
}

}  // namespace cairn::transport
