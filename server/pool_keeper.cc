#include "server/pool_keeper.h"

#include "base/check.h"
#include "base/human.h"
#include "server/log.h"
#include "storage/frame_tier.h"

#include <string>

namespace cairn::server {
namespace {

void add_to_tier(storage::Store& store, const storage::Slab& slab) noexcept {
  store.with_tier_locked([&slab](storage::Tier& tier) {
    CAIRN_CHECK(tier.kind() == storage::TierKind::kDram);
    static_cast<storage::DramTier&>(tier).add_slab(slab);
  });
}

}  // namespace

PoolKeeper::PoolKeeper(const Parts& parts)
    : store_(*parts.store),
      metrics_(*parts.metrics),
      pool_(*parts.pool),
      memory_(*parts.memory),
      page_kind_(static_cast<std::uint8_t>(parts.memory->page_kind())) {
  const MutexLock lock(mutex_);
  for (const storage::Slab& slab : pool_.ready_slabs())
    add_notice(slab);
  const bool is_small = memory_.page_kind() == storage::PageKind::kSmall;
  metrics_.fallback_small_pages.store(is_small ? 1 : 0, std::memory_order_relaxed);
  metrics_.predecessor_bytes.store(pool_.predecessors().bytes.value(), std::memory_order_relaxed);
}

void PoolKeeper::add_notice(const storage::Slab& slab) {
  notices_.push_back({.message = {.slab = slab.number,
                                  .generation = slab.generation,
                                  .bytes = slab.bytes.size(),
                                  .page_kind = page_kind_},
                      .fd = slab.fd});
  ready_bytes_ += ByteCount(slab.bytes.size());
  // Release pairs with ready(): who sees the number may ask for the notice.
  ready_.store(notices_.size(), std::memory_order_release);
}

bool PoolKeeper::step() noexcept {
  const MutexLock lock(mutex_);
  const auto slabs = pool_.step();
  metrics_.predecessor_bytes.store(pool_.predecessors().bytes.value(), std::memory_order_relaxed);
  if (!slabs) {
    if (!is_failing_) {
      log_event(LogLevel::kError,
                "pool_stays_smaller",
                {{"error", error_code_name(slabs.error().code)},
                 {"errno", std::to_string(slabs.error().sys)},
                 {"call", slabs.error().what}});
    }
    is_failing_ = true;
    return false;
  }
  is_failing_ = false;
  for (const storage::Slab& slab : *slabs) {
    // The notice first: who is granted a frame of the slab can have been told of it.
    add_notice(slab);
    add_to_tier(store_, slab);
    log_event(LogLevel::kInfo,
              "slab_ready",
              {{"slab", std::to_string(slab.number)},
               {"bytes", std::to_string(slab.bytes.size())},
               {"pool_bytes", std::to_string(ready_bytes_.value())}});
  }
  return !slabs->empty();
}

PoolKeeper::Notice PoolKeeper::notice(std::size_t index) const noexcept {
  const MutexLock lock(mutex_);
  CAIRN_CHECK(index < notices_.size());
  return notices_[index];
}

ByteCount PoolKeeper::ready_bytes() const noexcept {
  const MutexLock lock(mutex_);
  return ready_bytes_;
}

Result<storage::OwnedFd> PoolKeeper::lock_session(std::uint64_t id,
                                                  std::string_view description) noexcept {
  const MutexLock lock(mutex_);
  return memory_.create_session_lock(id, description);
}

void PoolKeeper::unlock_session(std::uint64_t id) noexcept {
  const MutexLock lock(mutex_);
  memory_.remove_session_lock(id);
}

}  // namespace cairn::server
