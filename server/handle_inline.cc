// put_inline with its data, and cancel.
#include "base/checksum.h"
#include "server/handlers.h"
#include "server/reserve_batch.h"

#include <memory>
#include <utility>

namespace cairn::server {
namespace {

Handled refuse_put(Call& call, const wire::ReplyContext& context) {
  wire::StatusesReply& reply = call.scratch.statuses_reply;
  reply.context = context;
  reply.statuses.clear();
  reply.reasons.clear();
  call.count(context, 1);
  return call.answer(reply, wire::MessageType::kPutInlineReply);
}

std::vector<InlinePut::Item> make_items(Call& call) {
  const wire::PutInline& request = call.scratch.put_inline;
  const std::vector<storage::ReserveOutcome>& outcomes = call.scratch.reserve_outcomes;
  std::vector<InlinePut::Item> items(request.digests.size());
  std::uint32_t checksum = 0;
  std::uint32_t attribute = 0;
  for (std::size_t i = 0; i < items.size(); ++i) {
    InlinePut::Item& item = items[i];
    item.status = outcomes[i].status;
    item.reason = outcomes[i].reason;
    item.ref = outcomes[i].ref;
    item.extents = outcomes[i].extents;
    item.length = request.lengths[i];
    item.checksum_first = checksum;
    item.attribute_first = attribute;
    item.attribute_bytes = request.attribute_bytes.empty() ? 0 : request.attribute_bytes[i];
    checksum += chunk_count(item.length);
    attribute += item.attribute_bytes;
  }
  return items;
}

}  // namespace

Handled handle_put_inline(Call& call) {
  wire::PutInline& request = call.scratch.put_inline;
  const Admission admission = decode_and_admit(call, request);
  if (admission.is_malformed) return Handled::kMalformed;
  if (!admission.is_ok()) return refuse_put(call, admission.context);
  if (call.connection.find_put(call.id()) != nullptr) return Handled::kMalformed;
  if (!call.core.is_serving()) return refuse_put(call, {.status = BlockStatus::kDeclined});
  reserve_batch(call,
                {.scope = admission.scope,
                 .placement = request.placement,
                 .digests = request.digests,
                 .lengths = request.lengths,
                 .room = request.digests.size()});
  const Deadline deadline(call.now + Milliseconds(request.context.remaining_ms));
  auto put = std::make_unique<InlinePut>(
      call.core,
      call.session().account(),
      InlinePut::Start{call.id(), deadline, admission.scope, request.placement.is_chain},
      make_items(call),
      request);
  const bool is_whole = put->is_whole();
  call.connection.start(std::move(put));
  if (!is_whole) return Handled::kAnswered;
  const bool is_sent = call.connection.finish_put(call.id(), BlockStatus::kCancelled);
  return is_sent ? Handled::kAnswered : Handled::kClose;
}

Handled handle_inline_data(Call& call) {
  wire::InlineData& data = call.scratch.inline_data;
  if (!wire::decode(call.frame, data)) return Handled::kMalformed;
  InlinePut* const put = call.connection.find_put(call.id());
  // Of a put that was refused, cancelled or too late: its data was on the way.
  if (put == nullptr) return Handled::kAnswered;
  put->take(data);
  if (!put->is_whole()) return Handled::kAnswered;
  const bool is_sent = call.connection.finish_put(call.id(), BlockStatus::kCancelled);
  return is_sent ? Handled::kAnswered : Handled::kClose;
}

// Other requests are answered by the time a cancel is read.
Handled handle_cancel(Call& call) {
  wire::Cancel request;
  if (!wire::decode(call.frame, request)) return Handled::kMalformed;
  if (call.connection.stop_get(request.request_id)) return Handled::kAnswered;
  if (call.connection.find_put(request.request_id) == nullptr) return Handled::kAnswered;
  const bool is_sent = call.connection.finish_put(request.request_id, BlockStatus::kCancelled);
  return is_sent ? Handled::kAnswered : Handled::kClose;
}

}  // namespace cairn::server
