#include "client/queue_core.h"

#include "base/check.h"

#include <algorithm>
#include <chrono>
#include <limits>

namespace cairn::client {
namespace {

// A ticket is a serial number and, in its low bits, a place.
constexpr unsigned kPlaceBits = 16;
constexpr Milliseconds kDeadlineMax = std::chrono::hours(1);
// Frames of one turn: more may be waiting, the next turn has them.
constexpr std::size_t kFramesPerTurn = 4'096;
// After a silence this long the socket is looked at before it is written to: it may be closed.
constexpr Milliseconds kQuiet(100);
constexpr std::uint32_t kSampleOf = 64;
constexpr std::uint64_t kPoolShares = 8;
constexpr MonotonicTime kNever{std::numeric_limits<std::int64_t>::max()};

}  // namespace

QueueCore::QueueCore(std::shared_ptr<Session> session)
    : session_(std::move(session)),
      number_(session_->enter()),
      connection_(*session_, number_),
      earliest_(kNever),
      sample_(static_cast<std::uint32_t>(session_->random_u64() % kSampleOf)),
      copier_(session_->copy_pool(), session_->world().clock()) {}

// ---- requests ----

Deadline QueueCore::deadline_of(const CallOptions& call) const {
  return Deadline::after(clock(),
                         call.deadline.count() == 0 ? session_->options().deadline : call.deadline);
}

Status QueueCore::admit(const CallOptions& call, std::size_t keys) const {
  if (is_child()) return Error{ErrorCode::kInvalid, 0, "a handle of the parent process"};
  if (call.deadline < Milliseconds(0) || call.deadline > kDeadlineMax) {
    return Error{ErrorCode::kInvalid, 0, "deadline"};
  }
  if (call.priority > Priority::kStore) return Error{ErrorCode::kInvalid, 0, "priority"};
  if (keys > kRequestKeysMax) return Error{ErrorCode::kTooLarge, 0, "keys of a request"};
  if (accepted_ >= session_->options().window) return Error{ErrorCode::kBusy, 0, "window"};
  return {};
}

Ticket QueueCore::accept(Flow& flow, Deadline deadline) {
  ++accepted_;
  insert(flow, deadline);
  const Ticket ticket = flow.ticket_;
  if (now() >= heard_ + kQuiet) read_frames();
  pump_all();
  return ticket;
}

void QueueCore::accept_child(Flow& child, Flow& parent, Deadline deadline) {
  child.parent_ = &parent;
  ++parent.children_;
  insert(child, deadline);
}

void QueueCore::insert(Flow& flow, Deadline deadline) {
  flow.ticket_ = Ticket((next_serial_++ << kPlaceBits) | flow.place_);
  flow.deadline = deadline;
  flow.is_done_ = false;
  flow.is_returned_ = false;
  flow.is_done_told_ = false;
  flow.children_ = 0;
  flow.exchanges_ = 0;
  earliest_ = std::min(earliest_, deadline.at());
  want_send(flow);
}

void QueueCore::want_send(Flow& flow) {
  if (flow.is_sending_ || flow.is_done_) return;
  flow.is_sending_ = true;
  senders_.push_back(&flow);
}

void QueueCore::cancel(Ticket ticket) {
  const std::size_t place = ticket.value() & ((std::uint64_t{1} << kPlaceBits) - 1);
  if (is_child() || place >= flows_.size() || !flows_[place]) return;
  Flow& flow = *flows_[place];
  if (flow.ticket_ != ticket || flow.is_done_) return;
  exchanges_.for_each([&](const Exchange& exchange) {
    const bool is_own =
        exchange.flow != nullptr && (exchange.flow == &flow || exchange.flow->parent_ == &flow);
    if (is_own) {
      tell(connection_.take_request_id(), wire::Cancel{.request_id = exchange.request_id});
    }
  });
  end(flow, BlockStatus::kCancelled);
  tell_parents();
}

void QueueCore::end(Flow& flow, BlockStatus status) {
  if (!flow.is_done_) flow.end(*this, status);
}

void QueueCore::finish(Flow& flow) {
  CAIRN_CHECK(!flow.is_done_);
  flow.is_done_ = true;
  disown(flow);
  settle(flow);
  list(flow);
}

// Most flows end with the answer to the one request that they have under way.
void QueueCore::disown(Flow& flow) {
  if (current_ != nullptr && current_->flow == &flow) {
    current_->flow = nullptr;
    --flow.exchanges_;
  }
  if (flow.exchanges_ > 0) exchanges_.disown(flow);
  flow.exchanges_ = 0;
}

void QueueCore::settle(Flow& flow) {
  if (!flow.is_done_ || flow.is_returned_ || flow.children_ > 0 || !flow.is_idle()) return;
  flow.is_returned_ = true;
  list(flow);
}

void QueueCore::list(Flow& flow) {
  if (flow.is_listed_) return;
  flow.is_listed_ = true;
  (flow.parent_ != nullptr ? children_ : ended_).push_back(&flow);
}

// ---- turns ----

std::size_t QueueCore::poll(std::span<Completion> out) {
  if (is_child()) return 0;
  turn();
  return report(out);
}

void QueueCore::turn() {
  take_loss();
  const MonotonicTime begin = now();
  leave_stale(begin);
  take_loss();
  connection_.step(begin);
  read_frames();
  collect_copies();
  expire();
  tell_parents();
  if (connection_.take_remade()) {
    releases_.clear();  // what the resume did not list is released
    aborts_.clear();
  }
  // Before the flows, so that whoever waits for room finds it, or leaves something queued to wait
  // for.
  connection_.flush();
  pump_all();
  send_returns();
  take_loss();
  pump_all();
}

void QueueCore::read_frames() {
  heard_ = now();
  for (std::size_t i = 0; i < kFramesPerTurn; ++i) {
    const auto frame = connection_.receive();
    if (!frame) return;
    dispatch(*frame);
  }
}

void QueueCore::dispatch(const wire::FrameView& frame) {
  Exchange* const exchange = exchanges_.find(frame.request_id);
  const bool is_data = frame.type == wire::MessageType::kInlineData;
  // The data of a get that was given up.
  if (exchange == nullptr && is_data) return;
  if (exchange == nullptr) return connection_.lose({ErrorCode::kCorrupt, 0, "unasked reply"});
  constexpr unsigned kReplyBit = 0x8000;
  const bool is_reply =
      static_cast<unsigned>(frame.type) == (static_cast<unsigned>(exchange->request) | kReplyBit);
  const bool is_awaited = is_data ? exchange->is_answered : is_reply && !exchange->is_answered;
  if (!is_awaited) return connection_.lose({ErrorCode::kCorrupt, 0, "reply of another type"});
  Flow* const flow = exchange->flow;
  current_ = exchange;
  const Answered answered =
      flow != nullptr ? flow->receive(*this, *exchange, frame) : answer_nobody(*exchange, frame);
  current_ = nullptr;
  if (answered == Answered::kBroken) return connection_.lose({ErrorCode::kCorrupt, 0, "reply"});
  const bool is_given_up = flow != nullptr && exchange->flow == nullptr;
  if (answered == Answered::kLast || is_given_up) {
    if (exchange->flow != nullptr) --flow->exchanges_;
    exchanges_.remove(*exchange);
  }
  if (flow == nullptr) return;
  want_send(*flow);
  settle(*flow);
}

// Only what it lends matters.
Answered QueueCore::answer_nobody(Exchange& exchange, const wire::FrameView& frame) {
  if (exchange.is_answered) return Answered::kLast;
  switch (exchange.request) {
    case wire::MessageType::kGet:
      if (!wire::decode(frame, scratch_.get_reply)) return Answered::kBroken;
      give_back_grants(scratch_.get_reply.grants, false);
      return Answered::kLast;
    case wire::MessageType::kReserve:
      if (!wire::decode(frame, scratch_.reserve_reply)) return Answered::kBroken;
      give_back_grants(scratch_.reserve_reply.grants, true);
      return Answered::kLast;
    case wire::MessageType::kCommit:
      if (!wire::decode(frame, scratch_.commit_reply)) return Answered::kBroken;
      if (scratch_.commit_reply.next) give_back_grants(scratch_.commit_reply.next->grants, true);
      return Answered::kLast;
    default:
      return Answered::kLast;
  }
}

void QueueCore::give_back_grants(std::span<const wire::Grant> grants, bool is_reserved) {
  for (const wire::Grant& grant : grants) {
    if (grant.lend == 0) continue;
    if (is_reserved) {
      aborts_.push_back(grant.lend);
    } else {
      releases_.push_back({.lend = grant.lend, .found_corrupt = false});
    }
  }
}

void QueueCore::take_loss() {
  if (!connection_.take_loss()) return;
  stale_since_.reset();
  exchanges_.clear();
  for (const auto& flow : flows_) {
    if (flow) flow->exchanges_ = 0;
  }
  for (const auto& flow : flows_) {
    if (flow && !flow->is_done_ && flow->ticket_ != Ticket()) flow->lose(*this);
  }
}

void QueueCore::collect_copies() {
  while (CopyBatch* const batch = copier_.collect()) {
    Flow& flow = *batch->owner();
    flow.copied(*this, *batch);
    want_send(flow);
    settle(flow);
  }
}

void QueueCore::expire() {
  const MonotonicTime time = now();
  if (time < earliest_) return;
  // A daemon that is gone is another thing than one that does not answer.
  const BlockStatus status =
      connection_.is_ready() ? BlockStatus::kTimeout : BlockStatus::kPeerLost;
  MonotonicTime earliest = kNever;
  for (std::size_t i = 0; i < flows_.size(); ++i) {
    Flow* const flow = flows_[i].get();
    if (flow == nullptr || flow->is_done_) continue;
    if (flow->deadline.has_passed(time)) {
      end(*flow, status);
    } else {
      earliest = std::min(earliest, flow->deadline.at());
    }
  }
  earliest_ = earliest;
}

void QueueCore::tell_parents() {
  while (!children_.empty()) {
    const std::vector<Flow*> told = std::exchange(children_, {});
    for (Flow* const child : told) {
      Flow& parent = *child->parent_;
      child->is_listed_ = false;
      if (!child->is_done_told_) {
        child->is_done_told_ = true;
        parent.child_done(*this, *child);
      }
      if (!child->is_returned_) continue;
      --parent.children_;
      recycle(*child);
      settle(parent);
    }
  }
}

void QueueCore::pump() {
  // Flows that are added meanwhile have their turn in the same pass.
  std::size_t kept = 0;
  for (std::size_t i = 0; i < senders_.size(); ++i) {
    Flow& flow = *senders_[i];
    flow.is_sending_ = false;
    if (flow.is_done_) continue;
    if (flow.send(*this) || flow.is_done_ || flow.is_sending_) continue;
    flow.is_sending_ = true;
    senders_[kept++] = &flow;
  }
  senders_.resize(kept);
}

void QueueCore::pump_all() {
  pump();
  // A parent whose child has ended begins the next one; each round ends at least one child.
  while (!children_.empty()) {
    tell_parents();
    pump();
  }
}

void QueueCore::leave_stale(MonotonicTime time) {
  constexpr Milliseconds kStaleMax(1000);
  if (!connection_.is_stale()) return;
  if (!stale_since_) stale_since_ = time;
  send_returns();
  if (exchanges_.size() == 0 || time >= *stale_since_ + kStaleMax) connection_.move_on();
}

// ---- completions ----

std::size_t QueueCore::report(std::span<Completion> out) {
  std::size_t count = 0;
  for (; count < out.size() && count < ended_.size(); ++count) {
    Flow& flow = *ended_[count];
    flow.is_listed_ = false;
    out[count] = {.ticket = flow.ticket_,
                  .is_done = !flow.is_done_told_,
                  .is_returned = flow.is_returned_,
                  .lookup = flow.lookup,
                  .branch = flow.branch};
    flow.is_done_told_ = true;
    if (!flow.is_returned_) continue;
    --accepted_;
    recycle(flow);
  }
  ended_.erase(ended_.begin(), ended_.begin() + static_cast<std::ptrdiff_t>(count));
  return count;
}

void QueueCore::recycle(Flow& flow) {
  if (flow.is_sending_) std::erase(senders_, &flow);
  flow.is_sending_ = false;
  flow.parent_ = nullptr;
  flow.ticket_ = Ticket();
  free_places_.push_back(flow.place_);
  std::unique_ptr<Flow> spare = std::move(flows_[flow.place_]);
  auto& spares = spare_[static_cast<std::size_t>(flow.kind())];
  if (spares.size() < kSpareMax) spares.push_back(std::move(spare));
}

// ---- shares ----

std::size_t QueueCore::batch_keys() const noexcept {
  return std::min<std::size_t>(kBatchKeys, connection_.limits().batch_keys);
}

ByteCount QueueCore::batch_bytes(std::size_t first) const noexcept {
  if (first == 0) return kLeadBytesMax;
  const ByteCount share(connection_.pool_bytes() / kPoolShares);
  return std::clamp(share, kBlockBytesMax, kBatchBytesMax);
}

bool QueueCore::take_lent(std::size_t keys) {
  if (lent_keys_ + keys > kLentKeysMax) return false;
  // What was copied goes back before more is asked for.
  if (!releases_.empty() || !aborts_.empty()) send_returns();
  lent_keys_ += keys;
  return true;
}

void QueueCore::give_lent(std::size_t keys) noexcept {
  CAIRN_CHECK(keys <= lent_keys_);
  lent_keys_ -= keys;
}

bool QueueCore::wants_check(Verify verify) noexcept {
  if (verify == Verify::kSample) return sample_++ % kSampleOf == 0;
  return verify == Verify::kAlways;
}

wire::RequestContext QueueCore::context_of(const Flow& flow) const {
  const auto left = std::chrono::ceil<Milliseconds>(flow.deadline.remaining(now()));
  return {.name_space = flow.name_space.digest,
          .epoch = flow.name_space.epoch,
          .trace_id = flow.call.trace_id,
          .remaining_ms = static_cast<std::uint32_t>(std::max<std::int64_t>(left.count(), 1)),
          .priority = static_cast<wire::Priority>(flow.call.priority)};
}

}  // namespace cairn::client
