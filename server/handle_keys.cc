// What moves no bytes: retain, prefetch, remove, hint, list, usage, stat, stats.
#include "server/handlers.h"
#include "server/stats_json.h"

#include <algorithm>

namespace cairn::server {
namespace {

// Calls `one` for each key of an admitted request and answers with the statuses.
template <typename Request, typename One>
Handled answer_keys(Call& call, Request& request, wire::MessageType type, const One& one) {
  const Admission admission = decode_and_admit(call, request);
  if (admission.is_malformed) return Handled::kMalformed;
  wire::StatusesReply& reply = call.scratch.statuses_reply;
  reply.context = admission.context;
  reply.statuses.clear();
  reply.reasons.clear();
  if (!admission.is_ok()) {
    call.count(reply.context, 1);
    return call.answer(reply, type);
  }
  for (const BlockDigest& digest : request.digests) {
    reply.statuses.push_back(one(admission.scope, digest));
    call.count(reply.statuses.back());
  }
  return call.answer(reply, type);
}

Handled answer_json(Call& call,
                    const wire::ReplyContext& context,
                    wire::MessageType type,
                    std::string json) {
  wire::JsonReply reply;
  reply.context = context;
  if (context.status == BlockStatus::kOk) reply.json = std::move(json);
  call.count(context, 1);
  return call.answer(reply, type);
}

}  // namespace

Handled handle_retain(Call& call) {
  wire::Retain& request = call.scratch.retain;
  return answer_keys(call,
                     request,
                     wire::MessageType::kRetainReply,
                     [&](const storage::Scope& scope, const BlockDigest& digest) {
                       if (!call.core.is_serving()) return BlockStatus::kMiss;
                       return call.core.parts.store->retain(
                           scope, digest, Milliseconds(request.duration_ms));
                     });
}

// With one tier nothing has to be brought nearer: the answer says what is here.
Handled handle_prefetch(Call& call) {
  return answer_keys(call,
                     call.scratch.prefetch,
                     wire::MessageType::kPrefetchReply,
                     [&](const storage::Scope& scope, const BlockDigest& digest) {
                       storage::LookupHit hit;
                       const bool is_serving = call.core.is_serving();
                       if (is_serving) {
                         call.core.parts.store->lookup(
                             scope, std::span(&digest, 1), std::span(&hit, 1));
                       }
                       const bool is_here = hit.tier != storage::TierKind::kNone;
                       return is_here ? BlockStatus::kOk : BlockStatus::kMiss;
                     });
}

Handled handle_remove(Call& call) {
  return answer_keys(call,
                     call.scratch.remove,
                     wire::MessageType::kRemoveReply,
                     [&](const storage::Scope& scope, const BlockDigest& digest) {
                       return call.core.parts.store->remove(scope, digest);
                     });
}

// Advice that no policy here follows; it is checked like any request, and counted.
Handled handle_hint(Call& call) {
  wire::Hint& request = call.scratch.hint;
  const Admission admission = decode_and_admit(call, request);
  if (admission.is_malformed) return Handled::kMalformed;
  call.count(admission.context, std::max<std::size_t>(request.digests.size(), 1));
  return Handled::kAnswered;
}

Handled handle_list(Call& call) {
  wire::List request;
  const Admission admission = decode_and_admit(call, request);
  if (admission.is_malformed) return Handled::kMalformed;
  wire::ListReply reply;
  reply.context = admission.context;
  if (admission.is_ok() && call.core.is_serving()) {
    const bool is_bounded = request.limit > 0 && request.limit <= wire::kListKeysMax;
    const std::size_t limit = is_bounded ? request.limit : wire::kListKeysMax;
    storage::Store::Listing listing =
        call.core.parts.store->list(admission.scope, request.cursor, limit);
    reply.digests = std::move(listing.digests);
    reply.next_cursor = listing.next_cursor;
  }
  call.count(reply.context, 1);
  return call.answer(reply);
}

Handled handle_usage(Call& call) {
  wire::Usage request;
  const Admission admission = decode_and_admit(call, request);
  if (admission.is_malformed) return Handled::kMalformed;
  std::string json = usage_json(call.core, call.session().account());
  return answer_json(call, admission.context, wire::MessageType::kUsageReply, std::move(json));
}

Handled handle_stat(Call& call) {
  wire::Stat request;
  Admission admission = decode_and_admit(call, request);
  if (admission.is_malformed) return Handled::kMalformed;
  std::string json;
  if (admission.is_ok())
    admission.context.status = check_digests(call.core, std::span(&request.digest, 1));
  if (admission.is_ok()) {
    std::optional<storage::BlockInfo> info;
    if (call.core.is_serving()) info = call.core.parts.store->stat(admission.scope, request.digest);
    if (info) json = stat_json(*info);
    if (!info) admission.context.status = BlockStatus::kMiss;
  }
  return answer_json(call, admission.context, wire::MessageType::kStatReply, std::move(json));
}

// Asks about the node, so no namespace has to be open.
Handled handle_stats(Call& call) {
  wire::Stats request;
  if (!wire::decode(call.frame, request)) return Handled::kMalformed;
  const wire::ReplyContext context = admit_request(call, request.context);
  return answer_json(call, context, wire::MessageType::kStatsReply, node_stats_json(call.core));
}

}  // namespace cairn::server
