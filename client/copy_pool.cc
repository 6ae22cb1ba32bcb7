#include "client/copy_pool.h"

#include "base/check.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <system_error>
#include <utility>

namespace cairn::client {
namespace {

// Waits are cut to this, so that a far deadline overflows nothing.
constexpr Nanoseconds kWaitMax = std::chrono::seconds(10);

}  // namespace

CopyPool::CopyPool(std::uint32_t threads) {
  threads_.reserve(threads);
  try {
    for (std::uint32_t i = 0; i < threads; ++i)
      threads_.emplace_back([this] { run(); });
  } catch (const std::system_error&) {
    return;  // has_all() tells
  }
}

CopyPool::~CopyPool() {
  {
    const MutexLock lock(mutex_);
    is_stopping_ = true;
  }
  wake_.notify_all();
  for (std::thread& thread : threads_)
    thread.join();
}

void CopyPool::submit(const Work& work) {
  {
    const MutexLock lock(mutex_);
    queue_.push_back(work);
  }
  wake_.notify_all();
}

CopyPool::Claim CopyPool::claim() {
  CopyBatch& batch = *queue_.front().batch;
  Claim claim{.work = queue_.front(), .first = batch.next_unit_, .count = 0};
  std::uint32_t chunks = 0;
  while (batch.next_unit_ < batch.units_.size() && chunks < CopyBatch::kUnitChunks) {
    chunks += batch.units_[batch.next_unit_++].chunks.count;
    ++claim.count;
  }
  if (batch.next_unit_ == batch.units_.size()) queue_.pop_front();
  return claim;
}

void CopyPool::run() {
  for (;;) {
    Claim claimed;
    {
      const MutexLock lock(mutex_);
      while (queue_.empty() && !is_stopping_)
        wake_.wait(mutex_);
      if (queue_.empty()) return;
      claimed = claim();
    }
    CopyBatch& batch = *claimed.work.batch;
    for (std::size_t i = 0; i < claimed.count; ++i)
      batch.run_unit(claimed.first + i);
    // Acquire and release: whoever is last sees every copy and outcome of the others.
    const std::size_t before =
        batch.units_left_.fetch_sub(claimed.count, std::memory_order_acq_rel);
    if (before == claimed.count) claimed.work.owner->finished(batch);
  }
}

Copier::Copier(CopyPool* pool, const Clock& clock)
    : pool_(pool),
      clock_(clock) {
  if (pool_ != nullptr) event_fd_ = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
}

Copier::~Copier() {
  while (running_ > 0) {
    const MutexLock lock(mutex_);
    while (finished_.empty())
      done_.wait(mutex_);
    running_ -= finished_.size();
    finished_.clear();
  }
  abandon();
}

void Copier::abandon() noexcept {
  if (event_fd_ >= 0) ::close(std::exchange(event_fd_, -1));
}

bool Copier::start(CopyBatch& batch, Deadline deadline) {
  if (pool_ == nullptr || batch.size() == 0) {
    batch.run_all(clock_, deadline);
    return true;
  }
  batch.split();
  batch.is_running_ = true;
  ++running_;
  pool_->submit({.batch = &batch, .owner = this});
  return false;
}

CopyBatch* Copier::collect() {
  if (running_ == 0) return nullptr;
  CopyBatch* batch = nullptr;
  {
    const MutexLock lock(mutex_);
    if (finished_.empty()) return nullptr;
    batch = finished_.back();
    finished_.pop_back();
    if (finished_.empty() && event_fd_ >= 0) {
      std::uint64_t count = 0;
      [[maybe_unused]] const auto bytes = ::read(event_fd_, &count, sizeof(count));
    }
  }
  --running_;
  batch->is_running_ = false;
  batch->gather();
  return batch;
}

bool Copier::wait(MonotonicTime until) {
  const Nanoseconds left = Deadline(until).remaining(clock_.now());
  const MutexLock lock(mutex_);
  if (finished_.empty()) {
    done_.wait_for(mutex_, std::min(left, kWaitMax));
  }
  return !finished_.empty();
}

void Copier::finished(CopyBatch& batch) {
  // All under the lock: once it is let go, the queue may take the batch and leave.
  const MutexLock lock(mutex_);
  finished_.push_back(&batch);
  const std::uint64_t one = 1;
  if (event_fd_ >= 0) {
    [[maybe_unused]] const auto bytes = ::write(event_fd_, &one, sizeof(one));
  }
  done_.notify_all();
}

}  // namespace cairn::client
