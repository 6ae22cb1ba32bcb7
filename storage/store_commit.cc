#include "base/check.h"
#include "base/checksum.h"
#include "base/stream_copy.h"
#include "storage/header_page.h"
#include "storage/store_impl.h"

#include <algorithm>
#include <array>

namespace cairn::storage {

void Store::Impl::commit(const Scope& scope,
                         std::span<const CommitItem> items,
                         std::span<BlockStatus> out) noexcept {
  std::vector<Claim> claims(items.size());
  for (std::size_t at = 0; at < items.size(); at += kLockBatch) {
    const std::size_t end = std::min(at + kLockBatch, items.size());
    const MutexLock lock(mutex_);
    for (std::size_t i = at; i < end; ++i)
      claim_locked(items[i].ref, claims[i]);
  }
  for (std::size_t i = 0; i < items.size(); ++i)
    write_header(scope, items[i], claims[i]);
  stream_fence();
  // From the last item to the first: the policy sees a chain's leaf first.
  std::uint32_t insertion = 0;
  for (std::size_t end = items.size(); end > 0;) {
    const std::size_t at = end - std::min(end, kLockBatch);
    const MutexLock lock(mutex_);
    for (; end > at; --end)
      publish_locked(scope, claims[end - 1], ++insertion);
  }
  std::vector<TouchTip> tips;
  tips.reserve(items.size());
  for (std::size_t i = 0; i < items.size(); ++i) {
    out[i] = claims[i].status;
    if (claims[i].is_used) tips.push_back(claims[i].used);
  }
  if (!tips.empty()) touch(tips);
}

void Store::Impl::claim_locked(BlockRef ref, Claim& claim) noexcept {
  claim.status = BlockStatus::kCancelled;
  const auto found = reservations_.find(ref.record);
  if (found == reservations_.end()) return;
  Reservation& reservation = found->second;
  if (reservation.generation != ref.generation || reservation.is_claimed) return;
  reservation.is_claimed = true;
  claim.ref = ref;
  claim.reservation = reservation;
  claim.extents = records_[ref.record].extents();
  claim.length = records_[ref.record].length();
  claim.status = BlockStatus::kOk;
  claim.has_frame = true;
}

// Without the mutex: the frame and the record are the reservation's alone until it is published.
void Store::Impl::write_header(const Scope& scope, const CommitItem& item, Claim& claim) noexcept {
  if (claim.status != BlockStatus::kOk) return;
  if (item.checksums.size() != chunk_count(claim.length)) {
    claim.status = BlockStatus::kInvalid;
    return;
  }
  const Record& record = records_[claim.ref.record];
  HeaderPage header;
  header.name_space = scope.digest;
  header.epoch = record.epoch();
  header.digest = block_digest(record.digest());
  header.parent = claim.reservation.parent;
  header.branch = claim.reservation.branch;
  header.position = claim.reservation.position;
  header.length = claim.length;
  std::copy(item.checksums.begin(), item.checksums.end(), header.checksums.begin());
  header.attributes = item.attributes;
  // Made here and streamed out: the frame's own lines are in no cache.
  alignas(64) std::array<std::byte, kHeaderPageBytes> page;  // NOLINT: encode_header() fills it
  if (const Status written = encode_header(header, page); !written.has_value()) {
    const bool is_large = written.error().code == ErrorCode::kTooLarge;
    claim.status = is_large ? BlockStatus::kTooLarge : BlockStatus::kInvalid;
    return;
  }
  stream_bytes(dram_.header_page(claim.extents).first<kHeaderPageBytes>(), page);
  claim.checksums_hash = checksums_hash_of(item.checksums);
  claim.attributes_hash = attributes_hash_of(item.attributes);
}

void Store::Impl::publish_locked(const Scope& scope,
                                 Claim& claim,
                                 std::uint32_t insertion) noexcept {
  if (!claim.has_frame) return;
  const RecordNumber number = claim.ref.record;
  Record& record = records_[number];
  const BlockQuery query = {
      record.slot(), record.epoch(), record.digest(), key_hash(record.slot(), record.digest())};
  const bool is_in_scope = record.slot() == scope.slot.value() && record.epoch() == scope.epoch;
  if (claim.status == BlockStatus::kOk && !(is_in_scope && epochs_.is_current(scope)))
    claim.status = BlockStatus::kWrongNamespace;
  if (claim.status == BlockStatus::kOk) {
    if (const std::optional<BlockRef> winner = find_locked(query)) {
      claim.status = BlockStatus::kExists;
      claim.used = {*winner, 0};
      claim.is_used = true;
      ++counted_.commit_exists;
    } else if (!index_->insert(query.tag(), number)) {
      claim.status = BlockStatus::kDeclined;
    }
  }
  if (claim.status != BlockStatus::kOk) {
    close_locked(number);
    return;
  }
  record.set_checksums_hash(claim.checksums_hash);
  record.set_attributes_hash(claim.attributes_hash);
  record.pin_word().publish();
  reservations_.erase(number);
  const ByteCount bytes = frame_bytes(claim.extents);
  --counted_.open_reservations;
  counted_.reserved_bytes -= bytes;
  ++counted_.resident_blocks;
  counted_.resident_bytes += bytes;
  ++counted_.commits;
  policy_->insert(number,
                  {.bytes = bytes,
                   .position = claim.reservation.position,
                   .branch_hash = record.branch_hash(),
                   .key_hash = query.hash});
  // A wish: over the budget the block is simply not retained.
  if (claim.reservation.retain > Milliseconds(0)) {
    const MonotonicTime until = clock_.now() + std::min(claim.reservation.retain, kRetainMax);
    static_cast<void>(retention_.retain(number, bytes, until));
  }
  claim.used = {claim.ref, insertion};
  claim.is_used = true;
}

}  // namespace cairn::storage
