// The threads that make slabs resident, a step at a time.
#pragma once

#include "base/mutex.h"
#include "base/result.h"
#include "base/units.h"
#include "storage/pool_memory.h"

#include <pthread.h>

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

namespace cairn::storage {

// One owner makes every call; the threads run inside. Destroying it waits for the steps that have
// begun, no longer than one step takes.
class PopulateCrew {
 public:
  // Bytes that one call of PoolMemory::populate() is asked for.
  static constexpr ByteCount kStep = 64_MiB;

  struct Finished {
    std::uint32_t slab = 0;
    Status status;  // the first failure; the slab's later steps were left out
  };

  explicit PopulateCrew(PoolMemory& memory) noexcept
      : memory_(memory) {}
  ~PopulateCrew();
  PopulateCrew(const PopulateCrew&) = delete;
  PopulateCrew& operator=(const PopulateCrew&) = delete;

  // Starts `threads` threads. Errors: kIo (none could be started; fewer are accepted).
  Status start(std::uint32_t threads) noexcept;
  // Slabs are finished in the order given.
  void add(std::uint32_t slab, ByteCount bytes) noexcept;
  // Does one step in the caller's thread: what a crew without threads lives by.
  void do_one_step() noexcept;
  std::vector<Finished> take_finished() noexcept;

 private:
  struct Job {
    std::uint32_t slab = 0;
    ByteCount bytes;
    ByteCount begun;  // steps up to here were handed out
    std::uint32_t steps_running = 0;
    Status status;
    bool is_finished() const noexcept {
      return steps_running == 0 && (begun == bytes || !status.has_value());
    }
  };
  struct Step {
    std::uint32_t slab = 0;
    ByteCount offset;
    ByteCount bytes;
  };

  static void* thread_main(void* crew);
  void run_thread() noexcept;
  std::optional<Step> begin_step() noexcept CAIRN_REQUIRES(mutex_);
  void do_step(const Step& step) noexcept CAIRN_EXCLUDES(mutex_);

  PoolMemory& memory_;
  std::vector<pthread_t> threads_;
  Mutex mutex_;
  std::condition_variable_any work_;  // a job was added, or the end has come
  std::deque<Job> jobs_ CAIRN_GUARDED_BY(mutex_);
  bool is_stopping_ CAIRN_GUARDED_BY(mutex_) = false;
};

}  // namespace cairn::storage
