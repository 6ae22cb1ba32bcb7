#include "client/put_flow.h"

#include "base/checksum.h"
#include "client/queue_core.h"

#include <algorithm>

namespace cairn::client {
namespace {

bool is_there(BlockStatus status) noexcept {
  return status == BlockStatus::kOk || status == BlockStatus::kExists;
}

}  // namespace

wire::Placement placement_from(const PutPlacement& placement,
                               std::span<const BlockDigest> digests,
                               std::size_t first,
                               const std::optional<BlockDigest>& branch) {
  wire::Placement out{.is_chain = placement.is_chain,
                      .is_durable = placement.is_durable,
                      .position = placement.position,
                      .retain_ms = static_cast<std::uint32_t>(placement.retain.count()),
                      .parent = {},
                      .branch = branch};
  if (first == 0) {
    out.parent = placement.parent;
  } else if (placement.is_chain) {
    out.position += static_cast<std::uint32_t>(first);
    out.parent = digests[first - 1];
  }
  return out;
}

void PutFlow::start(const Namespace& in, const CallOptions& options, const PutPlan& plan) {
  name_space = in;
  call = options;
  lookup = {};
  branch = plan.placement.branch;
  plan_ = plan;
  next_ = 0;
  cut_ = plan.digests.size();
  is_branch_known_ = false;
  lengths_.clear();
  for (const auto& source : plan.sources) {
    lengths_.push_back(static_cast<std::uint32_t>(source.size()));
  }
}

// ---- what is sent ----

bool PutFlow::send(QueueCore& core) {
  for (Batch& batch : batches_) {
    if (batch.stage == Stage::kUnsent && !ask_reserve(core, batch)) return is_done();
  }
  for (std::size_t i = 0; i < batches_.size(); ++i) {
    for (Batch& batch : batches_) {
      if (is_next_to_commit(batch) && !ask_commit(core, batch)) return is_done();
    }
  }
  if (may_begin() && !begin_reserve(core)) return is_done();
  if (!is_over()) return true;
  cut_chain();
  core.finish(*this);
  return true;
}

PutFlow::Batch* PutFlow::free_batch() noexcept {
  const auto found = std::ranges::find(batches_, Stage::kFree, &Batch::stage);
  return found == batches_.end() ? nullptr : &*found;
}

bool PutFlow::is_stopped() const noexcept {
  return plan_.placement.is_chain && cut_ < plan_.digests.size();
}

// The branch of a request is known from its first answer on; later batches need it.
bool PutFlow::may_begin() const noexcept {
  if (next_ == plan_.digests.size() || is_stopped()) return false;
  if (!is_branch_known_ && next_ > 0) return false;
  const auto open = std::ranges::count_if(batches_, [](const Batch& batch) {
    return batch.stage != Stage::kFree && batch.stage != Stage::kCommitting;
  });
  return open < 2;
}

// Commits go in the order of the keys, so that a parent is there before its child.
bool PutFlow::is_next_to_commit(const Batch& batch) const noexcept {
  if (batch.stage != Stage::kCopied) return false;
  return std::ranges::none_of(batches_, [&](const Batch& other) {
    const bool is_waiting = other.stage != Stage::kFree && other.stage != Stage::kCommitting;
    return is_waiting && other.keys.first < batch.keys.first;
  });
}

KeyRange PutFlow::next_range(const QueueCore& core) const {
  KeyRange keys{.first = next_, .count = 0};
  const std::size_t most = std::min(core.batch_keys(), plan_.digests.size() - next_);
  const std::uint64_t bytes_max = core.batch_bytes(next_).value();
  std::uint64_t bytes = 0;
  while (keys.count < most) {
    bytes += lengths_[keys.end()];
    if (keys.count > 0 && bytes > bytes_max) break;
    ++keys.count;
  }
  const bool is_last = keys.end() == plan_.digests.size();
  if (is_last && bytes > 2 * kTailBytesMax.value()) keys.count -= tail_keys(keys);
  return keys;
}

std::size_t PutFlow::tail_keys(const KeyRange& keys) const {
  std::size_t count = 0;
  std::uint64_t bytes = lengths_[keys.end() - 1];
  while (bytes <= kTailBytesMax.value()) {
    ++count;
    bytes += lengths_[keys.end() - 1 - count];
  }
  return count;
}

bool PutFlow::begin_reserve(QueueCore& core) {
  if (!core.can_ask()) return false;
  if (!core.is_mapped()) {
    end(core, BlockStatus::kForbidden);
    return false;
  }
  const KeyRange keys = next_range(core);
  if (!core.take_lent(keys.count)) return false;
  Batch& batch = *free_batch();
  batch.stage = Stage::kUnsent;
  batch.keys = keys;
  batch.lent = keys.count;
  next_ = keys.end();
  return ask_reserve(core, batch);
}

bool PutFlow::ask_reserve(QueueCore& core, Batch& batch) {
  if (!core.can_ask()) return false;
  wire::Reserve& message = core.scratch().reserve;
  message.context = core.context_of(*this);
  message.placement = placement_from(plan_.placement, plan_.digests, batch.keys.first, branch);
  const auto keys = plan_.digests.subspan(batch.keys.first, batch.keys.count);
  const auto lengths = std::span(lengths_).subspan(batch.keys.first, batch.keys.count);
  message.digests.assign(keys.begin(), keys.end());
  message.lengths.assign(lengths.begin(), lengths.end());
  Exchange* const exchange = core.ask(*this, wire::MessageType::kReserve, message);
  if (exchange == nullptr) return false;
  exchange->part = static_cast<std::uint32_t>(&batch - batches_.data());
  batch.stage = Stage::kReserving;
  return true;
}

bool PutFlow::ask_commit(QueueCore& core, Batch& batch) {
  if (!core.can_ask()) return false;
  fill_commit(core, batch);
  Batch* const next = carry_next(core, batch);
  Exchange* const exchange = core.ask(*this, wire::MessageType::kCommit, core.scratch().commit);
  if (exchange == nullptr) {
    if (next != nullptr) undo_carry(core, batch, *next);
    return false;
  }
  exchange->part = static_cast<std::uint32_t>(&batch - batches_.data());
  batch.stage = Stage::kCommitting;
  return true;
}

void PutFlow::fill_commit(QueueCore& core, const Batch& batch) {
  wire::Commit& message = core.scratch().commit;
  message.context = core.context_of(*this);
  message.entries.clear();
  message.checksums.clear();
  message.attributes.clear();
  for (std::size_t i = 0; i < batch.items.size(); ++i) {
    const Item& item = batch.items[i];
    if (item.lend == 0) continue;
    wire::CommitEntry entry{.lend = item.lend,
                            .checksum_first = static_cast<std::uint32_t>(message.checksums.size()),
                            .checksum_count = item.checksum_count};
    const std::uint32_t* const checksums = batch.copies.checksums_at(item.checksum_first);
    message.checksums.insert(message.checksums.end(), checksums, checksums + item.checksum_count);
    if (!plan_.attributes.empty()) {
      const auto attributes = plan_.attributes[batch.keys.first + i];
      entry.attribute_first = static_cast<std::uint32_t>(message.attributes.size());
      entry.attribute_bytes = static_cast<std::uint32_t>(attributes.size());
      message.attributes.insert(message.attributes.end(), attributes.begin(), attributes.end());
    }
    message.entries.push_back(entry);
  }
}

// The commit gives its frames back before its next batch is reserved, so that one takes over the
// other's share.
PutFlow::Batch* PutFlow::carry_next(QueueCore& core, Batch& batch) {
  wire::Commit& message = core.scratch().commit;
  message.next_placement.reset();
  message.next_digests.clear();
  message.next_lengths.clear();
  batch.carried = kNoBatch;
  Batch* const next = free_batch();
  if (next == nullptr || next_ == plan_.digests.size() || is_stopped()) return nullptr;
  const KeyRange range = next_range(core);
  const std::size_t handed = std::min(batch.lent, range.count);
  if (!core.take_lent(range.count - handed)) return nullptr;
  batch.lent -= handed;
  next->stage = Stage::kReserving;
  next->keys = range;
  next->lent = range.count;
  next_ = range.end();
  batch.carried = static_cast<std::uint32_t>(next - batches_.data());
  message.next_placement = placement_from(plan_.placement, plan_.digests, range.first, branch);
  const auto keys = plan_.digests.subspan(range.first, range.count);
  const auto lengths = std::span(lengths_).subspan(range.first, range.count);
  message.next_digests.assign(keys.begin(), keys.end());
  message.next_lengths.assign(lengths.begin(), lengths.end());
  return next;
}

void PutFlow::undo_carry(QueueCore& core, Batch& batch, Batch& next) {
  next_ = next.keys.first;
  batch.carried = kNoBatch;
  const std::size_t handed = batch.keys.count - batch.lent;
  batch.lent += handed;
  next.lent -= handed;
  free(core, next);
}

// ---- what comes ----

Answered PutFlow::receive(QueueCore& core, Exchange& exchange, const wire::FrameView& frame) {
  Batch& batch = batches_[exchange.part];
  exchange.is_answered = true;
  if (exchange.request == wire::MessageType::kCommit) return committed(core, batch, frame);
  wire::ReserveReply& reply = core.scratch().reserve_reply;
  if (!wire::decode(frame, reply)) return Answered::kBroken;
  return granted(core, batch, reply);
}

bool PutFlow::is_usable(const Batch& batch, const wire::Grant& grant, std::size_t i) const {
  if (grant.status != BlockStatus::kOk) return grant.lend == 0;
  return grant.lend != 0 && lengths_[batch.keys.first + i] > 0;
}

Answered PutFlow::granted(QueueCore& core, Batch& batch, const wire::ReserveReply& reply) {
  if (reply.context.status != BlockStatus::kOk) {
    fail_batch(core, batch, reply.context);
    return Answered::kLast;
  }
  bool is_right = reply.grants.size() == batch.keys.count;
  for (std::size_t i = 0; i < batch.keys.count && is_right; ++i) {
    is_right = is_usable(batch, reply.grants[i], i);
  }
  if (!is_right) return Answered::kBroken;
  auto& pieces = core.scratch().pieces;
  pieces.resize(batch.keys.count);
  const Status adopted =
      core.adopt({.grants = reply.grants,
                  .extents = reply.extents,
                  .lengths = std::span(lengths_).subspan(batch.keys.first, batch.keys.count),
                  .is_reserved = true},
                 pieces);
  if (!adopted && adopted.error().code == ErrorCode::kCorrupt) return Answered::kBroken;
  if (!adopted) {
    fail_batch(core, batch, {.status = BlockStatus::kPeerLost, .reason = BusyReason::kNone});
    return Answered::kLast;
  }
  if (reply.branch) branch = reply.branch;
  is_branch_known_ = true;
  batch.stage = Stage::kCopying;
  prepare(core, batch, reply);
  // The daemon reserves the next batch while this one is copied.
  if (may_begin()) begin_reserve(core);
  if (core.copy(batch.copies, *this)) after_copies(core, batch);
  return Answered::kLast;
}

void PutFlow::prepare(QueueCore& core, Batch& batch, const wire::ReserveReply& reply) {
  const auto& pieces = core.scratch().pieces;
  batch.items.assign(batch.keys.count, Item{});
  std::size_t checksums = 0;
  for (std::size_t i = 0; i < batch.keys.count; ++i) {
    const wire::Grant& grant = reply.grants[i];
    const std::size_t key = batch.keys.first + i;
    Item& item = batch.items[i];
    item.result = {.status = grant.status, .reason = grant.reason, .length = lengths_[key]};
    if (grant.status != BlockStatus::kOk) {
      if (!is_there(grant.status)) cut_ = std::min(cut_, key);
      continue;
    }
    if (plan_.must_exist != nullptr && (*plan_.must_exist)[key]) {
      item.result.status = BlockStatus::kBusy;
      item.result.reason = BusyReason::kFrames;
      core.give_back_reservation(grant.lend);
      cut_ = std::min(cut_, key);
      continue;
    }
    item.lend = grant.lend;
    item.checksum_first = static_cast<std::uint32_t>(checksums);
    item.checksum_count = chunk_count(lengths_[key]);
    checksums += item.checksum_count;
  }
  batch.copies.clear(checksums);
  for (std::size_t i = 0; i < batch.keys.count; ++i) {
    Item& item = batch.items[i];
    if (item.lend == 0) continue;
    CopyTask task{.kind = CopyKind::kIntoFrame, .frame = pieces[i]};
    task.source = plan_.sources[batch.keys.first + i].data();
    task.checksums = batch.copies.checksums_at(item.checksum_first);
    item.task = static_cast<std::uint32_t>(batch.copies.size());
    batch.copies.add(task);
  }
}

void PutFlow::copied(QueueCore& core, CopyBatch& copies) {
  for (Batch& batch : batches_) {
    if (&batch.copies == &copies && batch.stage == Stage::kCopying) after_copies(core, batch);
  }
}

void PutFlow::after_copies(QueueCore& core, Batch& batch) {
  if (is_done()) {
    abort_lends(core, batch);
    return free(core, batch);
  }
  bool has_lends = false;
  for (std::size_t i = 0; i < batch.items.size(); ++i) {
    Item& item = batch.items[i];
    const std::size_t key = batch.keys.first + i;
    const bool is_skipped =
        item.task != kNoTask && batch.copies.outcome(item.task) == CopyOutcome::kSkipped;
    const bool is_cut = plan_.placement.is_chain && key > cut_;
    if (is_skipped) item.result.status = BlockStatus::kTimeout;
    if (is_skipped) cut_ = std::min(cut_, key);
    if (item.lend != 0 && (is_skipped || is_cut)) {
      core.give_back_reservation(item.lend);
      item.lend = 0;
    }
    if (item.lend == 0) plan_.results[key] = item.result;
    has_lends = has_lends || item.lend != 0;
  }
  batch.stage = Stage::kCopied;
  if (!has_lends) free(core, batch);
}

Answered PutFlow::committed(QueueCore& core, Batch& batch, const wire::FrameView& frame) {
  wire::CommitReply& reply = core.scratch().commit_reply;
  if (!wire::decode(frame, reply)) return Answered::kBroken;
  const bool is_ok = reply.context.status == BlockStatus::kOk;
  const bool has_next = batch.carried != kNoBatch;
  const auto lends = static_cast<std::size_t>(
      std::ranges::count_if(batch.items, [](const Item& item) { return item.lend != 0; }));
  if (is_ok && reply.statuses.size() != lends) return Answered::kBroken;
  if (is_ok && reply.next.has_value() != has_next) return Answered::kBroken;
  Batch* const next = has_next ? &batches_[batch.carried] : nullptr;
  settle_items(core, batch, reply);
  free(core, batch);
  if (next == nullptr) return Answered::kLast;
  if (is_ok) return granted(core, *next, *reply.next);
  fail_batch(core, *next, reply.context);
  return Answered::kLast;
}

// A commit ends its reservations, whatever it answers.
void PutFlow::settle_items(QueueCore& core, Batch& batch, const wire::CommitReply& reply) {
  const bool is_ok = reply.context.status == BlockStatus::kOk;
  std::size_t at = 0;
  for (std::size_t i = 0; i < batch.items.size(); ++i) {
    Item& item = batch.items[i];
    if (item.lend == 0) continue;
    static_cast<void>(core.session().give_back(item.lend));
    item.result.status = is_ok ? reply.statuses[at++] : reply.context.status;
    item.result.reason = is_ok ? BusyReason::kNone : reply.context.reason;
    record(batch.keys.first + i, item.result);
  }
}

// ---- ends ----

void PutFlow::record(std::size_t key, const KeyResult& result) {
  plan_.results[key] = result;
  if (!is_there(result.status)) cut_ = std::min(cut_, key);
}

void PutFlow::fail_batch(QueueCore& core, Batch& batch, const wire::ReplyContext& context) {
  for (std::size_t key = batch.keys.first; key < batch.keys.end(); ++key) {
    plan_.results[key] = {
        .status = context.status, .reason = context.reason, .length = lengths_[key]};
  }
  cut_ = std::min(cut_, batch.keys.end() - 1);
  free(core, batch);
}

void PutFlow::abort_lends(QueueCore& core, Batch& batch) {
  for (const Item& item : batch.items) {
    if (item.lend != 0) core.give_back_reservation(item.lend);
  }
}

void PutFlow::free(QueueCore& core, Batch& batch) {
  batch.stage = Stage::kFree;
  batch.items.clear();
  core.give_lent(std::exchange(batch.lent, 0));
}

bool PutFlow::is_over() const noexcept {
  const bool is_busy =
      std::ranges::any_of(batches_, [](const Batch& batch) { return batch.stage != Stage::kFree; });
  return !is_busy && (is_stopped() || next_ == plan_.digests.size());
}

bool PutFlow::is_idle() const noexcept {
  return std::ranges::none_of(batches_,
                              [](const Batch& batch) { return batch.stage == Stage::kCopying; });
}

void PutFlow::lose(QueueCore& core) {
  const bool is_begun = std::ranges::any_of(
      batches_, [](const Batch& batch) { return batch.stage > Stage::kUnsent; });
  if (is_begun) end(core, BlockStatus::kPeerLost);
}

void PutFlow::end(QueueCore& core, BlockStatus status) {
  for (std::size_t key = next_; key < plan_.results.size(); ++key) {
    plan_.results[key] = {.status = status};
  }
  for (Batch& batch : batches_) {
    if (batch.stage == Stage::kFree) continue;
    for (std::size_t i = 0; i < batch.keys.count; ++i) {
      const bool has_ended =
          i < batch.items.size() && batch.items[i].lend == 0 && batch.stage > Stage::kReserving;
      plan_.results[batch.keys.first + i] =
          has_ended ? batch.items[i].result : KeyResult{.status = status};
    }
    if (batch.stage == Stage::kCopying) {
      batch.copies.cancel();
      continue;
    }
    if (batch.stage == Stage::kCopied) abort_lends(core, batch);
    // The daemon ends these by itself when it comes to the commit.
    for (const Item& item : batch.items) {
      if (batch.stage == Stage::kCommitting) {
        static_cast<void>(core.session().give_back(item.lend));
      }
    }
    free(core, batch);
  }
  cut_chain();
  core.finish(*this);
}

void PutFlow::cut_chain() {
  if (!plan_.placement.is_chain) return;
  for (std::size_t key = cut_ + 1; key < plan_.results.size(); ++key) {
    plan_.results[key] = {.status = BlockStatus::kCut};
  }
}

}  // namespace cairn::client
