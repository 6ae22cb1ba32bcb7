#include "client/reserve_flow.h"

#include "client/put_flow.h"
#include "client/queue_core.h"

#include <algorithm>

namespace cairn::client {
namespace {

bool is_there(BlockStatus status) noexcept {
  return status == BlockStatus::kOk || status == BlockStatus::kExists;
}

}  // namespace

void ReserveFlow::start(const ReserveRequest& request) {
  request_ = request;
  name_space = request.name_space;
  call = request.call;
  lookup = {};
  branch = request.placement.branch;
  next_ = 0;
  asked_ = 0;
  cut_ = request.digests.size();
  std::ranges::fill(request_.reservations, BlockReservation{});
}

bool ReserveFlow::send(QueueCore& core) {
  if (asked_ > 0) return true;
  const bool is_stopped = request_.placement.is_chain && cut_ < request_.digests.size();
  if (next_ < request_.digests.size() && !is_stopped) return ask(core);
  for (std::size_t key = next_; key < request_.digests.size(); ++key) {
    request_.results[key] = {.status = BlockStatus::kCut};
  }
  core.finish(*this);
  return true;
}

bool ReserveFlow::ask(QueueCore& core) {
  if (!core.can_ask()) return false;
  if (!core.is_mapped()) {
    end(core, BlockStatus::kForbidden);
    return true;
  }
  const std::size_t count = std::min(core.batch_keys(), request_.digests.size() - next_);
  wire::Reserve& message = core.scratch().reserve;
  message.context = core.context_of(*this);
  message.placement = placement_from(request_.placement, request_.digests, next_, branch);
  const auto digests = request_.digests.subspan(next_, count);
  const auto lengths = request_.lengths.subspan(next_, count);
  message.digests.assign(digests.begin(), digests.end());
  message.lengths.assign(lengths.begin(), lengths.end());
  if (core.ask(*this, wire::MessageType::kReserve, message) == nullptr) return false;
  asked_ = count;
  return true;
}

Answered ReserveFlow::receive(QueueCore& core,
                              Exchange& /*exchange*/,
                              const wire::FrameView& frame) {
  wire::ReserveReply& reply = core.scratch().reserve_reply;
  if (!wire::decode(frame, reply)) return Answered::kBroken;
  if (reply.context.status != BlockStatus::kOk) {
    fail(reply.context);
    return Answered::kLast;
  }
  if (reply.grants.size() != asked_) return Answered::kBroken;
  auto& pieces = core.scratch().pieces;
  pieces.resize(asked_);
  const Status adopted = core.adopt({.grants = reply.grants,
                                     .extents = reply.extents,
                                     .lengths = request_.lengths.subspan(next_, asked_),
                                     .is_reserved = true},
                                    pieces);
  if (!adopted && adopted.error().code == ErrorCode::kCorrupt) return Answered::kBroken;
  if (!adopted) {
    fail({.status = BlockStatus::kPeerLost, .reason = BusyReason::kNone});
    return Answered::kLast;
  }
  if (reply.branch) branch = reply.branch;
  take(reply.grants, pieces);
  return Answered::kLast;
}

void ReserveFlow::take(std::span<const wire::Grant> grants, std::span<const FramePieces> pieces) {
  for (std::size_t i = 0; i < asked_; ++i) {
    const std::size_t key = next_ + i;
    request_.results[key] = {
        .status = grants[i].status, .reason = grants[i].reason, .length = request_.lengths[key]};
    if (!is_there(grants[i].status)) cut_ = std::min(cut_, key);
    if (grants[i].lend == 0) continue;
    BlockReservation& reservation = request_.reservations[key];
    reservation.pieces = pieces[i].spans;
    reservation.piece_count = pieces[i].count;
    reservation.length = pieces[i].length;
    reservation.lend = grants[i].lend;
  }
  next_ += std::exchange(asked_, 0);
}

void ReserveFlow::fail(const wire::ReplyContext& context) {
  const KeyResult result{.status = context.status, .reason = context.reason, .length = 0};
  std::ranges::fill(request_.results.subspan(next_, asked_), result);
  next_ += std::exchange(asked_, 0);
  cut_ = std::min(cut_, next_ - 1);
}

void ReserveFlow::lose(QueueCore& core) {
  if (asked_ > 0) end(core, BlockStatus::kPeerLost);
}

void ReserveFlow::end(QueueCore& core, BlockStatus status) {
  std::ranges::fill(request_.results.subspan(next_), KeyResult{.status = status});
  core.finish(*this);
}

}  // namespace cairn::client
