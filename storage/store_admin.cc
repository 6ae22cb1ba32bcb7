#include "base/check.h"
#include "storage/store_impl.h"

#include <algorithm>

namespace cairn::storage {
namespace {

// What ran out is forgotten a few at a time, by whoever asks for retention or sweeps.
constexpr std::size_t kExpireSteps = 64;
constexpr std::uint64_t kListStepsPerDigest = 64;
constexpr std::uint64_t kListStepsBase = 4096;

}  // namespace

void Store::Impl::set_epoch(NamespaceSlot slot, std::uint64_t epoch) noexcept {
  CAIRN_CHECK(slot.value() < kNamespacesMax);
  const MutexLock lock(mutex_);
  // Whatever carries an older epoch exists already: a later commit compares under this mutex.
  if (epochs_.raise(slot, epoch)) sweep_left_ = records_.used();
}

void Store::Impl::sweep_locked(std::uint32_t steps) noexcept {
  steps = std::min(steps, sweep_left_);
  for (std::uint32_t i = 0; i < steps; ++i) {
    sweep_at_ = sweep_at_ + 1 >= records_.used() ? 0 : sweep_at_ + 1;
    const Record& record = records_[sweep_at_];
    const bool is_live = record.pin_word().view().state == RecordState::kLive;
    if (!is_live || record.epoch() == epochs_.get(NamespaceSlot(record.slot()))) continue;
    drop_locked(sweep_at_);
    ++counted_.removed;
  }
  sweep_left_ -= steps;
}

bool Store::Impl::sweep(std::uint32_t steps) noexcept {
  bool is_done = false;
  do {
    const MutexLock lock(mutex_);
    retention_.expire(clock_.now(), kExpireSteps);
    const std::uint32_t stay = std::min(steps, kSweepStay);
    sweep_locked(stay);
    steps -= stay;
    is_done = sweep_left_ == 0;
  } while (steps > 0 && !is_done);
  return is_done;
}

Store::Listing Store::Impl::list(const Scope& scope,
                                 std::uint64_t cursor,
                                 std::size_t limit) const {
  Listing out;
  if (!epochs_.is_current(scope)) return out;
  const std::uint64_t used = records_.used();
  const std::uint64_t last = std::min(used, cursor + kListStepsPerDigest * limit + kListStepsBase);
  std::uint64_t at = cursor;
  for (; at < last && out.digests.size() < limit; ++at) {
    const Record& record = records_[static_cast<RecordNumber>(at)];
    const PinView view = record.pin_word().view();
    if (view.state != RecordState::kLive) continue;
    if (record.slot() != scope.slot.value() || record.epoch() != scope.epoch) continue;
    const DigestWords digest = record.digest();
    if (!record.pin_word().is_still(view.generation)) continue;
    out.digests.push_back(block_digest(digest));
  }
  out.next_cursor = at < used ? at : 0;
  return out;
}

std::optional<BlockInfo> Store::Impl::stat(const Scope& scope,
                                           const BlockDigest& digest) const noexcept {
  const BlockQuery query = query_of(scope, digest);
  const MutexLock lock(mutex_);
  if (!epochs_.is_current(scope)) return std::nullopt;
  const std::optional<BlockRef> found = find_locked(query);
  if (!found) return std::nullopt;
  const Record& record = records_[found->record];
  return BlockInfo{.tier = TierKind::kDram,
                   .length = record.length(),
                   .pins = record.pin_word().view().pins,
                   .is_retained = retention_.is_retained(found->record, clock_.now())};
}

BlockStatus Store::Impl::retain(const Scope& scope,
                                const BlockDigest& digest,
                                Milliseconds duration) noexcept {
  const BlockQuery query = query_of(scope, digest);
  const MonotonicTime now = clock_.now();
  const MutexLock lock(mutex_);
  retention_.expire(now, kExpireSteps);
  if (!epochs_.is_current(scope)) return BlockStatus::kMiss;
  const std::optional<BlockRef> found = find_locked(query);
  if (!found) return BlockStatus::kMiss;
  if (duration <= Milliseconds(0)) {
    retention_.release(found->record);
    return BlockStatus::kOk;
  }
  const ByteCount bytes = frame_bytes(records_[found->record].extents());
  const bool fits = retention_.retain(found->record, bytes, now + std::min(duration, kRetainMax));
  return fits ? BlockStatus::kOk : BlockStatus::kQuota;
}

StoreStats Store::Impl::stats() const noexcept {
  const MutexLock lock(mutex_);
  StoreStats out = counted_;
  out.retained_bytes = retention_.bytes();
  out.dram = dram_.usage();
  constexpr std::uint64_t kReservationBytes = sizeof(Reservation) + 4 * sizeof(void*);
  out.records_memory = records_.memory() + index_->memory() + policy_->memory() + dram_.memory() +
                       epochs_.memory() + retention_.memory() +
                       ByteCount(reservations_.size() * kReservationBytes);
  return out;
}

}  // namespace cairn::storage
