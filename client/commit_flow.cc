#include "base/checksum.h"
#include "client/queue_core.h"
#include "client/reserve_flow.h"

#include <algorithm>

namespace cairn::client {

void CommitFlow::start(const CommitRequest& request) {
  request_ = request;
  name_space = request.name_space;
  call = request.call;
  lookup = {};
  branch.reset();
  stage_ = Stage::kIdle;
  keys_ = {};
  checksum_next_ = 0;
}

bool CommitFlow::send(QueueCore& core) {
  if (stage_ == Stage::kIdle && keys_.first < request_.reservations.size()) begin(core);
  if (stage_ == Stage::kSummed) return ask(core);
  if (stage_ != Stage::kIdle || keys_.first < request_.reservations.size()) return true;
  core.finish(*this);
  return true;
}

void CommitFlow::begin(QueueCore& core) {
  keys_.count = std::min<std::size_t>(kBatchKeys, request_.reservations.size() - keys_.first);
  const auto batch = request_.reservations.subspan(keys_.first, keys_.count);
  std::size_t checksums = 0;
  for (const BlockReservation& reservation : batch)
    checksums += chunk_count(reservation.length);
  sums_.clear(checksums);
  items_.assign(keys_.count, Item{});
  std::uint32_t first = 0;
  for (std::size_t i = 0; i < keys_.count; ++i) {
    add_item(core, i, first);
    first += chunk_count(batch[i].length);
  }
  stage_ = Stage::kSumming;
  if (core.copy(sums_, *this)) summed();
}

void CommitFlow::add_item(QueueCore& core, std::size_t i, std::uint32_t checksum_first) {
  const BlockReservation& reservation = request_.reservations[keys_.first + i];
  Item& item = items_[i];
  item.checksum_first = checksum_first;
  const std::uint32_t chunks = chunk_count(reservation.length);
  const LendEnd held = core.session().reservation(reservation.lend);
  if (held == LendEnd::kUnknown) item.status = BlockStatus::kInvalid;
  if (held == LendEnd::kLocal) item.status = BlockStatus::kCancelled;
  if (!request_.checksums.empty()) {
    std::ranges::copy(request_.checksums.subspan(checksum_next_, chunks),
                      sums_.checksums_at(checksum_first));
    checksum_next_ += chunks;
    return;
  }
  if (item.status != BlockStatus::kOk) return;
  CopyTask task{.kind = CopyKind::kSum};
  task.frame.spans = reservation.pieces;
  task.frame.count = std::min(reservation.piece_count, kExtentsMax);
  task.frame.length = reservation.length;
  task.checksums = sums_.checksums_at(checksum_first);
  item.task = static_cast<std::uint32_t>(sums_.size());
  sums_.add(task);
}

void CommitFlow::copied(QueueCore& core, CopyBatch& /*copies*/) {
  summed();
  if (!is_done()) return;
  return_items(core);
  stage_ = Stage::kIdle;
}

void CommitFlow::summed() {
  for (Item& item : items_) {
    const bool is_skipped =
        item.task != kNoTask && sums_.outcome(item.task) == CopyOutcome::kSkipped;
    if (is_skipped) item.status = BlockStatus::kTimeout;
  }
  stage_ = Stage::kSummed;
}

bool CommitFlow::ask(QueueCore& core) {
  if (!core.can_ask()) return false;
  wire::Commit& message = core.scratch().commit;
  message.context = core.context_of(*this);
  message.entries.clear();
  message.checksums.clear();
  message.attributes.clear();
  message.next_placement.reset();
  message.next_digests.clear();
  message.next_lengths.clear();
  for (std::size_t i = 0; i < items_.size(); ++i) {
    items_[i].is_sent = items_[i].status == BlockStatus::kOk;
    if (!items_[i].is_sent) continue;
    const BlockReservation& reservation = request_.reservations[keys_.first + i];
    const std::uint32_t* const checksums = sums_.checksums_at(items_[i].checksum_first);
    const std::uint32_t count = chunk_count(reservation.length);
    message.entries.push_back(
        {.lend = reservation.lend,
         .checksum_first = static_cast<std::uint32_t>(message.checksums.size()),
         .checksum_count = count,
         .attribute_first = 0,
         .attribute_bytes = 0});
    message.checksums.insert(message.checksums.end(), checksums, checksums + count);
  }
  if (message.entries.empty()) {
    close_batch(core);
    core.want_send(*this);
    return true;
  }
  if (core.ask(*this, wire::MessageType::kCommit, message) == nullptr) {
    for (Item& item : items_)
      item.is_sent = false;
    return false;
  }
  stage_ = Stage::kCommitting;
  return true;
}

Answered CommitFlow::receive(QueueCore& core,
                             Exchange& /*exchange*/,
                             const wire::FrameView& frame) {
  wire::CommitReply& reply = core.scratch().commit_reply;
  if (!wire::decode(frame, reply)) return Answered::kBroken;
  const bool is_ok = reply.context.status == BlockStatus::kOk;
  const auto asked = static_cast<std::size_t>(std::ranges::count(items_, true, &Item::is_sent));
  if (reply.next || (is_ok && reply.statuses.size() != asked)) return Answered::kBroken;
  std::size_t at = 0;
  for (Item& item : items_) {
    if (item.is_sent) item.status = is_ok ? reply.statuses[at++] : reply.context.status;
  }
  close_batch(core);
  return Answered::kLast;
}

void CommitFlow::close_batch(QueueCore& core) {
  return_items(core);
  for (std::size_t i = 0; i < items_.size(); ++i) {
    request_.results[keys_.first + i] = {.status = items_[i].status,
                                         .reason = BusyReason::kNone,
                                         .length = request_.reservations[keys_.first + i].length};
  }
  keys_ = {.first = keys_.end(), .count = 0};
  stage_ = Stage::kIdle;
}

// Whatever the status, each reservation has ended. The daemon ends what was sent by itself.
void CommitFlow::return_items(QueueCore& core) {
  for (std::size_t i = 0; i < keys_.count; ++i) {
    const std::uint64_t lend = request_.reservations[keys_.first + i].lend;
    if (items_[i].is_sent) {
      static_cast<void>(core.session().give_back(lend));
    } else {
      drop(core, lend);
    }
  }
}

void CommitFlow::drop(QueueCore& core, std::uint64_t lend) {
  const bool is_reservation = core.session().reservation(lend) != LendEnd::kUnknown;
  if (is_reservation) core.give_back_reservation(lend);
}

void CommitFlow::lose(QueueCore& core) {
  if (stage_ == Stage::kCommitting) end(core, BlockStatus::kPeerLost);
}

void CommitFlow::end(QueueCore& core, BlockStatus status) {
  std::ranges::fill(request_.results.subspan(keys_.first), KeyResult{.status = status});
  for (const BlockReservation& reservation : request_.reservations.subspan(keys_.end())) {
    drop(core, reservation.lend);
  }
  // Copy threads may be reading the frames.
  if (stage_ == Stage::kSumming) sums_.cancel();
  if (stage_ != Stage::kSumming) return_items(core);
  if (stage_ != Stage::kSumming) stage_ = Stage::kIdle;
  core.finish(*this);
}

}  // namespace cairn::client
