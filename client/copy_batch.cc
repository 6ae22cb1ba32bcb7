#include "client/copy_batch.h"

#include "base/checksum.h"

#include <algorithm>

namespace cairn::client {

void CopyBatch::clear(std::size_t checksums) {
  tasks_.clear();
  outcomes_.clear();
  units_.clear();
  checksums_.resize(checksums);
  is_cancelled_.store(false, std::memory_order_relaxed);
}

void CopyBatch::add(const CopyTask& task) {
  tasks_.push_back(task);
  outcomes_.push_back(CopyOutcome::kSkipped);
}

void CopyBatch::run_all(const Clock& clock, Deadline deadline) {
  for (std::size_t i = 0; i < tasks_.size(); ++i) {
    if (deadline.has_passed(clock.now())) return;
    const ChunkRange all{.first = 0, .count = chunk_count(tasks_[i].frame.length)};
    outcomes_[i] = run_copy(tasks_[i], all) ? CopyOutcome::kRight : CopyOutcome::kWrong;
  }
}

void CopyBatch::split() {
  units_.clear();
  for (std::uint32_t i = 0; i < tasks_.size(); ++i) {
    const std::uint32_t chunks = chunk_count(tasks_[i].frame.length);
    for (std::uint32_t first = 0; first < chunks; first += kUnitChunks) {
      units_.push_back(
          {.task = i, .chunks = {.first = first, .count = std::min(kUnitChunks, chunks - first)}});
    }
  }
  next_unit_ = 0;
  // Relaxed: the pool's mutex hands the batch over.
  units_left_.store(units_.size(), std::memory_order_relaxed);
}

void CopyBatch::run_unit(std::size_t unit) noexcept {
  if (is_cancelled_.load(std::memory_order_relaxed)) return;
  Unit& work = units_[unit];
  work.outcome =
      run_copy(tasks_[work.task], work.chunks) ? CopyOutcome::kRight : CopyOutcome::kWrong;
}

void CopyBatch::gather() {
  std::ranges::fill(outcomes_, CopyOutcome::kRight);
  for (const Unit& unit : units_) {
    CopyOutcome& outcome = outcomes_[unit.task];
    outcome = std::max(outcome, unit.outcome);
  }
}

}  // namespace cairn::client
