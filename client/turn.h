// One at a time, in the order of coming as far as the scheduler keeps it, and no longer than a
// deadline.
#pragma once

#include "base/clock.h"
#include "base/mutex.h"

#include <chrono>
#include <condition_variable>

namespace cairn::client {

// Thread-safe.
class TurnGate {
 public:
  explicit TurnGate(const Clock& clock) noexcept
      : clock_(clock) {}

  // False: the deadline passed while others had their turn.
  bool enter(Deadline deadline) {
    const MutexLock lock(mutex_);
    while (is_taken_) {
      const Nanoseconds left = deadline.remaining(clock_.now());
      if (left == Nanoseconds(0)) return false;
      free_.wait_for(mutex_, std::min<Nanoseconds>(left, kStep));
    }
    is_taken_ = true;
    return true;
  }
  void leave() {
    {
      const MutexLock lock(mutex_);
      is_taken_ = false;
    }
    free_.notify_one();
  }

 private:
  static constexpr Milliseconds kStep{100};
  const Clock& clock_;
  Mutex mutex_;
  std::condition_variable_any free_;
  bool is_taken_ CAIRN_GUARDED_BY(mutex_) = false;
};

// Holds the gate, or not: is_in().
class Turn {
 public:
  Turn(TurnGate& gate, Deadline deadline)
      : gate_(gate),
        is_in_(gate.enter(deadline)) {}
  ~Turn() {
    if (is_in_) gate_.leave();
  }
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;
  bool is_in() const noexcept { return is_in_; }

 private:
  TurnGate& gate_;
  const bool is_in_;
};

}  // namespace cairn::client
