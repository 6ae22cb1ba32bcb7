// Places of operations in order, without allocating once made.
#pragma once

#include "base/check.h"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace cairn::storage {

// First in, first out; at most `capacity` at a time.
class SlotQueue {
 public:
  explicit SlotQueue(std::size_t capacity)
      : slots_(capacity) {}
  bool is_empty() const noexcept { return count_ == 0; }
  std::size_t size() const noexcept { return count_; }
  std::uint32_t front() const noexcept { return slots_[first_]; }
  void push(std::uint32_t slot) noexcept {
    CAIRN_CHECK(count_ < slots_.size());
    slots_[(first_ + count_) % slots_.size()] = slot;
    ++count_;
  }
  std::uint32_t pop() noexcept {
    CAIRN_CHECK(count_ > 0);
    const std::uint32_t slot = slots_[first_];
    first_ = (first_ + 1) % slots_.size();
    --count_;
    return slot;
  }

 private:
  std::vector<std::uint32_t> slots_;
  std::size_t first_ = 0;
  std::size_t count_ = 0;
};

}  // namespace cairn::storage
