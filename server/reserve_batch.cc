#include "server/reserve_batch.h"

#include "base/check.h"

#include <algorithm>

namespace cairn::server {
namespace {

storage::ReserveOutcome refused(BlockStatus status, BusyReason reason = BusyReason::kNone) {
  storage::ReserveOutcome outcome;
  outcome.status = status;
  outcome.reason = reason;
  return outcome;
}

bool is_there(BlockStatus status) {
  return status == BlockStatus::kOk || status == BlockStatus::kExists;
}

// What a length may cost; one that the store refuses costs nothing.
ByteCount price(const NodeCore& core, std::uint32_t length) {
  if (length == 0 || length > kBlockBytesMax.value()) return {};
  return core.frame_bytes(length);
}

// One pass over a batch: runs of keys that the account has room for, each reserved at once.
class Pass {
 public:
  Pass(Call& call, const ReserveBatch& batch)
      : call_(call),
        batch_(batch),
        out_(call.scratch.reserve_outcomes),
        room_(batch.room),
        branch_(batch.placement.branch) {}

  std::optional<BlockDigest> run() {
    out_.assign(batch_.digests.size(), refused(BlockStatus::kCut));
    while (next_ < out_.size() && !is_cut_) {
      const std::size_t fit = count_fitting();
      if (fit > 0) {
        reserve(fit);
      } else {
        refuse_next();
      }
    }
    return branch_;
  }

 private:
  // Keys from next_ on that the account takes, all as if they were new. They are in the account.
  std::size_t count_fitting() {
    std::size_t fit = 0;
    while (next_ + fit < out_.size() && fit < room_) {
      const ByteCount bytes = price(call_.core, batch_.lengths[next_ + fit]);
      if (!call_.core.try_lend(call_.session().account(), bytes)) break;
      ++fit;
    }
    return fit;
  }

  void reserve(std::size_t count) {
    const bool is_chain = batch_.placement.is_chain;
    std::vector<storage::ReserveItem>& items = call_.scratch.reserve_items;
    items.clear();
    for (std::size_t i = next_; i < next_ + count; ++i)
      items.push_back({.digest = batch_.digests[i], .length = batch_.lengths[i]});
    storage::ReserveRequest request{.scope = batch_.scope,
                                    .items = items,
                                    .is_chain = is_chain,
                                    .parent = batch_.placement.parent,
                                    .position = batch_.placement.position,
                                    .branch = branch_,
                                    .retain = Milliseconds(batch_.placement.retain_ms)};
    if (is_chain && next_ > 0) {
      request.parent = batch_.digests[next_ - 1];
      request.position += static_cast<std::uint32_t>(next_);
    }
    const std::span outcomes = std::span(out_).subspan(next_, count);
    branch_ = call_.core.parts.store->reserve(request, outcomes);
    for (std::size_t i = 0; i < count; ++i)
      settle(outcomes[i], batch_.lengths[next_ + i]);
    next_ += count;
  }

  void settle(storage::ReserveOutcome& outcome, std::uint32_t length) {
    const bool is_reserved = outcome.status == BlockStatus::kOk;
    if (!is_reserved) call_.core.unlend(call_.session().account(), price(call_.core, length));
    if (is_reserved)
      CAIRN_CHECK(call_.core.frame_bytes(outcome.extents) == price(call_.core, length));
    if (is_reserved) --room_;
    is_cut_ = is_cut_ || (batch_.placement.is_chain && !is_there(outcome.status));
  }

  // The account has no room for a new block; one that is there needs none.
  void refuse_next() {
    storage::LookupHit hit;
    const std::span digest = batch_.digests.subspan(next_, 1);
    call_.core.parts.store->lookup(batch_.scope, digest, std::span(&hit, 1));
    const bool exists = hit.tier != storage::TierKind::kNone;
    out_[next_] = exists ? refused(BlockStatus::kExists)
                         : refused(BlockStatus::kBusy, BusyReason::kLentLimit);
    is_cut_ = batch_.placement.is_chain && !exists;
    ++next_;
  }

  Call& call_;
  const ReserveBatch& batch_;
  std::vector<storage::ReserveOutcome>& out_;
  std::size_t room_;
  std::size_t next_ = 0;
  bool is_cut_ = false;
  std::optional<BlockDigest> branch_;
};

}  // namespace

std::optional<BlockDigest> reserve_batch(Call& call, const ReserveBatch& batch) {
  CAIRN_CHECK(batch.digests.size() == batch.lengths.size());
  return Pass(call, batch).run();
}

}  // namespace cairn::server
