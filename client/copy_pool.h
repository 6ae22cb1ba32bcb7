// Threads that copy beside the callers, and a queue's way to them.
#pragma once

#include "base/clock.h"
#include "base/mutex.h"
#include "client/copy_batch.h"

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <thread>
#include <vector>

namespace cairn::client {

class Copier;

// Thread-safe. Every Copier of it is destroyed first.
class CopyPool {
 public:
  explicit CopyPool(std::uint32_t threads);
  ~CopyPool();
  CopyPool(const CopyPool&) = delete;
  CopyPool& operator=(const CopyPool&) = delete;

  // False: the system gave fewer than asked for.
  bool has(std::uint32_t threads) const noexcept { return threads_.size() == threads; }

 private:
  friend class Copier;
  struct Work {
    CopyBatch* batch = nullptr;
    Copier* owner = nullptr;
  };
  struct Claim {
    Work work;
    std::size_t first = 0;
    std::size_t count = 0;
  };

  void submit(const Work& work);
  void run();
  Claim claim() CAIRN_REQUIRES(mutex_);

  Mutex mutex_;  // before Copier::mutex_, never together
  std::condition_variable_any wake_;
  std::deque<Work> queue_ CAIRN_GUARDED_BY(mutex_);
  bool is_stopping_ CAIRN_GUARDED_BY(mutex_) = false;
  std::vector<std::thread> threads_;
};

// One queue's copies. One thread's, but for finished().
class Copier {
 public:
  // `pool`: nullptr to copy inside start().
  Copier(CopyPool* pool, const Clock& clock);
  // Waits for the threads to leave the memory of its batches.
  ~Copier();
  Copier(const Copier&) = delete;
  Copier& operator=(const Copier&) = delete;

  // True: the batch is finished; what `deadline` overtook is skipped. False: collect() will give
  // it.
  bool start(CopyBatch& batch, Deadline deadline);
  // A batch that threads have finished, or nullptr.
  CopyBatch* collect();
  bool is_idle() const noexcept { return running_ == 0; }
  // Until a batch is finished or `until` passes. True: collect().
  bool wait(MonotonicTime until);
  // Readable when collect() has something; -1 without copy threads or descriptors.
  int event_fd() const noexcept { return event_fd_; }
  // In a forked child: there are no threads, the descriptor is closed.
  void abandon() noexcept;

 private:
  friend class CopyPool;
  void finished(CopyBatch& batch);

  CopyPool* pool_;
  const Clock& clock_;
  int event_fd_ = -1;
  std::size_t running_ = 0;  // not collected yet
  Mutex mutex_;
  std::condition_variable_any done_;
  std::vector<CopyBatch*> finished_ CAIRN_GUARDED_BY(mutex_);
};

}  // namespace cairn::client
