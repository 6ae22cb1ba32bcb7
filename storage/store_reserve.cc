#include "base/check.h"
#include "storage/store_impl.h"

#include <algorithm>
#include <limits>

namespace cairn::storage {

// One call of reserve(), between stays under the mutex.
struct Store::Impl::ReservePass {
  const ReserveRequest& request;
  std::span<const BlockQuery> queries;
  std::span<ReserveOutcome> out;
  std::size_t next = 0;
  std::optional<BlockDigest> branch;
  ParentLink previous;             // the last item's record, in a chain
  bool is_cut = false;             // the chain failed at an earlier item
  std::vector<TouchTip> existing;  // blocks found here that were not there before
  std::vector<BlockRef> touched;   // an item: the block that was touched before the first stay
  std::uint32_t stays = 0;         // spent on the next item

  // Of the present stay.
  VictimScan scan;
  ByteCount capacity;
  std::uint32_t refused_length = std::numeric_limits<std::uint32_t>::max();

  const ReserveItem& item() const noexcept { return request.items[next]; }
};

namespace {

ReserveOutcome refused(BlockStatus status, BusyReason reason = BusyReason::kNone) noexcept {
  return {.status = status, .reason = reason, .ref = {}, .extents = {}};
}

}  // namespace

std::vector<BlockRef> Store::Impl::touch_existing(std::span<const BlockQuery> queries) noexcept {
  std::vector<BlockRef> found(queries.size());
  std::vector<TouchTip> tips;
  for (std::size_t i = 0; i < queries.size(); ++i) {
    const std::optional<BlockRef> ref = find(queries[i]);
    if (!ref) continue;
    found[i] = *ref;
    tips.push_back({*ref, 0});
  }
  // Before anything is evicted for the rest, so that a chain never loses its own prefix to itself.
  if (!tips.empty()) touch(tips);
  return found;
}

std::optional<BlockDigest> Store::Impl::reserve(const ReserveRequest& request,
                                                std::span<ReserveOutcome> out) noexcept {
  if (!epochs_.is_current(request.scope)) {
    std::fill(out.begin(), out.end(), refused(BlockStatus::kWrongNamespace));
    return request.branch;
  }
  std::vector<BlockQuery> queries;
  queries.reserve(request.items.size());
  for (const ReserveItem& item : request.items)
    queries.push_back(query_of(request.scope, item.digest));
  ReservePass pass{.request = request,
                   .queries = queries,
                   .out = out,
                   .branch = request.branch,
                   .touched = touch_existing(queries)};
  while (pass.next < out.size()) {
    const MutexLock lock(mutex_);
    reserve_some_locked(pass);
  }
  if (!pass.existing.empty()) touch(pass.existing);
  return pass.branch;
}

void Store::Impl::reserve_some_locked(ReservePass& pass) noexcept {
  sweep_locked(kSweepStay);
  pass.scan = {};
  pass.capacity = dram_.usage().capacity;
  pass.refused_length = std::numeric_limits<std::uint32_t>::max();
  ++pass.stays;
  for (std::size_t i = 0; i < kLockBatch && pass.next < pass.out.size(); ++i) {
    const std::optional<ReserveOutcome> outcome = reserve_item_locked(pass);
    if (!outcome) return;
    const bool is_there =
        outcome->status == BlockStatus::kOk || outcome->status == BlockStatus::kExists;
    if (outcome->status == BlockStatus::kOk)
      pass.previous = {outcome->ref.record, outcome->ref.generation};
    pass.is_cut = pass.is_cut || (pass.request.is_chain && !is_there);
    pass.out[pass.next++] = *outcome;
    pass.stays = 0;
  }
}

// nullopt: this stay has evicted enough; come back for the same item.
std::optional<ReserveOutcome> Store::Impl::reserve_item_locked(ReservePass& pass) noexcept {
  const ReserveItem& item = pass.item();
  if (pass.is_cut) return refused(BlockStatus::kCut);
  if (item.length == 0 || item.digest.size() == 0) return refused(BlockStatus::kInvalid);
  if (item.length > kBlockBytesMax.value()) return refused(BlockStatus::kTooLarge);
  if (const std::optional<BlockRef> found = find_locked(pass.queries[pass.next])) {
    if (*found != pass.touched[pass.next]) pass.existing.push_back({*found, 0});
    pass.previous = {found->record, found->generation};
    return refused(BlockStatus::kExists);
  }
  if (!pass.branch) pass.branch = item.digest;
  const ByteCount needed = ByteCount(item.length) + kHeaderBytes;
  if (needed > pass.capacity) {
    const bool is_for_ever = needed > options_.pool_bytes;
    return is_for_ever ? refused(BlockStatus::kTooLarge)
                       : refused(BlockStatus::kBusy, BusyReason::kFrames);
  }
  return take_frame_locked(pass, parent_of_next_locked(pass));
}

std::optional<ReserveOutcome> Store::Impl::take_frame_locked(ReservePass& pass,
                                                             ParentLink parent) noexcept {
  const std::uint32_t length = pass.item().length;
  const std::uint32_t stays_max = records_.capacity() / kEvictionsPerStay + 2;
  bool may_go_on = length < pass.refused_length && pass.stays <= stays_max;
  while (may_go_on) {
    if (const std::optional<RecordNumber> number = records_.take()) {
      if (const std::optional<ExtentList> extents = dram_.allocate(ByteCount(length)))
        return open_locked(pass, *number, *extents, parent);
      records_.give_back(*number);
    }
    if (pass.scan.evictions >= kEvictionsPerStay) return std::nullopt;
    may_go_on = evict_coldest_locked(pass.scan).has_value();
  }
  // Whatever is as large fails as well, without another look at all that is pinned.
  pass.refused_length = std::min(pass.refused_length, length);
  return refused(BlockStatus::kBusy, BusyReason::kFrames);
}

ParentLink Store::Impl::parent_of_next_locked(const ReservePass& pass) const noexcept {
  if (pass.request.is_chain && pass.next > 0) return pass.previous;
  if (!pass.request.parent) return {};
  const auto found = find_locked(query_of(pass.request.scope, *pass.request.parent));
  return found ? ParentLink{found->record, found->generation} : ParentLink{ParentLink::kAbsent, 0};
}

ReserveOutcome Store::Impl::open_locked(const ReservePass& pass,
                                        RecordNumber number,
                                        const ExtentList& extents,
                                        ParentLink parent) noexcept {
  const ReserveRequest& request = pass.request;
  Record& record = records_[number];
  const std::uint32_t generation = record.pin_word().reserve();
  record.set_key(request.scope.slot.value(), pass.queries[pass.next].digest);
  record.set_epoch(request.scope.epoch);
  record.set_length(pass.item().length);
  record.set_parent(parent);
  record.set_extents(extents);
  record.set_checksums_hash(0);
  record.set_attributes_hash(0);
  record.set_branch_hash(xxh3_64(pass.branch->bytes()));
  record.set_nvme({});

  Reservation reservation;
  reservation.generation = generation;
  reservation.branch = *pass.branch;
  reservation.retain = request.retain;
  const bool is_inner = request.is_chain && pass.next > 0;
  reservation.parent = is_inner ? request.items[pass.next - 1].digest : request.parent;
  reservation.position = request.position;
  if (request.is_chain) reservation.position += static_cast<std::uint32_t>(pass.next);
  reservations_.emplace(number, reservation);
  ++counted_.open_reservations;
  counted_.reserved_bytes += frame_bytes(extents);
  return {BlockStatus::kOk, BusyReason::kNone, {number, generation}, extents};
}

void Store::Impl::close_locked(RecordNumber number) noexcept {
  Record& record = records_[number];
  record.pin_word().abort();
  --counted_.open_reservations;
  counted_.reserved_bytes -= frame_bytes(record.extents());
  reservations_.erase(number);
  free_locked(number);
}

void Store::Impl::abort(BlockRef ref) noexcept {
  const MutexLock lock(mutex_);
  const auto found = reservations_.find(ref.record);
  if (found == reservations_.end()) return;
  if (found->second.generation != ref.generation || found->second.is_claimed) return;
  close_locked(ref.record);
}

}  // namespace cairn::storage
