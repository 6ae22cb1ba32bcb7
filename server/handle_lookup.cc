// lookup: run, set, gang and hold.
#include "server/handlers.h"

#include <algorithm>
#include <limits>

namespace cairn::server {
namespace {

// What one core copies out of DRAM, checksums included, and what a round trip costs: for the
// estimate of the time to load.
constexpr std::uint64_t kDramBytesPerUs = 8'000;
constexpr std::uint64_t kRoundTripUs = 10;
// A hold is short; a longer wish is a retain's.
constexpr Milliseconds kHoldMax = Milliseconds(60'000);

using Hits = std::vector<storage::LookupHit>;

bool is_here(const storage::LookupHit& hit) {
  return hit.tier != storage::TierKind::kNone;
}

// All scopes of the request, its own first. kOk or why it is refused.
BlockStatus resolve_gang(Call& call, const wire::Lookup& request, const storage::Scope& own) {
  std::vector<storage::Scope>& scopes = call.scratch.scopes;
  scopes.assign(1, own);
  for (const wire::NamespaceRef& name : request.gang) {
    storage::Scope scope;
    const BlockStatus status = resolve(call, name, scope);
    if (status != BlockStatus::kOk) return status;
    scopes.push_back(scope);
  }
  return BlockStatus::kOk;
}

// A key is where its farthest member is, and absent if one member lacks it.
void intersect(Hits& hits, const Hits& member) {
  for (std::size_t i = 0; i < hits.size(); ++i) {
    if (!is_here(hits[i]) || !is_here(member[i])) {
      hits[i] = {};
      continue;
    }
    hits[i].tier = std::max(hits[i].tier, member[i].tier);
    hits[i].length += member[i].length;
  }
}

void look_up_set(Call& call, std::span<const BlockDigest> digests) {
  const storage::Store& store = *call.core.parts.store;
  Hits& hits = call.scratch.hits;
  hits.assign(digests.size(), {});
  store.lookup(call.scratch.scopes.front(), digests, hits);
  for (const storage::Scope& scope : std::span(call.scratch.scopes).subspan(1)) {
    call.scratch.gang_hits.assign(digests.size(), {});
    store.lookup(scope, digests, call.scratch.gang_hits);
    intersect(hits, call.scratch.gang_hits);
  }
}

void look_up_run(Call& call, std::span<const BlockDigest> digests) {
  const storage::Store& store = *call.core.parts.store;
  Hits& hits = call.scratch.hits;
  hits.resize(digests.size());
  std::size_t run = store.lookup_run(call.scratch.scopes.front(), digests, hits);
  hits.resize(run);
  for (const storage::Scope& scope : std::span(call.scratch.scopes).subspan(1)) {
    call.scratch.gang_hits.resize(run);
    run = store.lookup_run(scope, digests.first(run), call.scratch.gang_hits);
    call.scratch.gang_hits.resize(run);
    hits.resize(run);
    intersect(hits, call.scratch.gang_hits);
  }
}

// Within the budget of retention; what does not fit is simply not held.
void hold(Call& call, const wire::Lookup& request) {
  if (request.hold_ms == 0) return;
  const Milliseconds duration = std::min(Milliseconds(request.hold_ms), kHoldMax);
  for (std::size_t i = 0; i < call.scratch.hits.size(); ++i) {
    if (!is_here(call.scratch.hits[i])) continue;
    for (const storage::Scope& scope : call.scratch.scopes)
      call.core.parts.store->retain(scope, request.digests[i], duration);
  }
}

void describe(const Hits& hits, wire::LookupReply& reply) {
  std::uint64_t bytes = 0;
  bool is_run = true;
  for (const storage::LookupHit& hit : hits) {
    is_run = is_run && is_here(hit);
    if (is_run) ++reply.run;
    bytes += hit.length;
    reply.tiers.push_back(static_cast<std::uint8_t>(hit.tier));
  }
  if (bytes == 0) return;
  const std::uint64_t load_us = kRoundTripUs + bytes / kDramBytesPerUs;
  reply.load_us = static_cast<std::uint32_t>(
      std::min<std::uint64_t>(load_us, std::numeric_limits<std::uint32_t>::max()));
}

void answer_absent(const wire::Lookup& request, Hits& hits) {
  hits.assign(request.kind == wire::LookupKind::kSet ? request.digests.size() : 0, {});
}

}  // namespace

Handled handle_lookup(Call& call) {
  wire::Lookup& request = call.scratch.lookup;
  Admission admission = decode_and_admit(call, request);
  if (admission.is_malformed) return Handled::kMalformed;
  if (admission.is_ok()) admission.context.status = resolve_gang(call, request, admission.scope);
  wire::LookupReply& reply = call.scratch.lookup_reply;
  reply.context = admission.context;
  reply.run = 0;
  reply.load_us = 0;
  reply.tiers.clear();
  if (!admission.is_ok()) {
    call.count(reply.context, 1);
    return call.answer(reply);
  }
  Hits& hits = call.scratch.hits;
  if (!call.core.is_serving()) {
    answer_absent(request, hits);
  } else if (request.kind == wire::LookupKind::kRun) {
    look_up_run(call, request.digests);
    hold(call, request);
  } else {
    look_up_set(call, request.digests);
    hold(call, request);
  }
  describe(hits, reply);
  const auto found = static_cast<std::size_t>(std::count_if(hits.begin(), hits.end(), is_here));
  call.count(BlockStatus::kOk, found);
  call.count(BlockStatus::kMiss, request.digests.size() - found);
  NodeMetrics& metrics = *call.core.parts.metrics;
  add(metrics.lookup_blocks_asked, request.digests.size());
  add(metrics.lookup_blocks_usable, request.kind == wire::LookupKind::kRun ? reply.run : found);
  return call.answer(reply);
}

}  // namespace cairn::server
