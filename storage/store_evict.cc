#include "base/check.h"
#include "storage/store_impl.h"

namespace cairn::storage {

ByteCount Store::Impl::frame_bytes(const ExtentList& extents) const noexcept {
  std::uint64_t granules = 0;
  for (const Extent& extent : extents.items())
    granules += extent.count;
  return granule_ * granules;
}

void Store::Impl::free_locked(RecordNumber number) noexcept {
  dram_.release(records_[number].extents());
  records_.give_back(number);
}

void Store::Impl::unlink_locked(RecordNumber number) noexcept {
  const Record& record = records_[number];
  const auto tag = static_cast<std::uint32_t>(key_hash(record.slot(), record.digest()) >> 32U);
  index_->erase(tag, number);
  policy_->remove(number);
  retention_.release(number);
  --counted_.resident_blocks;
  counted_.resident_bytes -= frame_bytes(record.extents());
}

void Store::Impl::drop_locked(RecordNumber number) noexcept {
  auto& pin_word = records_[number].pin_word();
  const std::uint32_t pins = pin_word.doom();
  unlink_locked(number);
  if (pins > 0) return;
  pin_word.free_doomed();
  free_locked(number);
}

std::optional<ByteCount> Store::Impl::evict_coldest_locked(VictimScan& scan) noexcept {
  const MonotonicTime now = clock_.now();
  for (;;) {
    const std::optional<RecordNumber> victim = policy_->victim(scan.after);
    if (!victim) {
      if (scan.takes_retained || retention_.size() == 0) return std::nullopt;
      // Nothing else can go: wishes yield before anyone is told that the store is full.
      scan.takes_retained = true;
      scan.after.reset();
      continue;
    }
    const bool may_go = scan.takes_retained || !retention_.is_retained(*victim, now);
    if (may_go && records_[*victim].pin_word().evict()) {
      const ByteCount freed = frame_bytes(records_[*victim].extents());
      unlink_locked(*victim);
      free_locked(*victim);
      ++scan.evictions;
      ++counted_.evictions;
      counted_.evicted_bytes += freed;
      return freed;
    }
    scan.after = *victim;
  }
}

ByteCount Store::Impl::evict(ByteCount bytes) noexcept {
  ByteCount freed;
  while (freed < bytes) {
    const MutexLock lock(mutex_);
    VictimScan scan;
    while (freed < bytes && scan.evictions < kLockBatch) {
      const std::optional<ByteCount> dropped = evict_coldest_locked(scan);
      if (!dropped) return freed;
      freed += *dropped;
    }
  }
  return freed;
}

BlockStatus Store::Impl::remove(const Scope& scope, const BlockDigest& digest) noexcept {
  const BlockQuery query = query_of(scope, digest);
  const MutexLock lock(mutex_);
  if (!epochs_.is_current(scope)) return BlockStatus::kMiss;
  const std::optional<BlockRef> found = find_locked(query);
  if (!found) return BlockStatus::kMiss;
  drop_locked(found->record);
  ++counted_.removed;
  return BlockStatus::kOk;
}

}  // namespace cairn::storage
