#include "client/requests.h"

#include "base/checksum.h"
#include "client/get_flow.h"
#include "client/keys_flow.h"
#include "client/lookup_flow.h"
#include "client/object_flow.h"
#include "client/put_flow.h"
#include "client/put_inline_flow.h"
#include "client/reserve_flow.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace cairn::client {
namespace {

// Durations on the wire are 32-bit milliseconds.
constexpr Milliseconds kDurationMax(std::numeric_limits<std::uint32_t>::max());

Error invalid(const char* what) {
  return {ErrorCode::kInvalid, 0, what};
}

bool is_duration(Milliseconds duration) noexcept {
  return duration >= Milliseconds(0) && duration <= kDurationMax;
}

// The digests of a request have one length and are not empty.
Status check_digests(std::span<const BlockDigest> digests) {
  if (digests.empty()) return {};
  const std::size_t size = digests.front().size();
  const bool is_even = std::ranges::all_of(
      digests, [size](const BlockDigest& digest) { return digest.size() == size; });
  if (size == 0 || !is_even) return invalid("digests of one length");
  return {};
}

Status check_placement(const PutPlacement& placement, std::span<const BlockDigest> digests) {
  if (!is_duration(placement.retain)) return invalid("retain");
  for (const auto& named : {placement.parent, placement.branch}) {
    if (named && named->size() == 0) return invalid("parent or branch");
  }
  if (digests.size() > std::numeric_limits<std::uint32_t>::max() - placement.position) {
    return invalid("position");
  }
  return {};
}

}  // namespace

Result<Ticket> submit(QueueCore& core, const LookupRequest& request, Deadline deadline) {
  CAIRN_TRY_STATUS(core.admit(request.call, request.digests.size()));
  CAIRN_TRY_STATUS(check_digests(request.digests));
  const bool has_tiers = request.tiers.size() == request.digests.size();
  if (!has_tiers && !(request.is_run && request.tiers.empty())) return invalid("tiers");
  if (request.gang.size() > wire::kGangMax) return invalid("gang");
  if (!is_duration(request.hold)) return invalid("hold");
  if (request.digests.size() > core.connection().limits().lookup_keys) {
    return Error{ErrorCode::kTooLarge, 0, "keys of a lookup"};
  }
  auto& flow = core.make<LookupFlow>();
  flow.start(request);
  return core.accept(flow, deadline);
}

Result<Ticket> submit(QueueCore& core, const GetRequest& request, Deadline deadline) {
  CAIRN_TRY_STATUS(core.admit(request.call, request.digests.size()));
  CAIRN_TRY_STATUS(check_digests(request.digests));
  if (request.targets.size() != request.digests.size()) return invalid("targets");
  if (request.results.size() != request.digests.size()) return invalid("results");
  const Verify verify = request.verify.value_or(core.session().options().verify);
  const bool may_hold_objects = std::ranges::any_of(
      request.targets, [](const auto& target) { return target.size() >= kPartBytes.value(); });
  if (may_hold_objects) {
    auto& flow = core.make<ObjectGetFlow>();
    flow.start(request, verify);
    return core.accept(flow, deadline);
  }
  auto& flow = core.make<GetFlow>();
  flow.start(request.name_space,
             request.call,
             {.digests = request.digests,
              .targets = request.targets,
              .views = {},
              .results = request.results,
              .objects = {},
              .is_chain = request.is_chain,
              .verify = verify});
  return core.accept(flow, deadline);
}

Result<Ticket> submit(QueueCore& core, const GetViewsRequest& request, Deadline deadline) {
  CAIRN_TRY_STATUS(core.admit(request.call, request.digests.size()));
  CAIRN_TRY_STATUS(check_digests(request.digests));
  if (request.views.size() != request.digests.size()) return invalid("views");
  if (request.results.size() != request.digests.size()) return invalid("results");
  auto& flow = core.make<GetFlow>();
  flow.start(request.name_space,
             request.call,
             {.digests = request.digests,
              .targets = {},
              .views = request.views,
              .results = request.results,
              .objects = {},
              .is_chain = request.is_chain,
              .verify = request.verify.value_or(core.session().options().verify)});
  return core.accept(flow, deadline);
}

Result<Ticket> submit(QueueCore& core, const PutRequest& request, Deadline deadline) {
  CAIRN_TRY_STATUS(core.admit(request.call, request.digests.size()));
  CAIRN_TRY_STATUS(check_digests(request.digests));
  CAIRN_TRY_STATUS(check_placement(request.placement, request.digests));
  if (request.sources.size() != request.digests.size()) return invalid("sources");
  if (request.results.size() != request.digests.size()) return invalid("results");
  std::uint64_t longest = 0;
  for (const auto& source : request.sources)
    longest = std::max(longest, source.size());
  if (longest > kPartBytes.value() * kPartsMax) return Error{ErrorCode::kTooLarge, 0, "source"};
  if (longest > kPartBytes.value()) {
    auto& flow = core.make<ObjectPutFlow>();
    flow.start(request);
    return core.accept(flow, deadline);
  }
  const PutPlan plan{.digests = request.digests,
                     .sources = request.sources,
                     .attributes = {},
                     .must_exist = nullptr,
                     .results = request.results,
                     .placement = request.placement};
  if (core.is_mapped()) {
    auto& flow = core.make<PutFlow>();
    flow.start(request.name_space, request.call, plan);
    return core.accept(flow, deadline);
  }
  auto& flow = core.make<PutInlineFlow>();
  flow.start(request.name_space, request.call, plan);
  return core.accept(flow, deadline);
}

Result<Ticket> submit(QueueCore& core, const ReserveRequest& request, Deadline deadline) {
  CAIRN_TRY_STATUS(core.admit(request.call, request.digests.size()));
  CAIRN_TRY_STATUS(check_digests(request.digests));
  CAIRN_TRY_STATUS(check_placement(request.placement, request.digests));
  if (request.lengths.size() != request.digests.size()) return invalid("lengths");
  if (request.reservations.size() != request.digests.size()) return invalid("reservations");
  if (request.results.size() != request.digests.size()) return invalid("results");
  auto& flow = core.make<ReserveFlow>();
  flow.start(request);
  return core.accept(flow, deadline);
}

Result<Ticket> submit(QueueCore& core, const CommitRequest& request, Deadline deadline) {
  CAIRN_TRY_STATUS(core.admit(request.call, request.reservations.size()));
  if (request.results.size() != request.reservations.size()) return invalid("results");
  std::uint64_t chunks = 0;
  for (const BlockReservation& reservation : request.reservations) {
    if (reservation.length > kBlockBytesMax.value()) return invalid("reservation");
    chunks += chunk_count(reservation.length);
  }
  if (!request.checksums.empty() && request.checksums.size() != chunks) return invalid("checksums");
  auto& flow = core.make<CommitFlow>();
  flow.start(request);
  return core.accept(flow, deadline);
}

Result<Ticket> submit(QueueCore& core, const KeysCall& call, Deadline deadline) {
  CAIRN_TRY_STATUS(core.admit(call.request.call, call.request.digests.size()));
  CAIRN_TRY_STATUS(check_digests(call.request.digests));
  if (call.request.results.size() != call.request.digests.size()) return invalid("results");
  if (!is_duration(call.duration)) return invalid("duration");
  auto& flow = core.make<KeysFlow>();
  flow.start(call.request, call.type, call.duration);
  return core.accept(flow, deadline);
}

Result<Ticket> submit(QueueCore& core, QuestionCall call, Deadline deadline) {
  CAIRN_TRY_STATUS(core.admit(call.call, 1));
  auto& flow = core.make<QuestionFlow>();
  flow.start(call.name_space, call.call, std::move(call.question), call.target);
  return core.accept(flow, deadline);
}

}  // namespace cairn::client
