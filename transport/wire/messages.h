// The messages of protocol version 1 as structs, with encode and checked decode. Pure: no I/O, no
// clock. decode() reuses the vectors of `out`, so a session decodes without allocating.
//
// Every decode() gives kCorrupt (a field that cannot be, a short or over-long body) or kTooLarge
// (a count over its limit) and never reads outside `body`; `out` is then unspecified. Numbers that
// name no status, mode or priority are kCorrupt.
#pragma once

#include "base/block_key.h"
#include "base/block_status.h"
#include "transport/wire/frame.h"

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace cairn::wire {

enum class Priority : std::uint8_t { kLoad = 0, kPrefetch = 1, kStore = 2 };

// TLV types. Unknown ones are skipped.
inline constexpr std::uint16_t kTlvToken = 1;       // hello: authentication token
inline constexpr std::uint16_t kTlvClientName = 2;  // hello: "cairn-cpp/0.1.0 (pid 12 replay)"

// Stands at the front of every request's body but hello, join, resume and ping.
struct RequestContext {
  NamespaceDigest name_space;
  std::uint64_t epoch = 0;
  std::uint64_t trace_id = 0;
  std::uint32_t remaining_ms = 0;  // 0 is refused with kInvalid
  Priority priority = Priority::kLoad;
};

// Stands at the front of every reply's body: how the request as a whole went. With another status
// than kOk the arrays behind it are empty and every key has that status.
struct ReplyContext {
  BlockStatus status = BlockStatus::kOk;
  BusyReason reason = BusyReason::kNone;
};

// boot = max(stored + 1, Unix ms) and a random incarnation; compared for equality only.
struct BootId {
  std::uint64_t counter = 0;
  std::uint64_t incarnation = 0;
  friend bool operator==(const BootId&, const BootId&) noexcept = default;
};

struct SessionSecret {
  std::array<std::byte, 16> bytes{};
  friend bool operator==(const SessionSecret&, const SessionSecret&) noexcept = default;
};

struct Limits {
  std::uint32_t message_bytes = static_cast<std::uint32_t>(kMessageBytesMax.value());
  std::uint32_t lookup_keys = kLookupKeysMax;
  std::uint32_t batch_keys = kBatchKeysMax;
  std::uint32_t requests_in_flight = kRequestsInFlightMax;
  std::uint32_t namespaces = kSessionNamespacesMax;
  std::uint32_t inline_bytes = static_cast<std::uint32_t>(kInlineBytesMax.value());
  std::uint64_t block_bytes = kBlockBytesMax.value();
  friend bool operator==(const Limits&, const Limits&) noexcept = default;
};

// Attributes of one block: {u16 type, u16 bytes, value}*, opaque to the daemon but for its size.
inline constexpr std::uint32_t kAttributeBytesMax = 2'048;
// Part 0 of an object over 16 MiB: total length u64, part count u32, body id u64.
inline constexpr std::uint16_t kAttributeObject = 1;

// ---- session ----
// On a unix socket the frame carries the client's pidfd.
struct Hello {
  std::uint16_t version_min = kProtocolVersion;
  std::uint16_t version_max = kProtocolVersion;
  std::uint64_t features = 0;
  std::uint32_t pid = 0;
  std::int32_t numa_node = -1;
  std::int32_t gpu = -1;
  bool wants_mapping = true;
  std::string client_name;  // TLV
  std::string token;        // TLV
};
// Carries the session lock's descriptor when is_mapping_allowed.
struct HelloReply {
  ReplyContext context;
  std::uint16_t version = 0;
  std::uint64_t features = 0;
  std::uint64_t session = 0;
  SessionSecret secret;
  BootId boot;
  Limits limits;
  std::uint64_t pool_bytes = 0;
  bool is_mapping_allowed = false;
  bool allow_weak_keys = false;
  std::string message;  // why it was refused, for people
};
struct Join {
  std::uint64_t session = 0;
  SessionSecret secret;
};
struct JoinReply {
  ReplyContext context;  // kForbidden: no such session or another secret
};
struct HeldLend {
  std::uint32_t slab = 0;
  std::uint32_t slab_generation = 0;
  std::uint64_t offset = 0;
  std::uint64_t lend = 0;
  friend bool operator==(const HeldLend&, const HeldLend&) noexcept = default;
};
// The first message after the hello of a reconnect: what the client still holds. What is not listed
// is released.
struct Resume {
  std::uint64_t session = 0;  // the old one
  SessionSecret secret;
  std::vector<HeldLend> held;
};
struct ResumeReply {
  ReplyContext context;
  std::vector<std::uint8_t> kept;  // one a lend: 1 lent to the new session, 0 unknown here
};
struct Ping {};
struct Pong {};
struct SlabNotice {
  std::uint32_t slab = 0;
  std::uint32_t generation = 0;
  std::uint64_t bytes = 0;
  std::uint8_t page_kind = 0;  // 0 small, 1 transparent huge, 2 huge
};

// ---- namespaces ----
struct NamespaceOpen {
  RequestContext context;
  std::string fingerprint;  // a JSON object; the daemon canonicalises it
};
struct NamespaceOpenReply {
  ReplyContext context;
  NamespaceDigest digest;
  std::uint64_t epoch = 0;
  std::string message;  // why it was refused, for people
};
struct Bind {
  RequestContext context;  // digest and epoch that the client had
};
struct BindReply {
  ReplyContext context;  // kOk or kWrongNamespace
};
struct Purge {
  RequestContext context;
};
struct PurgeReply {
  ReplyContext context;
  std::uint64_t epoch = 0;  // the new one
  bool is_complete = false;
};

// ---- questions ----
enum class LookupKind : std::uint8_t { kRun = 0, kSet = 1 };
struct NamespaceRef {
  NamespaceDigest digest;
  std::uint64_t epoch = 0;
  friend bool operator==(const NamespaceRef&, const NamespaceRef&) noexcept = default;
};
// All digests of a message have one length.
struct Lookup {
  RequestContext context;
  LookupKind kind = LookupKind::kRun;
  std::uint32_t hold_ms = 0;       // 0: no hold
  std::vector<NamespaceRef> gang;  // further namespaces; the answer is what all of them have
  std::vector<BlockDigest> digests;
};
struct LookupReply {
  ReplyContext context;
  std::uint32_t run = 0;            // leading keys that are present
  std::uint32_t load_us = 0;        // estimate of the time to load what is present
  std::vector<std::uint8_t> tiers;  // one a key (a run: `run` of them); storage::TierKind, 0 absent
};
struct Stat {
  RequestContext context;
  BlockDigest digest;
};
struct List {
  RequestContext context;
  std::uint64_t cursor = 0;
  std::uint32_t limit = 0;
};
struct ListReply {
  ReplyContext context;
  std::uint64_t next_cursor = 0;
  std::vector<BlockDigest> digests;
};
struct Usage {
  RequestContext context;
};
struct Stats {
  RequestContext context;
};
// StatReply, UsageReply, StatsReply: a JSON object, opaque here.
struct JsonReply {
  ReplyContext context;
  std::string json;
};

// ---- bytes ----
// Bytes [offset, offset + bytes) of slab `slab` in its life `generation`.
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
  std::vector<BlockDigest> digests;
};
// What a get or reserve gives for one key. The extents are
// extents[extent_first, extent_first + extent_count) of the reply, the checksums likewise.
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
};
struct InlineData {
  std::uint32_t item = 0;            // index in the request's digests
  std::uint32_t offset = 0;          // in the payload
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
};
struct Reserve {
  RequestContext context;
  Placement placement;
  std::vector<BlockDigest> digests;
  std::vector<std::uint32_t> lengths;
};
struct ReserveReply {
  ReplyContext context;
  std::optional<BlockDigest> branch;
  std::vector<Grant> grants;
  std::vector<WireExtent> extents;
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
  std::vector<CommitEntry> entries;
  std::vector<std::uint32_t> checksums;
  std::vector<std::byte> attributes;
  // The next batch of the same namespace, reserved in the same round trip.
  std::optional<Placement> next_placement;
  std::vector<BlockDigest> next_digests;
  std::vector<std::uint32_t> next_lengths;
};
struct CommitReply {
  ReplyContext context;
  std::vector<BlockStatus> statuses;
  std::optional<ReserveReply> next;
};
struct Abort {
  std::vector<std::uint64_t> lends;
};
// A put whose bytes follow in InlineData frames tagged with this request's id.
struct PutInline {
  RequestContext context;
  Placement placement;
  std::vector<BlockDigest> digests;
  std::vector<std::uint32_t> lengths;
  std::vector<std::uint32_t> checksums;  // chunk_count(lengths[i]) of each, in order
  // Empty, or the bytes of each key's attributes in order, in one run.
  std::vector<std::uint32_t> attribute_bytes;
  std::vector<std::byte> attributes;
};
struct ReleaseEntry {
  std::uint64_t lend = 0;
  bool found_corrupt = false;  // the reader's own check failed: the daemon checks the frame
  friend bool operator==(const ReleaseEntry&, const ReleaseEntry&) noexcept = default;
};
struct Release {
  std::vector<ReleaseEntry> entries;
};
struct Cancel {
  std::uint64_t request_id = 0;
};

// ---- keeping and leaving ----
struct Retain {
  RequestContext context;
  std::uint32_t duration_ms = 0;  // 0 ends a retention
  std::vector<BlockDigest> digests;
};
struct Prefetch {
  RequestContext context;
  std::vector<BlockDigest> digests;
};
struct Remove {
  RequestContext context;
  std::vector<BlockDigest> digests;
};
enum class HintKind : std::uint8_t { kEnds = 0, kGoesOn = 1, kReturnsIn = 2 };
struct Hint {
  RequestContext context;
  HintKind kind = HintKind::kEnds;
  std::uint32_t returns_in_ms = 0;
  std::vector<BlockDigest> digests;
};
// Replies of put_inline, retain, prefetch, remove: one status a key.
struct StatusesReply {
  ReplyContext context;
  std::vector<BlockStatus> statuses;
  std::vector<BusyReason> reasons;
};

// encode() appends the message to `frame` (begin() with the right type is inside; StatusesReply and
// JsonReply take the type). CAIRN_CHECKs the limits that decode() refuses.
void encode(const Hello& message, std::uint64_t request_id, FrameWriter& frame);
void encode(const HelloReply& message, std::uint64_t request_id, FrameWriter& frame);
void encode(const Join& message, std::uint64_t request_id, FrameWriter& frame);
void encode(const JoinReply& message, std::uint64_t request_id, FrameWriter& frame);
void encode(const Resume& message, std::uint64_t request_id, FrameWriter& frame);
void encode(const ResumeReply& message, std::uint64_t request_id, FrameWriter& frame);
void encode(const Ping& message, std::uint64_t request_id, FrameWriter& frame);
void encode(const Pong& message, std::uint64_t request_id, FrameWriter& frame);
void encode(const SlabNotice& message, std::uint64_t request_id, FrameWriter& frame);
void encode(const NamespaceOpen& message, std::uint64_t request_id, FrameWriter& frame);
void encode(const NamespaceOpenReply& message, std::uint64_t request_id, FrameWriter& frame);
void encode(const Bind& message, std::uint64_t request_id, FrameWriter& frame);
void encode(const BindReply& message, std::uint64_t request_id, FrameWriter& frame);
void encode(const Purge& message, std::uint64_t request_id, FrameWriter& frame);
void encode(const PurgeReply& message, std::uint64_t request_id, FrameWriter& frame);
void encode(const Lookup& message, std::uint64_t request_id, FrameWriter& frame);
void encode(const LookupReply& message, std::uint64_t request_id, FrameWriter& frame);
void encode(const Stat& message, std::uint64_t request_id, FrameWriter& frame);
void encode(const List& message, std::uint64_t request_id, FrameWriter& frame);
void encode(const ListReply& message, std::uint64_t request_id, FrameWriter& frame);
void encode(const Usage& message, std::uint64_t request_id, FrameWriter& frame);
void encode(const Stats& message, std::uint64_t request_id, FrameWriter& frame);
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
void encode(const Retain& message, std::uint64_t request_id, FrameWriter& frame);
void encode(const Prefetch& message, std::uint64_t request_id, FrameWriter& frame);
void encode(const Remove& message, std::uint64_t request_id, FrameWriter& frame);
void encode(const Hint& message, std::uint64_t request_id, FrameWriter& frame);
void encode(const JsonReply& message,
            MessageType type,
            std::uint64_t request_id,
            FrameWriter& frame);
void encode(const StatusesReply& message,
            MessageType type,
            std::uint64_t request_id,
            FrameWriter& frame);

Status decode(const FrameView& frame, Hello& out) noexcept;
Status decode(const FrameView& frame, HelloReply& out) noexcept;
Status decode(const FrameView& frame, Join& out) noexcept;
Status decode(const FrameView& frame, JoinReply& out) noexcept;
Status decode(const FrameView& frame, Resume& out) noexcept;
Status decode(const FrameView& frame, ResumeReply& out) noexcept;
Status decode(const FrameView& frame, Ping& out) noexcept;
Status decode(const FrameView& frame, Pong& out) noexcept;
Status decode(const FrameView& frame, SlabNotice& out) noexcept;
Status decode(const FrameView& frame, NamespaceOpen& out) noexcept;
Status decode(const FrameView& frame, NamespaceOpenReply& out) noexcept;
Status decode(const FrameView& frame, Bind& out) noexcept;
Status decode(const FrameView& frame, BindReply& out) noexcept;
Status decode(const FrameView& frame, Purge& out) noexcept;
Status decode(const FrameView& frame, PurgeReply& out) noexcept;
Status decode(const FrameView& frame, Lookup& out) noexcept;
Status decode(const FrameView& frame, LookupReply& out) noexcept;
Status decode(const FrameView& frame, Stat& out) noexcept;
Status decode(const FrameView& frame, List& out) noexcept;
Status decode(const FrameView& frame, ListReply& out) noexcept;
Status decode(const FrameView& frame, Usage& out) noexcept;
Status decode(const FrameView& frame, Stats& out) noexcept;
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
Status decode(const FrameView& frame, Retain& out) noexcept;
Status decode(const FrameView& frame, Prefetch& out) noexcept;
Status decode(const FrameView& frame, Remove& out) noexcept;
Status decode(const FrameView& frame, Hint& out) noexcept;
Status decode(const FrameView& frame, JsonReply& out) noexcept;
Status decode(const FrameView& frame, StatusesReply& out) noexcept;

}  // namespace cairn::wire
