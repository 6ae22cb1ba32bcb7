// Lock-free structures are templates over an atomics policy, so that tests can run every
// interleaving of small bounds (tests/support/model_atomics.h) over the very code that ships.
#pragma once

#include <atomic>

namespace cairn {

struct StdAtomics {
  template <typename T>
  using Atomic = std::atomic<T>;
  static void fence(std::memory_order order) noexcept { std::atomic_thread_fence(order); }
};

}  // namespace cairn
