#include "client/get_flow.h"

#include "base/checksum.h"
#include "client/queue_core.h"

#include <algorithm>

namespace cairn::client {
namespace {

// A grant says what a get needs: as many checksums as chunks, and a lend exactly where bytes are
// lent.
bool is_usable(const wire::Grant& grant, bool is_inline) noexcept {
  if (grant.status != BlockStatus::kOk) return grant.lend == 0;
  return grant.length > 0 && grant.checksum_count == chunk_count(grant.length) &&
         (grant.lend == 0) == is_inline;
}

}  // namespace

void GetFlow::start(const Namespace& in, const CallOptions& options, const GetPlan& plan) {
  name_space = in;
  call = options;
  lookup = {};
  branch.reset();
  plan_ = plan;
  next_ = 0;
  cut_ = plan.digests.size();
  was_lost_ = false;
  std::ranges::fill(plan_.views, BlockView{});
  std::ranges::fill(plan_.objects, ObjectInfo{});
}

// ---- asking ----

bool GetFlow::send(QueueCore& core) {
  for (Batch& batch : batches_) {
    if (batch.stage == Stage::kUnsent && !ask(core, batch)) return is_done();
  }
  if (!begin_batches(core)) return is_done();
  if (!is_over()) return true;
  cut_chain(core);
  core.finish(*this);
  return true;
}

bool GetFlow::begin_batches(QueueCore& core) {
  for (Batch& batch : batches_) {
    const bool is_stopped = plan_.is_chain && cut_ < plan_.digests.size();
    if (next_ == plan_.digests.size() || is_stopped) return true;
    if (batch.stage != Stage::kFree) continue;
    if (!core.can_ask()) return false;
    const KeyRange keys = next_range(core);
    if (!core.take_lent(keys.count)) return false;
    batch.stage = Stage::kUnsent;
    batch.keys = keys;
    batch.wants_attributes = !plan_.objects.empty();
    next_ = keys.end();
    if (!ask(core, batch)) return false;
  }
  return true;
}

KeyRange GetFlow::next_range(const QueueCore& core) const {
  KeyRange keys{.first = next_, .count = 0};
  const std::size_t most = std::min(core.batch_keys(), plan_.digests.size() - next_);
  if (is_views()) return {.first = next_, .count = most};
  const std::uint64_t bytes_max = core.batch_bytes(next_).value();
  std::uint64_t bytes = 0;
  while (keys.count < most) {
    bytes += std::min(plan_.targets[keys.end()].size(), kBlockBytesMax.value());
    if (keys.count > 0 && bytes > bytes_max) break;
    ++keys.count;
  }
  return keys;
}

bool GetFlow::ask(QueueCore& core, Batch& batch) {
  if (!core.can_ask()) return false;
  if (is_views() && !core.is_mapped()) {
    end(core, BlockStatus::kForbidden);
    return false;
  }
  wire::Get& message = core.scratch().get;
  message.context = core.context_of(*this);
  message.mode = core.is_mapped() ? wire::GetMode::kLend : wire::GetMode::kInline;
  message.is_chain = plan_.is_chain;
  message.wants_attributes = batch.wants_attributes;
  const auto keys = plan_.digests.subspan(batch.keys.first, batch.keys.count);
  message.digests.assign(keys.begin(), keys.end());
  Exchange* const exchange = core.ask(*this, wire::MessageType::kGet, message);
  if (exchange == nullptr) return false;
  exchange->part = static_cast<std::uint32_t>(&batch - batches_.data());
  batch.is_inline = message.mode == wire::GetMode::kInline;
  batch.stage = Stage::kAsked;
  return true;
}

bool GetFlow::is_over() const noexcept {
  const bool is_stopped = plan_.is_chain && cut_ < plan_.digests.size();
  const bool is_busy =
      std::ranges::any_of(batches_, [](const Batch& batch) { return batch.stage != Stage::kFree; });
  return !is_busy && (is_stopped || next_ == plan_.digests.size());
}

bool GetFlow::is_idle() const noexcept {
  return std::ranges::none_of(batches_,
                              [](const Batch& batch) { return batch.stage == Stage::kCopying; });
}

// ---- answers ----

Answered GetFlow::receive(QueueCore& core, Exchange& exchange, const wire::FrameView& frame) {
  if (frame.type == wire::MessageType::kInlineData) return take_inline(core, exchange, frame);
  Batch& batch = batches_[exchange.part];
  wire::GetReply& reply = core.scratch().get_reply;
  if (!wire::decode(frame, reply)) return Answered::kBroken;
  exchange.is_answered = true;
  if (reply.context.status != BlockStatus::kOk) {
    fail_batch(core, batch, reply.context);
    return Answered::kLast;
  }
  const bool is_right = reply.grants.size() == batch.keys.count &&
                        std::ranges::all_of(reply.grants, [&](const wire::Grant& grant) {
                          return is_usable(grant, batch.is_inline);
                        });
  if (!is_right) return Answered::kBroken;
  return batch.is_inline ? begin_inline(core, exchange, batch) : lend(core, batch);
}

Answered GetFlow::lend(QueueCore& core, Batch& batch) {
  const wire::GetReply& reply = core.scratch().get_reply;
  auto& pieces = core.scratch().pieces;
  pieces.resize(batch.keys.count);
  const Status adopted = core.adopt(
      {.grants = reply.grants, .extents = reply.extents, .lengths = {}, .is_reserved = false},
      pieces);
  if (!adopted && adopted.error().code == ErrorCode::kCorrupt) return Answered::kBroken;
  if (!adopted && adopted.error().code == ErrorCode::kPeerGone && may_ask_again(batch)) {
    return Answered::kLast;
  }
  if (!adopted) {
    fail_batch(core, batch, {.status = BlockStatus::kPeerLost, .reason = BusyReason::kNone});
    return Answered::kLast;
  }
  batch.items.resize(batch.keys.count);
  for (std::size_t i = 0; i < batch.keys.count; ++i) {
    const wire::Grant& grant = reply.grants[i];
    Item& item = batch.items[i];
    item = Item{};
    item.result = {.status = grant.status, .reason = grant.reason, .length = grant.length};
    item.lend = grant.lend;
    item.frame = pieces[i];
  }
  if (has_hidden_object(batch, reply.grants)) {
    drop_lends(core, batch);
    batch.wants_attributes = true;
    batch.stage = Stage::kUnsent;
    return Answered::kLast;
  }
  batch.stage = Stage::kCopying;
  prepare(core, batch);
  // The daemon works on the next batch while this one is copied.
  begin_batches(core);
  if (core.copy(batch.copies, *this)) complete(core, batch);
  return Answered::kLast;
}

// A block of the size of a part may be one: only its attributes tell.
bool GetFlow::has_hidden_object(const Batch& batch, std::span<const wire::Grant> grants) const {
  return is_views() && !batch.wants_attributes &&
         std::ranges::any_of(grants, [](const wire::Grant& grant) {
           return grant.status == BlockStatus::kOk && grant.length == kPartBytes.value();
         });
}

bool GetFlow::may_ask_again(Batch& batch) {
  if (was_lost_) return false;
  was_lost_ = true;
  batch.stage = Stage::kUnsent;
  return true;
}

void GetFlow::prepare(QueueCore& core, Batch& batch) {
  const wire::GetReply& reply = core.scratch().get_reply;
  batch.copies.clear(reply.checksums.size());
  std::ranges::copy(reply.checksums, batch.copies.checksums().begin());
  for (std::size_t i = 0; i < batch.items.size(); ++i) {
    if (batch.items[i].result.status == BlockStatus::kOk) prepare_item(core, batch, i);
  }
}

void GetFlow::prepare_item(QueueCore& core, Batch& batch, std::size_t i) {
  const wire::GetReply& reply = core.scratch().get_reply;
  const wire::Grant& grant = reply.grants[i];
  const std::size_t key = batch.keys.first + i;
  Item& item = batch.items[i];
  const ObjectInfo object = find_object(
      std::span(reply.attributes).subspan(grant.attribute_first, grant.attribute_bytes));
  if (object.length > 0) item.result.length = object.length;
  if (object.length > 0 && !plan_.objects.empty()) plan_.objects[key] = object;
  const bool fits =
      is_views() ? object.length == 0 : plan_.targets[key].size() >= item.result.length;
  if (!fits) {
    item.result.status = BlockStatus::kTooLarge;
    return;
  }
  const bool is_checked = core.wants_check(plan_.verify);
  if (is_views() && !is_checked) return;
  CopyTask task;
  task.kind = is_checked ? CopyKind::kFromFrameChecked : CopyKind::kFromFrame;
  if (is_views()) task.kind = CopyKind::kCheck;
  task.frame = item.frame;
  task.target = is_views() ? nullptr : plan_.targets[key].data();
  task.checksums = batch.copies.checksums_at(grant.checksum_first);
  item.task = static_cast<std::uint32_t>(batch.copies.size());
  batch.copies.add(task);
}

// ---- ends ----

void GetFlow::copied(QueueCore& core, CopyBatch& copies) {
  for (Batch& batch : batches_) {
    if (&batch.copies == &copies) complete(core, batch);
  }
}

void GetFlow::complete(QueueCore& core, Batch& batch) {
  for (std::size_t i = 0; i < batch.items.size(); ++i)
    complete_item(core, batch, i);
  free(core, batch);
}

void GetFlow::complete_item(QueueCore& core, Batch& batch, std::size_t i) {
  Item& item = batch.items[i];
  const std::size_t key = batch.keys.first + i;
  bool is_corrupt = item.is_wrong;
  if (item.task != kNoTask) {
    const CopyOutcome outcome = batch.copies.outcome(item.task);
    is_corrupt = outcome == CopyOutcome::kWrong;
    if (outcome == CopyOutcome::kSkipped) item.result.status = BlockStatus::kTimeout;
  }
  if (is_corrupt) item.result.status = BlockStatus::kCorrupt;
  const bool is_ok = item.result.status == BlockStatus::kOk;
  const bool is_kept = is_views() && is_ok && !is_done();
  if (item.lend != 0 && !is_kept) core.give_back_view(item.lend, is_corrupt);
  // What ended early has its results already.
  if (is_done()) return;
  plan_.results[key] = item.result;
  if (!is_ok) cut_ = std::min(cut_, key);
  if (!is_kept) return;
  BlockView& view = plan_.views[key];
  for (std::uint32_t piece = 0; piece < item.frame.count; ++piece) {
    view.pieces[piece] = item.frame.spans[piece];
  }
  view.piece_count = item.frame.count;
  view.length = item.frame.length;
  view.lend = item.lend;
}

void GetFlow::fail_batch(QueueCore& core, Batch& batch, const wire::ReplyContext& context) {
  for (std::size_t key = batch.keys.first; key < batch.keys.end(); ++key) {
    plan_.results[key] = {.status = context.status, .reason = context.reason, .length = 0};
  }
  cut_ = std::min(cut_, batch.keys.end() - 1);
  free(core, batch);
}

void GetFlow::drop_lends(QueueCore& core, Batch& batch) {
  for (const Item& item : batch.items) {
    if (item.lend != 0) core.give_back_view(item.lend, false);
  }
  batch.items.clear();
}

void GetFlow::free(QueueCore& core, Batch& batch) {
  batch.stage = Stage::kFree;
  batch.items.clear();
  core.give_lent(batch.keys.count);
}

void GetFlow::lose(QueueCore& core) {
  const bool is_asked = std::ranges::any_of(
      batches_, [](const Batch& batch) { return batch.stage == Stage::kAsked; });
  if (!is_asked) return;
  if (was_lost_) return end(core, BlockStatus::kPeerLost);
  was_lost_ = true;
  for (Batch& batch : batches_) {
    if (batch.stage == Stage::kAsked) batch.stage = Stage::kUnsent;
  }
  core.want_send(*this);
}

void GetFlow::end(QueueCore& core, BlockStatus status) {
  fill_unended(status);
  for (Batch& batch : batches_) {
    if (batch.stage == Stage::kCopying) {
      batch.copies.cancel();
    } else if (batch.stage != Stage::kFree) {
      free(core, batch);
    }
  }
  cut_chain(core);
  core.finish(*this);
}

void GetFlow::fill_unended(BlockStatus status) {
  const KeyResult result{.status = status};
  for (const Batch& batch : batches_) {
    if (batch.stage == Stage::kFree) continue;
    std::ranges::fill(plan_.results.subspan(batch.keys.first, batch.keys.count), result);
  }
  std::ranges::fill(plan_.results.subspan(next_), result);
}

void GetFlow::cut_chain(QueueCore& core) {
  if (!plan_.is_chain) return;
  for (std::size_t key = cut_ + 1; key < plan_.results.size(); ++key) {
    plan_.results[key] = {.status = BlockStatus::kCut};
    if (!is_views() || plan_.views[key].lend == 0) continue;
    core.give_back_view(plan_.views[key].lend, false);
    plan_.views[key] = BlockView{};
  }
}

}  // namespace cairn::client
