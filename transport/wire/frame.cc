#include "transport/wire/frame.h"

#include "base/check.h"
#include "base/checksum.h"
#include "transport/wire/little_endian.h"

#include <algorithm>
#include <array>
#include <cstring>

namespace cairn::wire {
namespace {

constexpr std::size_t kMagicAt = 0;
constexpr std::size_t kBodyBytesAt = 4;
constexpr std::size_t kTypeAt = 8;
constexpr std::size_t kFlagsAt = 10;
constexpr std::size_t kChecksumAt = 12;
constexpr std::size_t kRequestIdAt = 16;
constexpr std::size_t kTlvBytesAt = 24;
constexpr std::size_t kReservedAt = 28;
static_assert(kReservedAt + sizeof(std::uint32_t) == kFrameHeaderBytes);

constexpr std::uint32_t kMagicPrefix = kFrameMagic & 0x00FFFFFFU;
constexpr std::size_t kBufferBytesMin = 4'096;
constexpr std::uint16_t kReplyBit = 0x8000;

// "CRN" and a digit: a version of ours, if not this one.
bool is_magic_of_some_version(std::uint32_t magic) noexcept {
  const std::uint32_t digit = magic >> 24U;
  return (magic & 0x00FFFFFFU) == kMagicPrefix && digit >= '0' && digit <= '9';
}

bool has_reply(std::uint16_t request) noexcept {
  switch (static_cast<MessageType>(request)) {
    case MessageType::kAbort:
    case MessageType::kRelease:
    case MessageType::kCancel:
    case MessageType::kHint:
    case MessageType::kPull:
    case MessageType::kPullRelease:
    case MessageType::kSlab:
    case MessageType::kInlineData:
      return false;
    default:
      return true;
  }
}

std::uint32_t frame_checksum(std::span<const std::byte, kFrameHeaderBytes> header,
                             std::span<const std::byte> body,
                             MessageType type) noexcept {
  const bool is_inline = type == MessageType::kInlineData;
  const auto covered =
      body.first(is_inline ? std::min(body.size(), kInlineHeadBytes) : body.size());
  std::array<std::byte, kFrameHeaderBytes + sizeof(std::uint64_t)> input{};
  std::memcpy(input.data(), header.data(), kFrameHeaderBytes);
  const std::span fields(input);
  store(fields.subspan(kChecksumAt), std::uint32_t{0});
  store(fields.subspan(kFrameHeaderBytes), xxh3_64(covered));
  return static_cast<std::uint32_t>(xxh3_64(input));
}

Status check_tlv_run(std::span<const std::byte> tlvs) noexcept {
  while (!tlvs.empty()) {
    CAIRN_TRY([[maybe_unused]] const Tlv tlv, take_tlv(tlvs));
  }
  return {};
}

}  // namespace

bool is_known(std::uint16_t type) noexcept {
  const auto request = static_cast<std::uint16_t>(type & ~kReplyBit);
  const bool is_numbered = request >= static_cast<std::uint16_t>(MessageType::kHello) &&
                           request <= static_cast<std::uint16_t>(MessageType::kInlineData);
  return is_numbered && (request == type || has_reply(request));
}

Result<FrameHeader> decode_frame_header(
    std::span<const std::byte, kFrameHeaderBytes> bytes) noexcept {
  const auto magic = load<std::uint32_t>(bytes.subspan(kMagicAt));
  if (magic != kFrameMagic) {
    if (is_magic_of_some_version(magic)) return Error{ErrorCode::kVersion, 0, "frame magic"};
    return Error{ErrorCode::kCorrupt, 0, "frame magic"};
  }
  if (load<std::uint16_t>(bytes.subspan(kFlagsAt)) != 0 ||
      load<std::uint32_t>(bytes.subspan(kReservedAt)) != 0) {
    return Error{ErrorCode::kCorrupt, 0, "frame reserved fields"};
  }
  const FrameHeader header{.body_bytes = load<std::uint32_t>(bytes.subspan(kBodyBytesAt)),
                           .type = load<std::uint16_t>(bytes.subspan(kTypeAt)),
                           .tlv_bytes = load<std::uint32_t>(bytes.subspan(kTlvBytesAt)),
                           .request_id = load<std::uint64_t>(bytes.subspan(kRequestIdAt)),
                           .checksum = load<std::uint32_t>(bytes.subspan(kChecksumAt))};
  if (header.body_bytes > kMessageBytesMax.value() - kFrameHeaderBytes) {
    return Error{ErrorCode::kTooLarge, 0, "frame body_bytes"};
  }
  if (header.tlv_bytes > header.body_bytes) return Error{ErrorCode::kCorrupt, 0, "frame tlv_bytes"};
  return header;
}

Result<FrameView> decode_frame(std::span<const std::byte> frame) noexcept {
  if (frame.size() < kFrameHeaderBytes) return Error{ErrorCode::kCorrupt, 0, "frame length"};
  const auto head = frame.first<kFrameHeaderBytes>();
  CAIRN_TRY(const FrameHeader header, decode_frame_header(head));
  const auto body = frame.subspan(kFrameHeaderBytes);
  if (body.size() != header.body_bytes) return Error{ErrorCode::kCorrupt, 0, "frame length"};
  const auto type = static_cast<MessageType>(header.type);
  if (type == MessageType::kInlineData &&
      (body.size() < kInlineHeadBytes || header.tlv_bytes != 0)) {
    return Error{ErrorCode::kCorrupt, 0, "inline frame"};
  }
  if (frame_checksum(head, body, type) != header.checksum) {
    return Error{ErrorCode::kCorrupt, 0, "frame checksum"};
  }
  const auto tlvs = body.last(header.tlv_bytes);
  CAIRN_TRY_STATUS(check_tlv_run(tlvs));
  return FrameView{.type = type,
                   .request_id = header.request_id,
                   .body = body.first(body.size() - header.tlv_bytes),
                   .tlvs = tlvs};
}

Result<Tlv> take_tlv(std::span<const std::byte>& tlvs) noexcept {
  if (tlvs.size() < kTlvHeaderBytes) return Error{ErrorCode::kCorrupt, 0, "tlv header"};
  const auto type = load<std::uint16_t>(tlvs);
  const auto reserved = load<std::uint16_t>(tlvs.subspan(2));
  const auto bytes = load<std::uint32_t>(tlvs.subspan(4));
  if (reserved != 0) return Error{ErrorCode::kCorrupt, 0, "tlv reserved"};
  const auto rest = tlvs.subspan(kTlvHeaderBytes);
  if (bytes > rest.size()) return Error{ErrorCode::kCorrupt, 0, "tlv bytes"};
  tlvs = rest.subspan(bytes);
  return Tlv{.type = type, .value = rest.first(bytes)};
}

void FrameWriter::begin(MessageType type, std::uint64_t request_id) {
  used_ = 0;
  tlv_begin_ = 0;
  type_ = type;
  request_id_ = request_id;
  append(kFrameHeaderBytes);
}

void FrameWriter::bytes(std::span<const std::byte> bytes) {
  if (bytes.empty()) return;
  std::memcpy(append(bytes.size()).data(), bytes.data(), bytes.size());
}

void FrameWriter::u8(std::uint8_t value) {
  store(append(sizeof(value)), value);
}

void FrameWriter::u16(std::uint16_t value) {
  store(append(sizeof(value)), value);
}

void FrameWriter::u32(std::uint32_t value) {
  store(append(sizeof(value)), value);
}

void FrameWriter::u64(std::uint64_t value) {
  store(append(sizeof(value)), value);
}

void FrameWriter::tlv(std::uint16_t type, std::span<const std::byte> value) {
  CAIRN_CHECK(type_ != MessageType::kInlineData);
  CAIRN_CHECK(value.size() <= kMessageBytesMax.value());
  if (tlv_begin_ == 0) tlv_begin_ = used_;
  u16(type);
  u16(0);
  u32(static_cast<std::uint32_t>(value.size()));
  bytes(value);
}

std::span<const std::byte> FrameWriter::finish() {
  CAIRN_CHECK(used_ >= kFrameHeaderBytes);  // begin() came first
  CAIRN_CHECK(used_ <= kMessageBytesMax.value());
  const std::span frame = std::span(buffer_).first(used_);
  const auto header = frame.first<kFrameHeaderBytes>();
  const std::size_t tlv_bytes = tlv_begin_ == 0 ? 0 : used_ - tlv_begin_;
  store(header.subspan(kMagicAt), kFrameMagic);
  store(header.subspan(kBodyBytesAt), static_cast<std::uint32_t>(used_ - kFrameHeaderBytes));
  store(header.subspan(kTypeAt), static_cast<std::uint16_t>(type_));
  store(header.subspan(kFlagsAt), std::uint16_t{0});
  store(header.subspan(kRequestIdAt), request_id_);
  store(header.subspan(kTlvBytesAt), static_cast<std::uint32_t>(tlv_bytes));
  store(header.subspan(kReservedAt), std::uint32_t{0});
  store(header.subspan(kChecksumAt),
        frame_checksum(header, frame.subspan(kFrameHeaderBytes), type_));
  return frame;
}

void FrameWriter::grow(std::size_t count) {
  const std::size_t needed = used_ + count;
  buffer_.resize(std::max({needed, buffer_.size() * 2, kBufferBytesMin}));
}

}  // namespace cairn::wire
