// The node's one hand on the pool and its memory, which are one thread's each: slabs that became
// ready, and the locks that sessions hold while they map them.
#pragma once

#include "base/mutex.h"
#include "base/result.h"
#include "base/units.h"
#include "server/metrics.h"
#include "storage/pool.h"
#include "storage/store.h"
#include "transport/wire/messages.h"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace cairn::server {

// Any thread. Lock order: session.h.
class PoolKeeper {
 public:
  struct Parts {
    storage::Store* store = nullptr;
    storage::Pool* pool = nullptr;
    storage::PoolMemory* memory = nullptr;
    NodeMetrics* metrics = nullptr;
  };
  // Slabs that the pool has ready already are in the store's tier already.
  explicit PoolKeeper(const Parts& parts);

  // Lets the pool go on: adds slabs that became ready to the store's tier. True: there are more.
  bool step() noexcept;

  // Slabs that are ready; notice(0) to notice(ready() - 1) describe them.
  std::size_t ready() const noexcept { return ready_.load(std::memory_order_acquire); }
  struct Notice {
    wire::SlabNotice message;
    int fd = -1;  // stays the pool's
  };
  Notice notice(std::size_t index) const noexcept;
  ByteCount ready_bytes() const noexcept;

  // Errors: as PoolMemory::create_session_lock.
  Result<storage::OwnedFd> lock_session(std::uint64_t id, std::string_view description) noexcept;
  void unlock_session(std::uint64_t id) noexcept;

 private:
  void add_notice(const storage::Slab& slab) CAIRN_REQUIRES(mutex_);

  storage::Store& store_;
  NodeMetrics& metrics_;
  mutable Mutex mutex_;
  storage::Pool& pool_ CAIRN_GUARDED_BY(mutex_);
  storage::PoolMemory& memory_ CAIRN_GUARDED_BY(mutex_);
  std::vector<Notice> notices_ CAIRN_GUARDED_BY(mutex_);
  ByteCount ready_bytes_ CAIRN_GUARDED_BY(mutex_);
  std::uint8_t page_kind_ = 0;
  bool is_failing_ CAIRN_GUARDED_BY(mutex_) = false;  // the last step failed, as the log knows
  std::atomic<std::size_t> ready_{0};
};

}  // namespace cairn::server
