// Tells a writer when every reader that might still use a replaced table has left, without making
// readers wait and without the writer ever spinning. A template over the atomics policy.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>

namespace cairn::storage {

// Readers: enter(), *then* load the pointer to the table, use it, leave(). Writer (one at a time):
// replace the pointer with a seq_cst store, begin_drain(), and ask is_drained() now and then.
//
// Readers count themselves on one of two sides. A side that was seen empty after the replacement
// holds no reader of the old table from then on; new readers are sent to such a side, so that
// steady traffic cannot keep the other from draining.
template <typename Atomics>
class BasicReaderGate {
 public:
  // The side to hand to leave().
  std::uint32_t enter() noexcept {
    // Relaxed: either side is right, the current one only drains sooner.
    const std::uint32_t side = side_.load(std::memory_order_relaxed);
    // Sequentially consistent, as are the reader's load of the pointer, the writer's store of it
    // and its look at this count: if the writer saw 0, this reader comes later in that order and
    // loads the new pointer.
    counts_[side].readers.fetch_add(1, std::memory_order_seq_cst);
    return side;
  }
  void leave(std::uint32_t side) noexcept {
    // Release: the reads of the table end before the writer, who acquires, frees it.
    counts_[side].readers.fetch_sub(1, std::memory_order_release);
  }

  // Writer: the pointer has been replaced.
  void begin_drain() noexcept { seen_empty_ = {false, false}; }
  // Writer: true when no reader that entered before the last begin_drain() is inside. Looks at each
  // side once; never waits.
  bool is_drained() noexcept {
    for (std::uint32_t side = 0; side < counts_.size(); ++side) {
      if (seen_empty_[side]) continue;
      if (counts_[side].readers.load(std::memory_order_seq_cst) != 0) continue;
      seen_empty_[side] = true;
      side_.store(side, std::memory_order_relaxed);
    }
    return seen_empty_[0] && seen_empty_[1];
  }

 private:
  // One cache line a side, so that two sides do not slow each other down.
  struct alignas(64) Count {
    typename Atomics::template Atomic<std::uint64_t> readers{0};
  };
  std::array<Count, 2> counts_{};
  typename Atomics::template Atomic<std::uint32_t> side_{0};
  std::array<bool, 2> seen_empty_{true, true};
};

}  // namespace cairn::storage
