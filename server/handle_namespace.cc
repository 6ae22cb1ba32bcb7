// namespace open, bind, purge.
#include "server/handlers.h"
#include "server/log.h"

#include <string>
#include <system_error>

namespace cairn::server {
namespace {

BlockStatus open_failure(ErrorCode code) {
  switch (code) {
    case ErrorCode::kInvalid:
      return BlockStatus::kInvalid;
    case ErrorCode::kNoSpace:
      return BlockStatus::kQuota;
    default:
      return BlockStatus::kBusy;
  }
}

// Tells of a change only: clients ask again and again.
void note_data_dir(Call& call) {
  const auto failure = call.core.parts.namespaces->write_failure();
  const std::uint64_t now = failure ? 1 : 0;
  const std::uint64_t before =
      call.core.parts.metrics->data_dir_failing.exchange(now, std::memory_order_relaxed);
  if (before == now) return;
  if (!failure) return log_event(LogLevel::kInfo, "data_dir_writable", {});
  log_event(LogLevel::kError,
            "data_dir_write_failed",
            {{"step", failure->what}, {"errno", std::to_string(failure->sys)}});
}

Handled refuse_open(Call& call, const wire::ReplyContext& context, std::string message) {
  wire::NamespaceOpenReply reply;
  reply.context = context;
  reply.message = std::move(message);
  call.count(context, 1);
  return call.answer(reply);
}

// The store may not know a namespace that was opened for the first time.
void tell_store(Call& call, const NamespaceEntry& entry) {
  call.core.parts.store->set_epoch(entry.slot, entry.epoch);
}

}  // namespace

Handled handle_namespace_open(Call& call) {
  wire::NamespaceOpen request;
  if (const Status decoded = wire::decode(call.frame, request); !decoded) {
    const Admission refused = refuse_undecoded(decoded.error());
    if (refused.is_malformed) return Handled::kMalformed;
    return refuse_open(call, refused.context, "the fingerprint is too long");
  }
  const wire::ReplyContext admitted = admit_request(call, request.context);
  if (admitted.status != BlockStatus::kOk) return refuse_open(call, admitted, {});
  std::string message;
  const auto entry = call.core.parts.namespaces->open_namespace(request.fingerprint, message);
  note_data_dir(call);
  if (!entry) {
    if (message.empty()) {
      message = std::string("the daemon's data_dir fails now: ") + entry.error().what;
      if (entry.error().sys != 0)
        message += " (" + std::generic_category().message(entry.error().sys) + ")";
    }
    return refuse_open(call, {.status = open_failure(entry.error().code)}, std::move(message));
  }
  tell_store(call, *entry);
  if (!call.session().add_namespace(entry->digest, entry->slot)) {
    return refuse_open(call,
                       {.status = BlockStatus::kQuota},
                       "this session has opened as many namespaces as it may");
  }
  wire::NamespaceOpenReply reply;
  reply.digest = entry->digest;
  reply.epoch = entry->epoch;
  call.count(BlockStatus::kOk);
  return call.answer(reply);
}

Handled handle_bind(Call& call) {
  wire::Bind request;
  if (!wire::decode(call.frame, request)) return Handled::kMalformed;
  wire::BindReply reply;
  reply.context = admit_request(call, request.context);
  if (reply.context.status == BlockStatus::kOk) {
    const auto entry = call.core.parts.namespaces->find(request.context.name_space);
    if (entry) {
      tell_store(call, *entry);
      // Also at an old epoch: the client may learn the new one on a socket of another session.
      const bool is_added = call.session().add_namespace(entry->digest, entry->slot);
      if (!is_added) reply.context.status = BlockStatus::kQuota;
    }
    if (!entry || entry->epoch != request.context.epoch)
      reply.context.status = BlockStatus::kWrongNamespace;
  }
  call.count(reply.context, 1);
  return call.answer(reply);
}

Handled handle_purge(Call& call) {
  wire::Purge request;
  Admission admission = decode_and_admit(call, request);
  if (admission.is_malformed) return Handled::kMalformed;
  wire::PurgeReply reply;
  reply.context = admission.context;
  if (admission.is_ok()) {
    const auto entry = call.core.parts.namespaces->purge(request.context.name_space);
    note_data_dir(call);
    if (entry) {
      // From here on no request with an older epoch is served, so the purge is complete.
      tell_store(call, *entry);
      reply.epoch = entry->epoch;
      reply.is_complete = true;
      log_event(
          LogLevel::kInfo,
          "namespace_purged",
          {{"namespace", to_hex(entry->digest.bytes)}, {"epoch", std::to_string(entry->epoch)}});
    } else {
      reply.context.status = BlockStatus::kBusy;
    }
  }
  call.count(reply.context, 1);
  return call.answer(reply);
}

}  // namespace cairn::server
