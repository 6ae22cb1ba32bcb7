// A queue with a bound that has a name. One thread owns it (see mutex.h for sharing one).
#pragma once

#include "base/check.h"

#include <cstddef>
#include <optional>
#include <utility>
#include <vector>

namespace cairn {

template <typename T>
class BoundedQueue {
 public:
  explicit BoundedQueue(std::size_t capacity)
      : items_(capacity) {
    CAIRN_CHECK(capacity > 0);
  }

  std::size_t size() const noexcept { return size_; }
  bool is_empty() const noexcept { return size_ == 0; }
  bool is_full() const noexcept { return size_ == items_.size(); }

  // False when full; then nothing changes.
  [[nodiscard]] bool push(T item) {
    if (is_full()) return false;
    items_[(head_ + size_) % items_.size()] = std::move(item);
    ++size_;
    return true;
  }
  std::optional<T> pop() {
    if (is_empty()) return std::nullopt;
    T item = std::move(items_[head_]);
    head_ = (head_ + 1) % items_.size();
    --size_;
    return item;
  }

 private:
  std::vector<T> items_;
  std::size_t head_ = 0;
  std::size_t size_ = 0;
};

}  // namespace cairn
