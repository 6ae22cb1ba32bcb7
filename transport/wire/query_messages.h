// Questions about blocks, and wishes to keep or drop them: what moves no bytes.
#pragma once

#include "transport/wire/context.h"

#include <cstdint>
#include <string>
#include <vector>

namespace cairn::wire {

// Digests in one list reply; a list that asks for 0 or for more gets this many.
inline constexpr std::uint32_t kListKeysMax = 16'384;
// Of a JSON reply: what a frame holds beside the header, the context and the length.
inline constexpr std::size_t kJsonBytesMax = kMessageBytesMax.value() - kFrameHeaderBytes - 4 - 4;

// ---- questions ----
enum class LookupKind : std::uint8_t { kRun = 0, kSet = 1 };
struct NamespaceRef {
  NamespaceDigest digest;
  std::uint64_t epoch = 0;
  friend bool operator==(const NamespaceRef&, const NamespaceRef&) noexcept = default;
};
// The digests of one message have one length: encode() CAIRN_CHECKs it, so who gathers keys sends
// one message a length. The same holds for every `digests` below and in block_messages.h but for
// ListReply.
struct Lookup {
  RequestContext context;
  LookupKind kind = LookupKind::kRun;
  std::uint32_t hold_ms = 0;         // 0: no hold
  std::vector<NamespaceRef> gang;    // further namespaces, at most kGangMax; the answer is what all
                                     // of them have
  std::vector<BlockDigest> digests;  // at most kLookupKeysMax
  friend bool operator==(const Lookup&, const Lookup&) noexcept = default;
};
struct LookupReply {
  ReplyContext context;
  std::uint32_t run = 0;            // leading keys that are present
  std::uint32_t load_us = 0;        // estimate of the time to load what is present
  std::vector<std::uint8_t> tiers;  // one a key (a run: `run` of them); storage::TierKind, 0 absent
  friend bool operator==(const LookupReply&, const LookupReply&) noexcept = default;
};
struct Stat {
  RequestContext context;
  BlockDigest digest;
  friend bool operator==(const Stat&, const Stat&) noexcept = default;
};
struct List {
  RequestContext context;
  std::uint64_t cursor = 0;
  std::uint32_t limit = 0;
  friend bool operator==(const List&, const List&) noexcept = default;
};
struct ListReply {
  ReplyContext context;
  std::uint64_t next_cursor = 0;
  std::vector<BlockDigest> digests;  // at most kListKeysMax, of any lengths
  friend bool operator==(const ListReply&, const ListReply&) noexcept = default;
};
struct Usage {
  RequestContext context;
  friend bool operator==(const Usage&, const Usage&) noexcept = default;
};
struct Stats {
  RequestContext context;
  friend bool operator==(const Stats&, const Stats&) noexcept = default;
};
// StatReply, UsageReply, StatsReply: a JSON object of at most kJsonBytesMax, opaque here.
struct JsonReply {
  ReplyContext context;
  std::string json;
  friend bool operator==(const JsonReply&, const JsonReply&) noexcept = default;
};

// ---- keeping and leaving: at most kBatchKeysMax digests each ----
struct Retain {
  RequestContext context;
  std::uint32_t duration_ms = 0;  // 0 ends a retention
  std::vector<BlockDigest> digests;
  friend bool operator==(const Retain&, const Retain&) noexcept = default;
};
struct Prefetch {
  RequestContext context;
  std::vector<BlockDigest> digests;
  friend bool operator==(const Prefetch&, const Prefetch&) noexcept = default;
};
struct Remove {
  RequestContext context;
  std::vector<BlockDigest> digests;
  friend bool operator==(const Remove&, const Remove&) noexcept = default;
};
enum class HintKind : std::uint8_t { kEnds = 0, kGoesOn = 1, kReturnsIn = 2 };
struct Hint {
  RequestContext context;
  HintKind kind = HintKind::kEnds;
  std::uint32_t returns_in_ms = 0;
  std::vector<BlockDigest> digests;
  friend bool operator==(const Hint&, const Hint&) noexcept = default;
};
// Replies of put_inline, retain, prefetch, remove: one status a key. encode() takes no reasons as
// all kNone; decode() gives one a key.
struct StatusesReply {
  ReplyContext context;
  std::vector<BlockStatus> statuses;
  std::vector<BusyReason> reasons;
  friend bool operator==(const StatusesReply&, const StatusesReply&) noexcept = default;
};

void encode(const Lookup& message, std::uint64_t request_id, FrameWriter& frame);
void encode(const LookupReply& message, std::uint64_t request_id, FrameWriter& frame);
void encode(const Stat& message, std::uint64_t request_id, FrameWriter& frame);
void encode(const List& message, std::uint64_t request_id, FrameWriter& frame);
void encode(const ListReply& message, std::uint64_t request_id, FrameWriter& frame);
void encode(const Usage& message, std::uint64_t request_id, FrameWriter& frame);
void encode(const Stats& message, std::uint64_t request_id, FrameWriter& frame);
void encode(const Retain& message, std::uint64_t request_id, FrameWriter& frame);
void encode(const Prefetch& message, std::uint64_t request_id, FrameWriter& frame);
void encode(const Remove& message, std::uint64_t request_id, FrameWriter& frame);
void encode(const Hint& message, std::uint64_t request_id, FrameWriter& frame);

Status decode(const FrameView& frame, Lookup& out) noexcept;
Status decode(const FrameView& frame, LookupReply& out) noexcept;
Status decode(const FrameView& frame, Stat& out) noexcept;
Status decode(const FrameView& frame, List& out) noexcept;
Status decode(const FrameView& frame, ListReply& out) noexcept;
Status decode(const FrameView& frame, Usage& out) noexcept;
Status decode(const FrameView& frame, Stats& out) noexcept;
Status decode(const FrameView& frame, Retain& out) noexcept;
Status decode(const FrameView& frame, Prefetch& out) noexcept;
Status decode(const FrameView& frame, Remove& out) noexcept;
Status decode(const FrameView& frame, Hint& out) noexcept;

// `type` is kStatReply, kUsageReply or kStatsReply; CAIRN_CHECKed.
void encode(const JsonReply& message,
            MessageType type,
            std::uint64_t request_id,
            FrameWriter& frame);
Status decode(const FrameView& frame, JsonReply& out) noexcept;
// `type` is kPutInlineReply, kRetainReply, kPrefetchReply or kRemoveReply; CAIRN_CHECKed.
void encode(const StatusesReply& message,
            MessageType type,
            std::uint64_t request_id,
            FrameWriter& frame);
Status decode(const FrameView& frame, StatusesReply& out) noexcept;

}  // namespace cairn::wire
