// reserve, commit, abort, release: frames that the client fills through its mapping.
#include "server/handlers.h"
#include "server/reserve_batch.h"

#include <algorithm>
#include <utility>

namespace cairn::server {
namespace {

// Ids of one commit that are looked for in other sessions; beyond them unknown is kCancelled.
constexpr std::size_t kForeignChecksMax = 64;
// Frames that one release may have checked because its reader found them corrupt.
constexpr std::size_t kVerifiesPerRelease = 64;

void clear(wire::ReserveReply& reply, const wire::ReplyContext& context) {
  reply.context = context;
  reply.branch.reset();
  reply.grants.clear();
  reply.extents.clear();
}

void append_grant(Call& call, const storage::ReserveOutcome& outcome, wire::ReserveReply& reply) {
  wire::Grant grant;
  grant.status = outcome.status;
  grant.reason = outcome.reason;
  std::array<storage::SlabExtent, kExtentsMax> places;
  if (outcome.status == BlockStatus::kOk) {
    call.core.parts.dram->slab_extents(outcome.extents, places);
    grant.extent_first = static_cast<std::uint32_t>(reply.extents.size());
    grant.extent_count = static_cast<std::uint8_t>(outcome.extents.size());
    for (std::size_t i = 0; i < outcome.extents.size(); ++i) {
      reply.extents.push_back({.slab = places[i].slab,
                               .generation = places[i].generation,
                               .offset = places[i].offset,
                               .bytes = places[i].bytes});
    }
  }
  reply.grants.push_back(grant);
}

// False: the session has ended, and everything was given back.
bool lend_reserved(Call& call,
                   const storage::Scope& scope,
                   std::span<const std::uint32_t> lengths,
                   wire::ReserveReply& reply) {
  std::vector<Lend>& lends = call.scratch.lends;
  lends.clear();
  const std::vector<storage::ReserveOutcome>& outcomes = call.scratch.reserve_outcomes;
  for (std::size_t i = 0; i < outcomes.size(); ++i) {
    append_grant(call, outcomes[i], reply);
    call.count(outcomes[i].status, outcomes[i].reason);
    if (outcomes[i].status != BlockStatus::kOk) continue;
    const LendId id = call.core.lend_ids.take(1);
    const ByteCount bytes = call.core.frame_bytes(outcomes[i].extents);
    reply.grants.back().lend = id;
    reply.grants.back().length = lengths[i];
    lends.push_back(
        {.id = id,
         .block = {.ref = outcomes[i].ref, .extents = outcomes[i].extents, .length = lengths[i]},
         .slot = scope.slot,
         .frame = static_cast<std::uint32_t>(bytes.value()),
         .kind = LendKind::kWrite});
  }
  if (call.session().add_lends(lends)) return true;
  call.core.end_lends(lends, call.session().account());
  return false;
}

void decline_all(Call& call, std::size_t keys, wire::ReserveReply& reply) {
  wire::Grant grant;
  grant.status = BlockStatus::kDeclined;
  reply.grants.assign(keys, grant);
  call.count(BlockStatus::kDeclined, keys);
}

struct NewBlocks {
  const wire::Placement& placement;
  const std::vector<BlockDigest>& digests;
  const std::vector<std::uint32_t>& lengths;
};

// Answers a reservation into `reply`. False: the session has ended.
bool reserve_into(Call& call,
                  const storage::Scope& scope,
                  const NewBlocks& blocks,
                  wire::ReserveReply& reply) {
  clear(reply, {});
  reply.context.status = check_digests(call.core, blocks.digests);
  if (!call.session().traits().is_mapping) reply.context.status = BlockStatus::kForbidden;
  if (reply.context.status != BlockStatus::kOk) {
    call.count(reply.context, blocks.digests.size());
    return true;
  }
  if (!call.core.is_serving()) {
    decline_all(call, blocks.digests.size(), reply);
    return true;
  }
  const std::size_t room = call.session().claim_lends(blocks.digests.size());
  reply.branch = reserve_batch(call,
                               {.scope = scope,
                                .placement = blocks.placement,
                                .digests = blocks.digests,
                                .lengths = blocks.lengths,
                                .room = room});
  const auto& outcomes = call.scratch.reserve_outcomes;
  const auto used = std::count_if(outcomes.begin(), outcomes.end(), [](const auto& outcome) {
    return outcome.status == BlockStatus::kOk;
  });
  call.session().give_back_claims(room - static_cast<std::size_t>(used));
  return lend_reserved(call, scope, blocks.lengths, reply);
}

// ---- commit ----

// What a lend that is no reservation of this session answers.
BlockStatus status_of_stranger(Call& call, const Lend& found, LendId id, std::size_t& checks) {
  if (found.id != 0) return BlockStatus::kInvalid;  // lent for reading
  if (checks >= kForeignChecksMax) return BlockStatus::kCancelled;
  ++checks;
  const bool is_anothers = call.core.registry.is_lent_elsewhere(call.session(), id);
  return is_anothers ? BlockStatus::kInvalid : BlockStatus::kCancelled;
}

// The session's reservations that the commit names, in scratch.lends (id 0 or kRead: not one).
void take_reservations(Call& call) {
  std::vector<LendId>& ids = call.scratch.lend_ids;
  ids.clear();
  for (const wire::CommitEntry& entry : call.scratch.commit.entries)
    ids.push_back(entry.lend);
  call.scratch.lends.assign(ids.size(), Lend{});
  call.session().take_lends(ids, LendKind::kWrite, call.scratch.lends);
}

bool is_reservation(const Lend& lend) {
  return lend.id != 0 && lend.kind == LendKind::kWrite;
}

// A commit ends its reservations whatever it answers.
void give_back_reservations(Call& call) {
  take_reservations(call);
  std::erase_if(call.scratch.lends, [](const Lend& lend) { return !is_reservation(lend); });
  call.core.end_lends(call.scratch.lends, call.session().account());
}

storage::CommitItem commit_item(const wire::Commit& request,
                                const wire::CommitEntry& entry,
                                const Lend& lend) {
  return {
      .ref = lend.block.ref,
      .checksums = std::span(request.checksums).subspan(entry.checksum_first, entry.checksum_count),
      .attributes =
          std::span(request.attributes).subspan(entry.attribute_first, entry.attribute_bytes)};
}

void publish(Call& call, const storage::Scope& scope, std::vector<BlockStatus>& statuses) {
  Scratch& scratch = call.scratch;
  scratch.commit_statuses.assign(scratch.commit_items.size(), BlockStatus::kInvalid);
  call.core.parts.store->commit(scope, scratch.commit_items, scratch.commit_statuses);
  ByteCount bytes;
  std::uint64_t put_bytes = 0;
  for (std::size_t i = 0; i < scratch.commit_places.size(); ++i) {
    const std::size_t place = scratch.commit_places[i];
    statuses[place] = scratch.commit_statuses[i];
    bytes += scratch.lends[place].bytes();
    if (statuses[place] == BlockStatus::kOk) put_bytes += scratch.lends[place].block.length;
  }
  call.core.unlend(call.session().account(), bytes);
  add(call.core.parts.metrics->put_bytes, put_bytes);
}

void commit(Call& call, const storage::Scope& scope, std::vector<BlockStatus>& statuses) {
  Scratch& scratch = call.scratch;
  const wire::Commit& request = scratch.commit;
  take_reservations(call);
  statuses.assign(request.entries.size(), BlockStatus::kInvalid);
  scratch.commit_items.clear();
  scratch.commit_places.clear();
  std::size_t checks = 0;
  for (std::size_t i = 0; i < request.entries.size(); ++i) {
    const Lend& lend = scratch.lends[i];
    if (!is_reservation(lend)) {
      statuses[i] = status_of_stranger(call, lend, request.entries[i].lend, checks);
      continue;
    }
    const bool is_declined = !call.core.is_serving();
    if (is_declined || lend.slot != scope.slot) {
      statuses[i] = is_declined ? BlockStatus::kDeclined : BlockStatus::kInvalid;
      call.core.end_lends(std::span(&lend, 1), call.session().account());
      continue;
    }
    scratch.commit_items.push_back(commit_item(request, request.entries[i], lend));
    scratch.commit_places.push_back(i);
  }
  publish(call, scope, statuses);
}

// ---- giving back ----

// A reader's word that a frame is corrupt is checked before the pin goes, so that a wrong block is
// not handed out again.
void check_reported(Call& call) {
  const std::vector<wire::ReleaseEntry>& entries = call.scratch.release.entries;
  NodeMetrics& metrics = *call.core.parts.metrics;
  std::size_t verified = 0;
  for (std::size_t i = 0; i < entries.size(); ++i) {
    const Lend& lend = call.scratch.lends[i];
    if (!entries[i].found_corrupt || lend.id == 0 || lend.kind != LendKind::kRead) continue;
    add(metrics.reports_corrupt);
    if (++verified > kVerifiesPerRelease) continue;
    if (!call.core.parts.store->verify(lend.block)) add(metrics.blocks_corrupt);
  }
}

void end_taken(Call& call) {
  std::vector<Lend>& lends = call.scratch.lends;
  const std::size_t named = lends.size();
  std::erase_if(lends, [](const Lend& lend) { return lend.id == 0; });
  add(call.core.parts.metrics->releases_unknown, named - lends.size());
  call.count(BlockStatus::kOk, lends.size());
  call.count(BlockStatus::kMiss, named - lends.size());
  call.core.end_lends(lends, call.session().account());
}

}  // namespace

Handled handle_reserve(Call& call) {
  wire::Reserve& request = call.scratch.reserve;
  const Admission admission = decode_and_admit(call, request);
  if (admission.is_malformed) return Handled::kMalformed;
  wire::ReserveReply& reply = call.scratch.reserve_reply;
  if (!admission.is_ok()) {
    clear(reply, admission.context);
    call.count(reply.context, 1);
    return call.answer(reply);
  }
  const NewBlocks blocks{request.placement, request.digests, request.lengths};
  if (!reserve_into(call, admission.scope, blocks, reply)) return Handled::kClose;
  return call.answer(reply);
}

Handled handle_commit(Call& call) {
  wire::Commit& request = call.scratch.commit;
  wire::CommitReply& reply = call.scratch.commit_reply;
  reply.statuses.clear();
  const Status decoded = wire::decode(call.frame, request);
  const Admission admission =
      decoded ? admit(call, request.context) : refuse_undecoded(decoded.error());
  if (admission.is_malformed) return Handled::kMalformed;
  reply.context = admission.context;
  if (!admission.is_ok()) {
    if (decoded) give_back_reservations(call);
    reply.next.reset();
    call.count(reply.context, 1);
    return call.answer(reply);
  }
  commit(call, admission.scope, reply.statuses);
  for (const BlockStatus status : reply.statuses)
    call.count(status);
  if (!request.next_placement) {
    reply.next.reset();
    return call.answer(reply);
  }
  if (!reply.next) reply.next.emplace();
  const NewBlocks blocks{*request.next_placement, request.next_digests, request.next_lengths};
  if (!reserve_into(call, admission.scope, blocks, *reply.next)) return Handled::kClose;
  return call.answer(reply);
}

Handled handle_abort(Call& call) {
  wire::Abort& request = call.scratch.abort;
  if (!wire::decode(call.frame, request)) return Handled::kMalformed;
  call.scratch.lends.assign(request.lends.size(), Lend{});
  call.session().take_lends(request.lends, std::nullopt, call.scratch.lends);
  end_taken(call);
  return Handled::kAnswered;
}

Handled handle_release(Call& call) {
  wire::Release& request = call.scratch.release;
  if (!wire::decode(call.frame, request)) return Handled::kMalformed;
  call.scratch.lend_ids.clear();
  for (const wire::ReleaseEntry& entry : request.entries)
    call.scratch.lend_ids.push_back(entry.lend);
  call.scratch.lends.assign(request.entries.size(), Lend{});
  call.session().take_lends(call.scratch.lend_ids, std::nullopt, call.scratch.lends);
  check_reported(call);
  end_taken(call);
  return Handled::kAnswered;
}

}  // namespace cairn::server
