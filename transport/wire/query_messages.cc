#include "transport/wire/query_messages.h"

#include "transport/wire/body_codec.h"

#include <algorithm>

namespace cairn::wire {
namespace {

static_assert(sizeof(NamespaceRef) == 24);
// A full list: header, context and cursor, count, then a length and a digest each.
static_assert(kFrameHeaderBytes + 16 + kListKeysMax * (1 + kBlockDigestBytesMax) <=
              kMessageBytesMax.value());
static_assert(kFrameHeaderBytes + 64 + kGangMax * sizeof(NamespaceRef) +
                  kLookupKeysMax * kBlockDigestBytesMax <=
              kMessageBytesMax.value());

template <typename Io, Is<Lookup> M>
void layout(Io& io, M& m) {
  layout(io, m.context);
  io.choice(m.kind, LookupKind::kSet);
  io.zeros(3);
  io.number(m.hold_ms);
  const std::size_t gang = io.count(m.gang.size(), kGangMax, "lookup gang");
  const std::size_t keys = io.count(m.digests.size(), kLookupKeysMax, "lookup keys");
  io.array(m.gang, gang);
  io.digests(m.digests, keys);
}

template <typename Io, Is<LookupReply> M>
void layout(Io& io, M& m) {
  layout(io, m.context);
  io.number(m.run);
  io.require(m.run <= kLookupKeysMax, "lookup run");
  io.number(m.load_us);
  const std::size_t tiers = io.count(m.tiers.size(), kLookupKeysMax, "lookup tiers");
  io.array(m.tiers, tiers);
}

template <typename Io, Is<Stat> M>
void layout(Io& io, M& m) {
  layout(io, m.context);
  io.digest(m.digest);
}

template <typename Io, Is<List> M>
void layout(Io& io, M& m) {
  layout(io, m.context);
  io.number(m.cursor);
  io.number(m.limit);
  io.zeros(4);
}

template <typename Io, Is<ListReply> M>
void layout(Io& io, M& m) {
  constexpr std::size_t kEntryBytesMin = 2;
  layout(io, m.context);
  const std::size_t keys = io.count(m.digests.size(), kListKeysMax, "listed keys");
  io.number(m.next_cursor);
  io.resize(m.digests, keys, kEntryBytesMin);
  for (auto& digest : m.digests)
    io.digest(digest);
}

template <typename Io, typename M>
requires(Is<M, Usage> || Is<M, Stats>) void layout(Io& io, M& m) {
  layout(io, m.context);
}

template <typename Io, Is<JsonReply> M>
void layout(Io& io, M& m) {
  layout(io, m.context);
  io.string(m.json, kJsonBytesMax, "json");
}

template <typename Io, Is<Retain> M>
void layout(Io& io, M& m) {
  layout(io, m.context);
  io.number(m.duration_ms);
  const std::size_t keys = io.count(m.digests.size(), kBatchKeysMax, "retain keys");
  io.digests(m.digests, keys);
}

template <typename Io, typename M>
requires(Is<M, Prefetch> || Is<M, Remove>) void layout(Io& io, M& m) {
  layout(io, m.context);
  const std::size_t keys = io.count(m.digests.size(), kBatchKeysMax, "batch keys");
  io.digests(m.digests, keys);
}

template <typename Io, Is<Hint> M>
void layout(Io& io, M& m) {
  layout(io, m.context);
  io.choice(m.kind, HintKind::kReturnsIn);
  io.zeros(3);
  io.number(m.returns_in_ms);
  const std::size_t keys = io.count(m.digests.size(), kBatchKeysMax, "hint keys");
  io.digests(m.digests, keys);
}

template <typename Io, Is<StatusesReply> M>
void layout(Io& io, M& m) {
  layout(io, m.context);
  const std::size_t keys = io.count(m.statuses.size(), kBatchKeysMax, "statuses");
  io.array(m.statuses, keys);
  io.array_or_zeros(m.reasons, keys);
  io.require(std::ranges::all_of(m.statuses, is_known_status), "status");
  io.require(std::ranges::all_of(m.reasons, is_known_reason), "busy reason");
}

bool carries_json(MessageType type) noexcept {
  return type == MessageType::kStatReply || type == MessageType::kUsageReply ||
         type == MessageType::kStatsReply;
}

bool carries_statuses(MessageType type) noexcept {
  return type == MessageType::kPutInlineReply || type == MessageType::kRetainReply ||
         type == MessageType::kPrefetchReply || type == MessageType::kRemoveReply;
}

}  // namespace

CAIRN_WIRE_CODEC(Lookup, MessageType::kLookup);
CAIRN_WIRE_CODEC(LookupReply, MessageType::kLookupReply);
CAIRN_WIRE_CODEC(Stat, MessageType::kStat);
CAIRN_WIRE_CODEC(List, MessageType::kList);
CAIRN_WIRE_CODEC(ListReply, MessageType::kListReply);
CAIRN_WIRE_CODEC(Usage, MessageType::kUsage);
CAIRN_WIRE_CODEC(Stats, MessageType::kStats);
CAIRN_WIRE_CODEC(Retain, MessageType::kRetain);
CAIRN_WIRE_CODEC(Prefetch, MessageType::kPrefetch);
CAIRN_WIRE_CODEC(Remove, MessageType::kRemove);
CAIRN_WIRE_CODEC(Hint, MessageType::kHint);

void encode(const JsonReply& message,
            MessageType type,
            std::uint64_t request_id,
            FrameWriter& frame) {
  CAIRN_CHECK(carries_json(type));
  frame.begin(type, request_id);
  BodyEncoder io(frame);
  layout(io, message);
}

Status decode(const FrameView& frame, JsonReply& out) noexcept {
  BodyDecoder io(frame, frame.type);
  io.require(carries_json(frame.type), "message type");
  layout(io, out);
  return io.finish();
}

void encode(const StatusesReply& message,
            MessageType type,
            std::uint64_t request_id,
            FrameWriter& frame) {
  CAIRN_CHECK(carries_statuses(type));
  frame.begin(type, request_id);
  BodyEncoder io(frame);
  layout(io, message);
}

Status decode(const FrameView& frame, StatusesReply& out) noexcept {
  BodyDecoder io(frame, frame.type);
  io.require(carries_statuses(frame.type), "message type");
  layout(io, out);
  return io.finish();
}

}  // namespace cairn::wire
