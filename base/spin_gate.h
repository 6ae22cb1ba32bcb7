// Whether the next wait for a peer is better begun by asking again and again than by sleeping: to
// wake a thread takes as long as most answers on one host, several times as long on a virtual one.
#pragma once

#include "base/clock.h"

namespace cairn {

// One thread's. A wait spins only after one that was short, so whoever waits for slow or rare
// things, or shares its core with the one it waits for, sleeps at once.
class SpinGate {
 public:
  // The longest spin; zero: never.
  explicit SpinGate(Nanoseconds limit = Nanoseconds(0)) noexcept
      : limit_(limit) {}

  // How long the wait that begins now may spin before it sleeps.
  Nanoseconds budget() const noexcept { return is_worth_ ? limit_ : Nanoseconds(0); }

  // What that wait came to: how long it took, and whether something came. One that slept took the
  // time of a wake-up too, hence the factor.
  void waited(Nanoseconds took, bool has_come) noexcept {
    is_worth_ = has_come && took <= 2 * limit_;
  }

 private:
  Nanoseconds limit_;
  bool is_worth_ = false;
};

}  // namespace cairn
