// How each message is answered: one function a message, in one file a family. A handler decodes
// into the loop's scratch, decides, and sends; it runs on the loop of the connection.
#pragma once

#include "server/connection.h"
#include "server/metrics.h"
#include "server/node_core.h"
#include "server/scratch.h"
#include "server/session.h"
#include "transport/wire/messages.h"

#include <array>
#include <cstdint>
#include <span>

namespace cairn::server {

enum class Handled : std::uint8_t {
  kAnswered,
  kMalformed,  // the client broke the protocol: the connection is closed and counted
  kClose,      // the connection is closed once what is queued has been sent
};

// One message that is being answered.
struct Call {
  NodeCore& core;
  Scratch& scratch;
  Connection& connection;
  const wire::FrameView& frame;
  MonotonicTime now;
  // How many keys (or requests, for those without keys) ended with each status.
  std::array<std::uint32_t, kBlockStatusCount> counts{};
  std::array<std::uint32_t, kBusyReasonCount> busy{};

  // Only behind the hello.
  Session& session() noexcept { return *connection.session(); }
  std::uint64_t id() const noexcept { return frame.request_id; }
  void count(BlockStatus status, std::size_t keys = 1) noexcept {
    counts[static_cast<std::size_t>(status)] += static_cast<std::uint32_t>(keys);
  }
  void count(BlockStatus status, BusyReason reason) noexcept {
    count(status);
    if (status == BlockStatus::kBusy) ++busy[static_cast<std::size_t>(reason)];
  }
  void count(const wire::ReplyContext& context, std::size_t keys) noexcept;
  // Encodes and sends a reply to this request.
  template <typename Message>
  Handled answer(const Message& message) {
    wire::encode(message, id(), scratch.writer);
    return connection.send(scratch.writer.finish()) ? Handled::kAnswered : Handled::kClose;
  }
  template <typename Message>
  Handled answer(const Message& message, wire::MessageType type) {
    wire::encode(message, type, id(), scratch.writer);
    return connection.send(scratch.writer.finish()) ? Handled::kAnswered : Handled::kClose;
  }
};

// Whether a request goes on, and where.
struct Admission {
  bool is_malformed = false;
  wire::ReplyContext context;
  storage::Scope scope;  // when context.status is kOk

  bool is_ok() const noexcept { return !is_malformed && context.status == BlockStatus::kOk; }
};

// Window and deadline.
wire::ReplyContext admit_request(Call& call, const wire::RequestContext& context);
// These, and the namespace at its epoch.
Admission admit(Call& call, const wire::RequestContext& context);
// One namespace that the session has opened, at its current epoch: kOk, kWrongNamespace,
// kForbidden.
BlockStatus resolve(Call& call, const wire::NamespaceRef& name, storage::Scope& scope);
// kInvalid when a digest is shorter than the node takes.
BlockStatus check_digests(const NodeCore& core, std::span<const BlockDigest> digests);

// What a decode that failed means for the request.
inline Admission refuse_undecoded(const Error& error) {
  Admission refused;
  refused.is_malformed = error.code != ErrorCode::kTooLarge;
  refused.context.status = BlockStatus::kTooLarge;
  return refused;
}

template <typename Request>
Admission decode_and_admit(Call& call, Request& request) {
  const Status decoded = wire::decode(call.frame, request);
  if (!decoded) return refuse_undecoded(decoded.error());
  Admission admission = admit(call, request.context);
  if constexpr (requires { request.digests; }) {
    if (admission.is_ok()) admission.context.status = check_digests(call.core, request.digests);
  }
  return admission;
}

using Handler = Handled (*)(Call& call);

Handled handle_hello(Call& call);
Handled handle_join(Call& call);
Handled handle_resume(Call& call);
Handled handle_ping(Call& call);
Handled handle_pong(Call& call);
Handled handle_namespace_open(Call& call);
Handled handle_bind(Call& call);
Handled handle_purge(Call& call);
Handled handle_lookup(Call& call);
Handled handle_get(Call& call);
Handled handle_reserve(Call& call);
Handled handle_commit(Call& call);
Handled handle_abort(Call& call);
Handled handle_release(Call& call);
Handled handle_put_inline(Call& call);
Handled handle_inline_data(Call& call);
Handled handle_cancel(Call& call);
Handled handle_retain(Call& call);
Handled handle_prefetch(Call& call);
Handled handle_remove(Call& call);
Handled handle_hint(Call& call);
Handled handle_list(Call& call);
Handled handle_usage(Call& call);
Handled handle_stat(Call& call);
Handled handle_stats(Call& call);

// Answers one frame of a connection and counts it.
Handled dispatch(Call& call);

}  // namespace cairn::server
