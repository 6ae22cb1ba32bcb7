// The current epoch of each namespace of this process.
#pragma once

#include "base/result.h"
#include "base/units.h"
#include "storage/lazy_memory.h"
#include "storage/store.h"

#include <atomic>
#include <cstdint>
#include <span>
#include <utility>

namespace cairn::storage {

// Reading is any thread's; raising is for the holder of the store's mutex, so that a commit that
// compares under it is either before a purge or refused.
class NamespaceEpochs {
 public:
  // Errors: kNoSpace.
  static Result<NamespaceEpochs> create() noexcept {
    CAIRN_TRY(LazyMemory memory,
              LazyMemory::map(ByteCount(kNamespacesMax * sizeof(std::atomic<std::uint64_t>))));
    return NamespaceEpochs(std::move(memory));
  }

  // 0 for a slot that was never set or does not exist.
  std::uint64_t get(NamespaceSlot slot) const noexcept {
    if (slot.value() >= kNamespacesMax) return 0;
    // Acquire pairs with raise(): who learns that a purge is done also reads its epoch.
    return epochs_[slot.value()].load(std::memory_order_acquire);
  }
  bool is_current(const Scope& scope) const noexcept {
    return scope.slot.value() < kNamespacesMax && get(scope.slot) == scope.epoch;
  }
  // False when `epoch` is not higher than the current one.
  bool raise(NamespaceSlot slot, std::uint64_t epoch) noexcept {
    if (epoch <= get(slot)) return false;
    epochs_[slot.value()].store(epoch, std::memory_order_release);
    if (slot.value() >= slots_used_) slots_used_ = slot.value() + 1;
    return true;
  }
  ByteCount memory() const noexcept { return ByteCount(slots_used_ * sizeof(std::uint64_t)); }

 private:
  explicit NamespaceEpochs(LazyMemory memory) noexcept
      : memory_(std::move(memory)),
        epochs_(memory_.as<std::atomic<std::uint64_t>>()) {}

  LazyMemory memory_;
  std::span<std::atomic<std::uint64_t>> epochs_;
  std::uint64_t slots_used_ = 0;
};

}  // namespace cairn::storage
