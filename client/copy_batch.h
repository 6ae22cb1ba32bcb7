// The copies of one batch of blocks, done by whoever calls or by copy threads.
#pragma once

#include "base/clock.h"
#include "client/frame_copy.h"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace cairn::client {

class Flow;

enum class CopyOutcome : std::uint8_t { kRight, kWrong, kSkipped };

// Filled, then given to a Copier; untouched until that says it is finished, but for cancel().
// Reused: it takes memory only to grow.
class CopyBatch {
 public:
  // Bytes that one thread copies between two looks at the queue.
  static constexpr std::uint32_t kUnitChunks = 4;

  CopyBatch() = default;
  CopyBatch(const CopyBatch&) = delete;
  CopyBatch& operator=(const CopyBatch&) = delete;
  ~CopyBatch() = default;

  // Empty, with room for `checksums`.
  void clear(std::size_t checksums);
  std::uint32_t* checksums_at(std::size_t first) noexcept { return checksums_.data() + first; }
  const std::uint32_t* checksums_at(std::size_t first) const noexcept {
    return checksums_.data() + first;
  }
  std::vector<std::uint32_t>& checksums() noexcept { return checksums_; }
  void add(const CopyTask& task);
  std::size_t size() const noexcept { return tasks_.size(); }
  // Of task i, once finished.
  CopyOutcome outcome(std::size_t i) const noexcept { return outcomes_[i]; }

  // The flow it belongs to.
  Flow* owner() const noexcept { return owner_; }
  void set_owner(Flow* owner) noexcept { owner_ = owner; }

  // What has not begun is skipped. Any thread.
  void cancel() noexcept { is_cancelled_.store(true, std::memory_order_relaxed); }
  // True while copy threads may be inside the memory of its tasks.
  bool is_running() const noexcept { return is_running_; }

 private:
  friend class Copier;
  friend class CopyPool;
  struct Unit {
    std::uint32_t task = 0;
    ChunkRange chunks;
    CopyOutcome outcome = CopyOutcome::kSkipped;
  };

  void run_all(const Clock& clock, Deadline deadline);
  void split();
  void run_unit(std::size_t unit) noexcept;
  void gather();

  Flow* owner_ = nullptr;
  std::vector<CopyTask> tasks_;
  std::vector<CopyOutcome> outcomes_;
  std::vector<std::uint32_t> checksums_;
  std::vector<Unit> units_;
  std::size_t next_unit_ = 0;  // under the pool's mutex
  std::atomic<std::size_t> units_left_{0};
  std::atomic<bool> is_cancelled_{false};  // relaxed: it only saves work
  bool is_running_ = false;                // the queue's thread alone
};

}  // namespace cairn::client
