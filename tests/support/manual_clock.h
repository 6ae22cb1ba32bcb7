// A clock that stands still until the test moves it.
#pragma once

#include "base/clock.h"

#include <atomic>

namespace cairn::testing {

class ManualClock final : public Clock {
 public:
  MonotonicTime now() const noexcept override { return {ns_.load()}; }
  std::uint64_t unix_ms() const noexcept override { return unix_ms_.load(); }
  void advance(Nanoseconds by) noexcept {
    ns_ += by.count();
    unix_ms_ += static_cast<std::uint64_t>(by.count() / 1'000'000);
  }
  void set_unix_ms(std::uint64_t value) noexcept { unix_ms_ = value; }

 private:
  std::atomic<std::int64_t> ns_{1'000'000'000};
  std::atomic<std::uint64_t> unix_ms_{1'700'000'000'000};
};

}  // namespace cairn::testing
