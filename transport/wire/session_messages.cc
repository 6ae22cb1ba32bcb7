#include "transport/wire/session_messages.h"

#include "transport/wire/body_codec.h"

#include <algorithm>
#include <span>
#include <string>
#include <string_view>

namespace cairn::wire {
namespace {

constexpr std::uint8_t kPageKindLast = 2;
static_assert(sizeof(HeldLend) == 24);

template <typename Io, Is<BootId> M>
void layout(Io& io, M& m) {
  io.number(m.counter);
  io.number(m.incarnation);
}

template <typename Io, Is<Limits> M>
void layout(Io& io, M& m) {
  io.number(m.message_bytes);
  io.number(m.lookup_keys);
  io.number(m.batch_keys);
  io.number(m.requests_in_flight);
  io.number(m.namespaces);
  io.number(m.inline_bytes);
  io.number(m.block_bytes);
  io.number(m.session_lends);
  io.zeros(4);
}

template <typename Io, Is<Hello> M>
void layout(Io& io, M& m) {
  io.number(m.version_min);
  io.number(m.version_max);
  io.require(m.version_min <= m.version_max, "hello versions");
  io.number(m.pid);
  io.number(m.features);
  io.number(m.numa_node);
  io.number(m.gpu);
  io.flag(m.wants_mapping);
  io.zeros(7);
}

template <typename Io, Is<HelloReply> M>
void layout(Io& io, M& m) {
  layout(io, m.context);
  io.number(m.version);
  io.flag(m.is_mapping_allowed);
  io.flag(m.allow_weak_keys);
  io.number(m.features);
  io.number(m.session);
  io.raw(m.secret.bytes);
  layout(io, m.boot);
  layout(io, m.limits);
  io.number(m.pool_bytes);
  io.text(m.message);
}

template <typename Io, Is<Join> M>
void layout(Io& io, M& m) {
  io.number(m.session);
  io.raw(m.secret.bytes);
}

template <typename Io, typename M>
requires(Is<M, JoinReply> || Is<M, Bind> || Is<M, BindReply> || Is<M, Purge>) void layout(Io& io,
                                                                                          M& m) {
  layout(io, m.context);
}

template <typename Io, Is<Resume> M>
void layout(Io& io, M& m) {
  io.number(m.session);
  io.raw(m.secret.bytes);
  const std::size_t held = io.count(m.held.size(), kSessionLendsMax, "held lends");
  io.array(m.held, held);
}

template <typename Io, Is<ResumeReply> M>
void layout(Io& io, M& m) {
  layout(io, m.context);
  const std::size_t kept = io.count(m.kept.size(), kSessionLendsMax, "kept lends");
  io.array(m.kept, kept);
  io.require(std::ranges::all_of(m.kept, [](std::uint8_t flag) { return flag <= 1; }), "kept");
}

template <typename Io, typename M>
requires(Is<M, Ping> || Is<M, Pong>) void layout(Io& /*io*/, M& /*m*/) {}

template <typename Io, Is<SlabNotice> M>
void layout(Io& io, M& m) {
  io.number(m.slab);
  io.number(m.generation);
  io.number(m.bytes);
  io.number(m.page_kind);
  io.require(m.page_kind <= kPageKindLast, "page kind");
  io.zeros(7);
}

template <typename Io, Is<NamespaceOpen> M>
void layout(Io& io, M& m) {
  layout(io, m.context);
  io.string(m.fingerprint, kFingerprintBytesMax, "fingerprint");
}

template <typename Io, Is<NamespaceOpenReply> M>
void layout(Io& io, M& m) {
  layout(io, m.context);
  io.zeros(4);
  io.raw(m.digest.bytes);
  io.number(m.epoch);
  io.text(m.message);
}

template <typename Io, Is<PurgeReply> M>
void layout(Io& io, M& m) {
  layout(io, m.context);
  io.flag(m.is_complete);
  io.zeros(3);
  io.number(m.epoch);
}

// Sets `text` from a TLV that may come once. `is_seen` tells.
Status take_text(const Tlv& tlv, std::size_t max, bool& is_seen, std::string& text) noexcept {
  if (is_seen) return Error{ErrorCode::kCorrupt, 0, "tlv twice"};
  if (tlv.value.size() > max) return Error{ErrorCode::kTooLarge, 0, "tlv"};
  is_seen = true;
  text.assign(reinterpret_cast<const char*>(tlv.value.data()), tlv.value.size());
  return {};
}

Status take_hello_tlvs(std::span<const std::byte> tlvs, Hello& out) noexcept {
  bool has_token = false;
  bool has_name = false;
  while (!tlvs.empty()) {
    CAIRN_TRY(const Tlv tlv, take_tlv(tlvs));
    if (tlv.type == kTlvToken) {
      CAIRN_TRY_STATUS(take_text(tlv, kTokenBytesMax, has_token, out.token));
    } else if (tlv.type == kTlvClientName) {
      CAIRN_TRY_STATUS(take_text(tlv, kClientNameBytesMax, has_name, out.client_name));
    }
  }
  return {};
}

void put_tlv(std::uint16_t type, std::string_view text, FrameWriter& frame) {
  if (!text.empty()) frame.tlv(type, std::as_bytes(std::span(text)));
}

}  // namespace

void encode(const Hello& message, std::uint64_t request_id, FrameWriter& frame) {
  CAIRN_CHECK(message.token.size() <= kTokenBytesMax);
  frame.begin(MessageType::kHello, request_id);
  BodyEncoder io(frame);
  layout(io, message);
  put_tlv(kTlvToken, message.token, frame);
  put_tlv(kTlvClientName, cut_text(message.client_name, kClientNameBytesMax), frame);
}

Status decode(const FrameView& frame, Hello& out) noexcept {
  BodyDecoder io(frame, MessageType::kHello);
  layout(io, out);
  CAIRN_TRY_STATUS(io.finish());
  out.token.clear();
  out.client_name.clear();
  return take_hello_tlvs(frame.tlvs, out);
}

CAIRN_WIRE_CODEC(HelloReply, MessageType::kHelloReply);
CAIRN_WIRE_CODEC(Join, MessageType::kJoin);
CAIRN_WIRE_CODEC(JoinReply, MessageType::kJoinReply);
CAIRN_WIRE_CODEC(Resume, MessageType::kResume);
CAIRN_WIRE_CODEC(ResumeReply, MessageType::kResumeReply);
CAIRN_WIRE_CODEC(Ping, MessageType::kPing);
CAIRN_WIRE_CODEC(Pong, MessageType::kPong);
CAIRN_WIRE_CODEC(SlabNotice, MessageType::kSlab);
CAIRN_WIRE_CODEC(NamespaceOpen, MessageType::kNamespaceOpen);
CAIRN_WIRE_CODEC(NamespaceOpenReply, MessageType::kNamespaceOpenReply);
CAIRN_WIRE_CODEC(Bind, MessageType::kBind);
CAIRN_WIRE_CODEC(BindReply, MessageType::kBindReply);
CAIRN_WIRE_CODEC(Purge, MessageType::kPurge);
CAIRN_WIRE_CODEC(PurgeReply, MessageType::kPurgeReply);

}  // namespace cairn::wire
