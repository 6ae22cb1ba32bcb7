#include "base/check.h"
#include "server/handlers.h"

#include <algorithm>
#include <optional>

namespace cairn::server {
namespace {

struct Route {
  Handler handler = nullptr;
  std::optional<Operation> operation;  // nullopt: not counted
};

// By request number; kPong stands behind the requests.
constexpr std::size_t kRoutesMax = 28;

using Routes = std::array<Route, kRoutesMax>;

constexpr Routes make_routes() {
  Routes routes{};
  const auto set =
      [&routes](wire::MessageType type, Handler handler, std::optional<Operation> operation) {
        routes[static_cast<std::size_t>(type)] = {handler, operation};
      };
  using Type = wire::MessageType;
  set(Type::kHello, handle_hello, Operation::kHello);
  set(Type::kJoin, handle_join, Operation::kJoin);
  set(Type::kResume, handle_resume, Operation::kResume);
  set(Type::kPing, handle_ping, Operation::kPing);
  set(Type::kNamespaceOpen, handle_namespace_open, Operation::kNamespaceOpen);
  set(Type::kBind, handle_bind, Operation::kBind);
  set(Type::kPurge, handle_purge, Operation::kPurge);
  set(Type::kLookup, handle_lookup, Operation::kLookup);
  set(Type::kGet, handle_get, Operation::kGet);
  set(Type::kReserve, handle_reserve, Operation::kReserve);
  set(Type::kCommit, handle_commit, Operation::kCommit);
  set(Type::kAbort, handle_abort, std::nullopt);
  set(Type::kPutInline, handle_put_inline, Operation::kPutInline);
  set(Type::kRelease, handle_release, Operation::kRelease);
  set(Type::kCancel, handle_cancel, std::nullopt);
  set(Type::kRetain, handle_retain, Operation::kRetain);
  set(Type::kPrefetch, handle_prefetch, Operation::kPrefetch);
  set(Type::kRemove, handle_remove, Operation::kRemove);
  set(Type::kHint, handle_hint, Operation::kHint);
  set(Type::kList, handle_list, Operation::kList);
  set(Type::kUsage, handle_usage, Operation::kUsage);
  set(Type::kStat, handle_stat, Operation::kStat);
  set(Type::kStats, handle_stats, Operation::kStats);
  set(Type::kInlineData, handle_inline_data, std::nullopt);
  return routes;
}

constexpr Routes kRoutes = make_routes();
constexpr Route kPongRoute = {handle_pong, std::nullopt};

const Route* find_route(wire::MessageType type) {
  if (type == wire::MessageType::kPong) return &kPongRoute;
  const auto number = static_cast<std::size_t>(type);
  if (number >= kRoutes.size() || kRoutes[number].handler == nullptr) return nullptr;
  return &kRoutes[number];
}

bool opens_session(wire::MessageType type) {
  return type == wire::MessageType::kHello || type == wire::MessageType::kJoin;
}

void record(const Call& call, Operation operation, Nanoseconds latency) {
  NodeMetrics& metrics = *call.core.parts.metrics;
  const auto number = static_cast<std::size_t>(operation);
  add(metrics.requests[number]);
  metrics.latency[number].observe(latency);
  for (std::size_t status = 0; status < call.counts.size(); ++status) {
    if (call.counts[status] > 0) add(metrics.keys[number][status], call.counts[status]);
  }
  for (std::size_t reason = 0; reason < call.busy.size(); ++reason) {
    if (call.busy[reason] > 0) add(metrics.busy[reason], call.busy[reason]);
  }
}

}  // namespace

void Call::count(const wire::ReplyContext& context, std::size_t keys) noexcept {
  count(context.status, keys);
  if (context.status == BlockStatus::kBusy) {
    busy[static_cast<std::size_t>(context.reason)] += static_cast<std::uint32_t>(keys);
  }
}

Handled dispatch(Call& call) {
  const Route* const route = find_route(call.frame.type);
  if (route == nullptr) return Handled::kMalformed;
  const bool has_session = call.connection.session() != nullptr;
  if (has_session == opens_session(call.frame.type)) return Handled::kMalformed;
  const Handled handled = route->handler(call);
  const MonotonicTime begin = call.now;
  call.now = call.core.parts.clock->now();
  if (route->operation && handled != Handled::kMalformed)
    record(call, *route->operation, call.now - begin);
  return handled;
}

wire::ReplyContext admit_request(Call& call, const wire::RequestContext& context) {
  if (context.remaining_ms == 0) return {.status = BlockStatus::kInvalid};
  if (call.connection.unanswered() >= wire::kRequestsInFlightMax)
    return {.status = BlockStatus::kBusy, .reason = BusyReason::kWindow};
  return {};
}

BlockStatus resolve(Call& call, const wire::NamespaceRef& name, storage::Scope& scope) {
  const auto slot = call.connection.find_namespace(name.digest);
  if (!slot) {
    const auto entry = call.core.parts.namespaces->find(name.digest);
    const bool is_current = entry && entry->epoch == name.epoch;
    return is_current ? BlockStatus::kForbidden : BlockStatus::kWrongNamespace;
  }
  if (call.core.parts.store->epoch(*slot) != name.epoch) return BlockStatus::kWrongNamespace;
  scope = {.slot = *slot, .epoch = name.epoch, .digest = name.digest};
  return BlockStatus::kOk;
}

Admission admit(Call& call, const wire::RequestContext& context) {
  Admission admission;
  admission.context = admit_request(call, context);
  if (admission.context.status != BlockStatus::kOk) return admission;
  admission.context.status =
      resolve(call, {.digest = context.name_space, .epoch = context.epoch}, admission.scope);
  return admission;
}

BlockStatus check_digests(const NodeCore& core, std::span<const BlockDigest> digests) {
  const bool has_bad = std::any_of(digests.begin(), digests.end(), [&](const BlockDigest& digest) {
    return digest.size() == 0 || (digest.is_weak() && !core.options.allow_weak_keys);
  });
  return has_bad ? BlockStatus::kInvalid : BlockStatus::kOk;
}

}  // namespace cairn::server
