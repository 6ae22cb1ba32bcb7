// The messages that move blocks: get, reserve, commit, put_inline, and what gives lends back.
#pragma once

#include "transport/wire/context.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace cairn::wire {

// Attributes of one block: {u16 type, u16 bytes, value}*, opaque to the daemon but for its size.
inline constexpr std::uint32_t kAttributeBytesMax = 2'048;
// Part 0 of an object over 16 MiB: total length u64, part count u32, body id u64.
inline constexpr std::uint16_t kAttributeObject = 1;
// Attributes of all keys of one commit, put_inline or get reply. A get that wants attributes names
// at most kAttributeKeysMax keys, so that its reply always has room for them.
inline constexpr std::uint32_t kBatchAttributeBytesMax = 512 * 1'024;
inline constexpr std::uint32_t kAttributeKeysMax = kBatchAttributeBytesMax / kAttributeBytesMax;
// Of an abort or a release; more go in further messages.
inline constexpr std::uint32_t kLendsPerMessageMax = 16'384;
inline constexpr std::uint32_t kBatchExtentsMax = kBatchKeysMax * kExtentsMax;
inline constexpr std::uint32_t kBatchChecksumsMax = kBatchKeysMax * kChunksMax;

// ---- bytes ----
// Bytes [offset, offset + bytes) of slab `slab` in its life `generation`; at least one.
struct WireExtent {
  std::uint32_t slab = 0;
  std::uint32_t generation = 0;
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;
  friend bool operator==(const WireExtent&, const WireExtent&) noexcept = default;
};
enum class GetMode : std::uint8_t { kLend = 0, kInline = 1 };
struct Get {
  RequestContext context;
  GetMode mode = GetMode::kLend;
  bool is_chain = true;  // cut at the first failure
  bool wants_attributes = false;
  // At most kBatchKeysMax; at most kAttributeKeysMax when attributes are wanted.
  std::vector<BlockDigest> digests;
  friend bool operator==(const Get&, const Get&) noexcept = default;
};
// What a get or reserve gives for one key. The extents are
// extents[extent_first, extent_first + extent_count) of the reply, the checksums likewise; a
// reserve gives neither checksums nor attributes. At most kExtentsMax, kChunksMax,
// kAttributeBytesMax and a length of kBlockBytesMax.
struct Grant {
  BlockStatus status = BlockStatus::kMiss;
  BusyReason reason = BusyReason::kNone;
  std::uint8_t extent_count = 0;
  std::uint8_t checksum_count = 0;
  std::uint32_t length = 0;
  std::uint64_t lend = 0;  // 0: nothing is lent
  std::uint32_t extent_first = 0;
  std::uint32_t checksum_first = 0;
  // attributes[attribute_first, + attribute_bytes) of the reply; 0 unless the get wants them.
  std::uint32_t attribute_first = 0;
  std::uint32_t attribute_bytes = 0;
  friend bool operator==(const Grant&, const Grant&) noexcept = default;
};
// In mode kInline the payloads of the keys with kOk follow in InlineData frames.
struct GetReply {
  ReplyContext context;
  std::vector<Grant> grants;
  std::vector<WireExtent> extents;
  std::vector<std::uint32_t> checksums;
  std::vector<std::byte> attributes;
  friend bool operator==(const GetReply&, const GetReply&) noexcept = default;
};
struct InlineData {
  std::uint32_t item = 0;            // index in the request's digests
  std::uint32_t offset = 0;          // in the payload; offset + bytes is at most kBlockBytesMax
  std::span<const std::byte> bytes;  // 1 to kInlineBytesMax; after decode a view into the frame
};

// ---- writing ----
struct Placement {
  bool is_chain = true;
  bool is_durable = false;
  std::uint32_t position = 0;  // of the first key in its chain
  std::uint32_t retain_ms = 0;
  std::optional<BlockDigest> parent;  // of the first key
  std::optional<BlockDigest> branch;  // from an earlier batch of the same request
  friend bool operator==(const Placement&, const Placement&) noexcept = default;
};
// Lengths beyond the limits of a block are carried: the daemon answers them key by key.
struct Reserve {
  RequestContext context;
  Placement placement;
  std::vector<BlockDigest> digests;    // at most kBatchKeysMax
  std::vector<std::uint32_t> lengths;  // one a digest
  friend bool operator==(const Reserve&, const Reserve&) noexcept = default;
};
struct ReserveReply {
  ReplyContext context;
  std::optional<BlockDigest> branch;
  std::vector<Grant> grants;
  std::vector<WireExtent> extents;
  friend bool operator==(const ReserveReply&, const ReserveReply&) noexcept = default;
};
struct CommitEntry {
  std::uint64_t lend = 0;
  std::uint32_t checksum_first = 0;
  std::uint32_t checksum_count = 0;
  // The block's attributes, a TLV run of at most kAttributeBytesMax: attributes[first, + bytes).
  std::uint32_t attribute_first = 0;
  std::uint32_t attribute_bytes = 0;
  friend bool operator==(const CommitEntry&, const CommitEntry&) noexcept = default;
};
struct Commit {
  RequestContext context;
  std::vector<CommitEntry> entries;      // at most kBatchKeysMax
  std::vector<std::uint32_t> checksums;  // at most kBatchChecksumsMax
  std::vector<std::byte> attributes;     // at most kBatchAttributeBytesMax
  // The next batch of the same namespace, reserved in the same round trip; without a placement
  // there are no keys.
  std::optional<Placement> next_placement;
  std::vector<BlockDigest> next_digests;
  std::vector<std::uint32_t> next_lengths;
  friend bool operator==(const Commit&, const Commit&) noexcept = default;
};
struct CommitReply {
  ReplyContext context;
  std::vector<BlockStatus> statuses;
  std::optional<ReserveReply> next;
  friend bool operator==(const CommitReply&, const CommitReply&) noexcept = default;
};
struct Abort {
  std::vector<std::uint64_t> lends;  // at most kLendsPerMessageMax
  friend bool operator==(const Abort&, const Abort&) noexcept = default;
};
// A put whose bytes follow in InlineData frames tagged with this request's id.
struct PutInline {
  RequestContext context;
  Placement placement;
  std::vector<BlockDigest> digests;      // at most kBatchKeysMax
  std::vector<std::uint32_t> lengths;    // one a digest
  std::vector<std::uint32_t> checksums;  // chunk_count(lengths[i]) of each, in order
  // Empty, or the bytes of each key's attributes in order, in one run.
  std::vector<std::uint32_t> attribute_bytes;
  std::vector<std::byte> attributes;
  friend bool operator==(const PutInline&, const PutInline&) noexcept = default;
};
struct ReleaseEntry {
  std::uint64_t lend = 0;
  bool found_corrupt = false;  // the reader's own check failed: the daemon checks the frame
  friend bool operator==(const ReleaseEntry&, const ReleaseEntry&) noexcept = default;
};
struct Release {
  std::vector<ReleaseEntry> entries;  // at most kLendsPerMessageMax
  friend bool operator==(const Release&, const Release&) noexcept = default;
};
struct Cancel {
  std::uint64_t request_id = 0;
  friend bool operator==(const Cancel&, const Cancel&) noexcept = default;
};

// The frame of a get reply with so many elements. Whatever the limits allow fits one frame: a
// daemon that keeps to them never has to cut a batch.
constexpr std::size_t get_reply_bytes(std::size_t grants,
                                      std::size_t extents,
                                      std::size_t checksums,
                                      std::size_t attribute_bytes) noexcept {
  return kFrameHeaderBytes + 20 + grants * sizeof(Grant) + extents * sizeof(WireExtent) +
         checksums * sizeof(std::uint32_t) + attribute_bytes;
}
static_assert(get_reply_bytes(kBatchKeysMax,
                              kBatchExtentsMax,
                              kBatchChecksumsMax,
                              kBatchAttributeBytesMax) <= kMessageBytesMax.value());

void encode(const Get& message, std::uint64_t request_id, FrameWriter& frame);
void encode(const GetReply& message, std::uint64_t request_id, FrameWriter& frame);
void encode(const InlineData& message, std::uint64_t request_id, FrameWriter& frame);
void encode(const Reserve& message, std::uint64_t request_id, FrameWriter& frame);
void encode(const ReserveReply& message, std::uint64_t request_id, FrameWriter& frame);
void encode(const Commit& message, std::uint64_t request_id, FrameWriter& frame);
void encode(const CommitReply& message, std::uint64_t request_id, FrameWriter& frame);
void encode(const Abort& message, std::uint64_t request_id, FrameWriter& frame);
void encode(const PutInline& message, std::uint64_t request_id, FrameWriter& frame);
void encode(const Release& message, std::uint64_t request_id, FrameWriter& frame);
void encode(const Cancel& message, std::uint64_t request_id, FrameWriter& frame);

Status decode(const FrameView& frame, Get& out) noexcept;
Status decode(const FrameView& frame, GetReply& out) noexcept;
Status decode(const FrameView& frame, InlineData& out) noexcept;
Status decode(const FrameView& frame, Reserve& out) noexcept;
Status decode(const FrameView& frame, ReserveReply& out) noexcept;
Status decode(const FrameView& frame, Commit& out) noexcept;
Status decode(const FrameView& frame, CommitReply& out) noexcept;
Status decode(const FrameView& frame, Abort& out) noexcept;
Status decode(const FrameView& frame, PutInline& out) noexcept;
Status decode(const FrameView& frame, Release& out) noexcept;
Status decode(const FrameView& frame, Cancel& out) noexcept;

}  // namespace cairn::wire
