// The envelope of every message on a control channel, protocol version 1. Little-endian, fixed
// widths; docs/formats.md "Control channel" gives it byte by byte.
#pragma once

#include "base/result.h"
#include "base/units.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace cairn::wire {

inline constexpr std::uint16_t kProtocolVersion = 1;
inline constexpr std::uint32_t kFrameMagic = 0x314E5243;  // "CRN1"
inline constexpr std::size_t kFrameHeaderBytes = 32;
// Of a whole frame, header included. Announced in the hello; a longer one closes the connection.
inline constexpr ByteCount kMessageBytesMax = 1_MiB;
// Payload bytes in one InlineData frame.
inline constexpr ByteCount kInlineBytesMax = 256_KiB;
inline constexpr std::uint32_t kLookupKeysMax = 16'384;
inline constexpr std::uint32_t kBatchKeysMax = 1'024;
inline constexpr std::uint32_t kRequestsInFlightMax = 1'024;
inline constexpr std::uint32_t kSessionNamespacesMax = 4'096;
inline constexpr std::uint32_t kGangMax = 64;

// A reply's number is its request's plus 0x8000. Numbers never change meaning.
enum class MessageType : std::uint16_t {
  kHello = 1,
  kJoin = 2,
  kResume = 3,
  kPing = 4,
  kNamespaceOpen = 5,
  kBind = 6,
  kPurge = 7,
  kLookup = 8,
  kGet = 9,
  kReserve = 10,
  kCommit = 11,
  kAbort = 12,  // one-way
  kPutInline = 13,
  kRelease = 14,  // one-way
  kCancel = 15,   // one-way
  kRetain = 16,
  kPrefetch = 17,
  kRemove = 18,
  kHint = 19,  // one-way
  kList = 20,
  kUsage = 21,
  kStat = 22,
  kStats = 23,
  kPull = 24,         // reserved: between daemons
  kPullRelease = 25,  // reserved: between daemons
  kSlab = 26,         // one-way, daemon to client, carries the slab's descriptor
  kInlineData = 27,   // one-way, tagged with the request it belongs to
  kHelloReply = 0x8001,
  kJoinReply = 0x8002,
  kResumeReply = 0x8003,
  kPong = 0x8004,
  kNamespaceOpenReply = 0x8005,
  kBindReply = 0x8006,
  kPurgeReply = 0x8007,
  kLookupReply = 0x8008,
  kGetReply = 0x8009,
  kReserveReply = 0x800A,
  kCommitReply = 0x800B,
  kPutInlineReply = 0x800D,
  kRetainReply = 0x8010,
  kPrefetchReply = 0x8011,
  kRemoveReply = 0x8012,
  kListReply = 0x8014,
  kUsageReply = 0x8015,
  kStatReply = 0x8016,
  kStatsReply = 0x8017,
};

bool is_known(std::uint16_t type) noexcept;

// Layout, 32 bytes: magic u32, body_bytes u32, type u16, flags u16 (zero in version 1), checksum
// u32, request_id u64, tlv_bytes u32 (the tail of the body that is TLVs), reserved u32 (zero).
// `checksum` is the low half of XXH3-64 over 40 bytes: the header with checksum zero, then the
// XXH3-64 of the body as a u64. For kInlineData only the first kInlineHeadBytes of the body count,
// since the payload behind them is covered by the block's chunk CRCs; it carries no TLVs.
inline constexpr std::size_t kInlineHeadBytes = 16;
struct FrameHeader {
  std::uint32_t body_bytes = 0;
  std::uint16_t type = 0;
  std::uint32_t tlv_bytes = 0;
  std::uint64_t request_id = 0;
  std::uint32_t checksum = 0;
};

// Errors: kCorrupt (magic, reserved fields, tlv_bytes > body_bytes), kTooLarge (over
// kMessageBytesMax), kVersion (magic of another version: "CRN" and another digit).
Result<FrameHeader> decode_frame_header(
    std::span<const std::byte, kFrameHeaderBytes> bytes) noexcept;

// A whole frame as it lies in a buffer: kFrameHeaderBytes + body. Errors: as decode_frame_header,
// and kCorrupt when the checksum or the length differs or the TLVs are no whole run. A type that
// !is_known() passes: the caller decides.
struct FrameView {
  MessageType type{};
  std::uint64_t request_id = 0;
  std::span<const std::byte> body;  // without the TLVs
  std::span<const std::byte> tlvs;
};
Result<FrameView> decode_frame(std::span<const std::byte> frame) noexcept;

// Layout: type u16, reserved u16 (zero), bytes u32, then the value without padding.
inline constexpr std::size_t kTlvHeaderBytes = 8;
struct Tlv {
  std::uint16_t type = 0;
  std::span<const std::byte> value;
};
// Takes the first TLV off a run that is not empty. Errors: kCorrupt.
Result<Tlv> take_tlv(std::span<const std::byte>& tlvs) noexcept;

// Builds one frame in a buffer that is reused: begin(), append by encode(), finish(). One thread.
// The buffer grows to the longest frame built and stays; then nothing is allocated.
class FrameWriter {
 public:
  void begin(MessageType type, std::uint64_t request_id);
  void bytes(std::span<const std::byte> bytes);
  void u8(std::uint8_t value);
  void u16(std::uint16_t value);
  void u32(std::uint32_t value);
  void u64(std::uint64_t value);
  // The next `count` bytes of the body, to be filled before any other call.
  std::span<std::byte> append(std::size_t count) {
    if (count > buffer_.size() - used_) grow(count);
    const std::size_t at = used_;
    used_ += count;
    return std::span(buffer_).subspan(at, count);
  }
  // After the body; several. `type` numbers are in session_messages.h.
  void tlv(std::uint16_t type, std::span<const std::byte> value);
  // The finished frame, valid until the next begin(). CAIRN_CHECKs that it is at most
  // kMessageBytesMax: every encode() of ours stays below it by its limits.
  std::span<const std::byte> finish();

 private:
  void grow(std::size_t count);

  std::vector<std::byte> buffer_;  // its size is what may be used, used_ what is
  std::size_t used_ = 0;
  std::size_t tlv_begin_ = 0;  // 0: no TLVs yet
  MessageType type_{};
  std::uint64_t request_id_ = 0;
};

}  // namespace cairn::wire
