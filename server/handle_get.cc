// get: blocks lent in place, or their payloads inline.
#include "base/checksum.h"
#include "server/handlers.h"

#include <memory>
#include <utility>

namespace cairn::server {
namespace {

wire::Grant refused(BlockStatus status, BusyReason reason = BusyReason::kNone) {
  wire::Grant grant;
  grant.status = status;
  grant.reason = reason;
  return grant;
}

void append_extents(const NodeCore& core,
                    const storage::ExtentList& extents,
                    wire::Grant& grant,
                    std::vector<wire::WireExtent>& out) {
  std::array<storage::SlabExtent, kExtentsMax> places;
  core.parts.dram->slab_extents(extents, places);
  grant.extent_first = static_cast<std::uint32_t>(out.size());
  grant.extent_count = static_cast<std::uint8_t>(extents.size());
  for (std::size_t i = 0; i < extents.size(); ++i) {
    out.push_back({.slab = places[i].slab,
                   .generation = places[i].generation,
                   .offset = places[i].offset,
                   .bytes = places[i].bytes});
  }
}

// Reads what a grant says of a pinned block. False: the block is corrupt, and dropped.
bool describe(Call& call, const storage::PinnedBlock& block, wire::Grant& grant) {
  wire::GetReply& reply = call.scratch.get_reply;
  const std::uint32_t chunks = chunk_count(block.length);
  const std::size_t checksum_first = reply.checksums.size();
  reply.checksums.resize(checksum_first + chunks);
  const Status read =
      call.core.parts.store->checksums(block, std::span(reply.checksums).subspan(checksum_first));
  const std::size_t attribute_first = reply.attributes.size();
  std::size_t attribute_bytes = 0;
  bool is_right = read.has_value();
  if (is_right && call.scratch.get.wants_attributes) {
    reply.attributes.resize(attribute_first + wire::kAttributeBytesMax);
    const auto got = call.core.parts.store->attributes(
        block, std::span(reply.attributes).subspan(attribute_first));
    is_right = got.has_value();
    attribute_bytes = is_right ? *got : 0;
    reply.attributes.resize(attribute_first + attribute_bytes);
  }
  if (!is_right) {
    reply.checksums.resize(checksum_first);
    return false;
  }
  grant.status = BlockStatus::kOk;
  grant.length = block.length;
  grant.checksum_first = static_cast<std::uint32_t>(checksum_first);
  grant.checksum_count = static_cast<std::uint8_t>(chunks);
  grant.attribute_first = static_cast<std::uint32_t>(attribute_first);
  grant.attribute_bytes = static_cast<std::uint32_t>(attribute_bytes);
  return true;
}

// Pins one block and takes it into the account; `lend` then holds it.
wire::Grant grant_block(Call& call,
                        const storage::Scope& scope,
                        const BlockDigest& digest,
                        Lend& lend) {
  storage::Store& store = *call.core.parts.store;
  const auto block = store.pin(scope, digest);
  if (!block) return refused(BlockStatus::kMiss);
  const ByteCount bytes = call.core.frame_bytes(block->extents);
  if (!call.core.try_lend(call.session().account(), bytes)) {
    store.unpin(block->ref);
    return refused(BlockStatus::kBusy, BusyReason::kLentLimit);
  }
  wire::Grant grant;
  if (!describe(call, *block, grant)) {
    call.core.unlend(call.session().account(), bytes);
    store.unpin(block->ref);
    return refused(BlockStatus::kMiss);
  }
  lend = {.id = 0,
          .block = *block,
          .slot = scope.slot,
          .frame = static_cast<std::uint32_t>(bytes.value()),
          .kind = LendKind::kRead};
  return grant;
}

// Fills scratch.lends with what is granted, and the reply's grants. `room` bounds the lends.
void grant_blocks(Call& call, const storage::Scope& scope, std::size_t room) {
  const wire::Get& request = call.scratch.get;
  wire::GetReply& reply = call.scratch.get_reply;
  std::vector<Lend>& lends = call.scratch.lends;
  lends.clear();
  bool is_cut = false;
  for (const BlockDigest& digest : request.digests) {
    wire::Grant grant;
    Lend lend;
    if (is_cut) {
      grant = refused(BlockStatus::kCut);
    } else if (lends.size() == room) {
      grant = refused(BlockStatus::kBusy, BusyReason::kLentLimit);
    } else {
      grant = grant_block(call, scope, digest, lend);
    }
    if (grant.status == BlockStatus::kOk) {
      lends.push_back(lend);
    } else {
      is_cut = is_cut || request.is_chain;
    }
    reply.grants.push_back(grant);
  }
}

void touch(Call& call) {
  call.scratch.refs.clear();
  for (const Lend& lend : call.scratch.lends)
    call.scratch.refs.push_back(lend.block.ref);
  if (!call.scratch.refs.empty()) call.core.parts.store->touch_root_first(call.scratch.refs);
}

void count(Call& call) {
  NodeMetrics& metrics = *call.core.parts.metrics;
  const wire::GetReply& reply = call.scratch.get_reply;
  std::uint64_t bytes = 0;
  for (const wire::Grant& grant : reply.grants) {
    call.count(grant.status, grant.reason);
    bytes += grant.length;
  }
  add(metrics.get_blocks_asked, reply.grants.size());
  add(metrics.get_blocks_usable, call.scratch.lends.size());
  add(metrics.get_bytes, bytes);
}

void refuse_all(Call& call, BlockStatus status) {
  const wire::Get& request = call.scratch.get;
  const BlockStatus rest = request.is_chain ? BlockStatus::kCut : status;
  for (std::size_t i = 0; i < request.digests.size(); ++i)
    call.scratch.get_reply.grants.push_back(refused(i == 0 ? status : rest));
}

// The blocks stay lent until the client lets go of them.
Handled lend_blocks(Call& call, const storage::Scope& scope) {
  Session& session = call.session();
  wire::GetReply& reply = call.scratch.get_reply;
  std::vector<Lend>& lends = call.scratch.lends;
  const std::size_t room = session.claim_lends(call.scratch.get.digests.size());
  grant_blocks(call, scope, room);
  session.give_back_claims(room - lends.size());
  LendId next = call.core.lend_ids.take(lends.size());
  auto lend = lends.begin();
  for (wire::Grant& grant : reply.grants) {
    if (grant.status != BlockStatus::kOk) continue;
    lend->id = next++;
    grant.lend = lend->id;
    append_extents(call.core, lend->block.extents, grant, reply.extents);
    ++lend;
  }
  touch(call);
  if (!session.add_lends(lends)) {
    call.core.end_lends(lends, session.account());
    return Handled::kClose;
  }
  count(call);
  return call.answer(reply);
}

// The blocks stay pinned until their last byte is queued.
Handled send_blocks(Call& call, const storage::Scope& scope) {
  const wire::Get& request = call.scratch.get;
  grant_blocks(call, scope, request.digests.size());
  touch(call);
  count(call);
  std::vector<InlineGet::Item> items;
  items.reserve(call.scratch.lends.size());
  auto lend = call.scratch.lends.begin();
  for (std::size_t i = 0; i < request.digests.size(); ++i) {
    if (call.scratch.get_reply.grants[i].status != BlockStatus::kOk) continue;
    items.push_back({.item = static_cast<std::uint32_t>(i), .block = lend->block});
    ++lend;
  }
  const Deadline deadline(call.now + Milliseconds(request.context.remaining_ms));
  auto get = std::make_unique<InlineGet>(
      call.core, call.session().account(), InlineGet::Start{call.id(), deadline}, std::move(items));
  if (!get->is_done()) call.connection.start(std::move(get));
  return call.answer(call.scratch.get_reply);
}

}  // namespace

Handled handle_get(Call& call) {
  wire::Get& request = call.scratch.get;
  Admission admission = decode_and_admit(call, request);
  if (admission.is_malformed) return Handled::kMalformed;
  const bool is_lend = request.mode == wire::GetMode::kLend;
  if (admission.is_ok() && is_lend && !call.session().traits().is_mapping)
    admission.context.status = BlockStatus::kForbidden;
  wire::GetReply& reply = call.scratch.get_reply;
  reply.context = admission.context;
  reply.grants.clear();
  reply.extents.clear();
  reply.checksums.clear();
  reply.attributes.clear();
  if (!admission.is_ok()) {
    call.count(reply.context, 1);
    return call.answer(reply);
  }
  if (!call.core.is_serving()) {
    call.scratch.lends.clear();
    refuse_all(call, BlockStatus::kMiss);
    count(call);
    return call.answer(reply);
  }
  return is_lend ? lend_blocks(call, admission.scope) : send_blocks(call, admission.scope);
}

}  // namespace cairn::server
