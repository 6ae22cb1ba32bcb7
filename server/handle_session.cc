// hello, join, resume, ping.
#include "server/handlers.h"
#include "server/log.h"
#include "server/text.h"

#include <string>
#include <utility>

namespace cairn::server {
namespace {

// None yet: a client's bits beyond these are left out of the reply.
constexpr std::uint64_t kFeatures = 0;

Handled refuse_hello(Call& call, wire::HelloReply reply) {
  call.count(reply.context, 1);
  log_event(LogLevel::kWarning,
            "connection_refused",
            {{"peer", call.connection.channel().peer().name}, {"why", reply.message}});
  call.answer(reply);
  return Handled::kClose;
}

std::string version_message(const wire::Hello& hello) {
  return "this daemon speaks protocol version " + std::to_string(wire::kProtocolVersion) +
         ", the client " + std::to_string(hello.version_min) + " to " +
         std::to_string(hello.version_max);
}

std::string client_name(const wire::Hello& hello) {
  return hello.client_name.empty() ? "unnamed" : hello.client_name;
}

Result<SessionRegistry::Opened> open_session(Call& call, const wire::Hello& hello) {
  transport::Channel& channel = call.connection.channel();
  return call.core.registry.open(
      {.socket = call.connection.place(),
       .is_local = channel.is_local(),
       .wants_mapping = hello.wants_mapping,
       .peer = channel.peer(),
       .claimed_pid = hello.pid,
       .process_descriptor = channel.is_local() ? channel.take_descriptor() : -1,
       .name = client_name(hello)});
}

}  // namespace

Handled handle_hello(Call& call) {
  wire::Hello hello;
  if (!wire::decode(call.frame, hello)) return Handled::kMalformed;
  wire::HelloReply reply;
  reply.version = wire::kProtocolVersion;
  reply.features = hello.features & kFeatures;
  reply.boot = call.core.options.boot;
  NodeMetrics& metrics = *call.core.parts.metrics;
  const bool has_version =
      hello.version_min <= wire::kProtocolVersion && wire::kProtocolVersion <= hello.version_max;
  if (!has_version) {
    add(metrics.hello_rejected_version);
    reply.context.status = BlockStatus::kInvalid;
    reply.message = version_message(hello);
    return refuse_hello(call, std::move(reply));
  }
  if (call.core.is_stopping.load(std::memory_order_relaxed)) {
    add(metrics.hello_rejected_other);
    reply.context.status = BlockStatus::kDeclined;
    reply.message = "this daemon is stopping";
    return refuse_hello(call, std::move(reply));
  }
  auto opened = open_session(call, hello);
  if (!opened) {
    add(metrics.hello_rejected_other);
    reply.context.status = BlockStatus::kQuota;
    reply.message = "this daemon has as many sessions as it may have";
    return refuse_hello(call, std::move(reply));
  }
  const Session::Traits& traits = opened->session->traits();
  call.connection.join_session(opened->session);
  reply.session = traits.id;
  reply.secret = traits.secret;
  reply.pool_bytes = call.core.keeper.ready_bytes().value();
  reply.is_mapping_allowed = traits.is_mapping;
  reply.allow_weak_keys = call.core.options.allow_weak_keys;
  call.count(BlockStatus::kOk);
  wire::encode(reply, call.id(), call.scratch.writer);
  const int lock = opened->lock.get();
  const std::span<const int> fds(&lock, lock >= 0 ? 1 : 0);
  if (!call.connection.send(call.scratch.writer.finish(), fds)) return Handled::kClose;
  call.connection.tell_slabs();
  return Handled::kAnswered;
}

Handled handle_join(Call& call) {
  wire::Join join;
  if (!wire::decode(call.frame, join)) return Handled::kMalformed;
  const transport::Channel& channel = call.connection.channel();
  const auto joined = call.core.registry.join(join, call.connection.place(), channel.is_local());
  wire::JoinReply reply;
  if (joined) {
    call.connection.join_session(*joined);
    call.count(BlockStatus::kOk);
    return call.answer(reply);
  }
  const bool is_full = joined.error().code == ErrorCode::kNoSpace;
  reply.context.status = is_full ? BlockStatus::kQuota : BlockStatus::kForbidden;
  call.count(reply.context, 1);
  add(call.core.parts.metrics->hello_rejected_other);
  log_event(LogLevel::kWarning,
            "connection_refused",
            {{"peer", channel.peer().name},
             {"session", hex_id(join.session)},
             {"why", is_full ? "too many sockets" : "no such session or another secret"}});
  call.answer(reply);
  return Handled::kClose;
}

Handled handle_resume(Call& call) {
  wire::Resume& request = call.scratch.resume;
  if (!wire::decode(call.frame, request)) return Handled::kMalformed;
  wire::ResumeReply& reply = call.scratch.resume_reply;
  reply.context = {};
  reply.kept.assign(request.held.size(), 0);
  const Status resumed = call.core.registry.resume(call.session(), request, reply.kept);
  if (!resumed) {
    reply.context.status = BlockStatus::kForbidden;
    reply.kept.clear();
  }
  call.count(reply.context, 1);
  return call.answer(reply);
}

Handled handle_ping(Call& call) {
  wire::Ping ping;
  if (!wire::decode(call.frame, ping)) return Handled::kMalformed;
  call.count(BlockStatus::kOk);
  return call.answer(wire::Pong{});
}

Handled handle_pong(Call& call) {
  wire::Pong pong;
  return wire::decode(call.frame, pong) ? Handled::kAnswered : Handled::kMalformed;
}

}  // namespace cairn::server
