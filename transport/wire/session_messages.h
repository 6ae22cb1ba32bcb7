// The messages that make, mend and describe a session, and those that name a namespace.
#pragma once

#include "transport/wire/context.h"

#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace cairn::wire {

// TLV types. Unknown ones are skipped, a known one that comes twice is kCorrupt.
inline constexpr std::uint16_t kTlvToken = 1;       // hello: authentication token
inline constexpr std::uint16_t kTlvClientName = 2;  // hello: "cairn-cpp/0.1.0 (pid 12 replay)"
inline constexpr std::size_t kTokenBytesMax = 4'096;
inline constexpr std::size_t kClientNameBytesMax = 256;  // a longer one is cut by encode()
inline constexpr std::size_t kFingerprintBytesMax = 65'536;
// Lends that one session may hold at a time; beyond it busy / lent_limit. What a session holds must
// fit one resume, since what a resume does not list is released.
inline constexpr std::uint32_t kSessionLendsMax = 32'768;

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

// What the daemon takes, as announced in its hello. decode() believes any number; a client keeps to
// the smaller of these and its own.
struct Limits {
  std::uint32_t message_bytes = static_cast<std::uint32_t>(kMessageBytesMax.value());
  std::uint32_t lookup_keys = kLookupKeysMax;
  std::uint32_t batch_keys = kBatchKeysMax;
  std::uint32_t requests_in_flight = kRequestsInFlightMax;
  std::uint32_t namespaces = kSessionNamespacesMax;
  std::uint32_t inline_bytes = static_cast<std::uint32_t>(kInlineBytesMax.value());
  std::uint64_t block_bytes = kBlockBytesMax.value();
  std::uint32_t session_lends = kSessionLendsMax;
  friend bool operator==(const Limits&, const Limits&) noexcept = default;
};

// ---- session ----
// On a unix socket the frame carries the client's pidfd.
struct Hello {
  std::uint16_t version_min = kProtocolVersion;
  std::uint16_t version_max = kProtocolVersion;  // at least version_min
  std::uint64_t features = 0;
  std::uint32_t pid = 0;
  std::int32_t numa_node = -1;
  std::int32_t gpu = -1;
  bool wants_mapping = true;
  std::string client_name;  // TLV
  std::string token;        // TLV
  friend bool operator==(const Hello&, const Hello&) noexcept = default;
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
  friend bool operator==(const HelloReply&, const HelloReply&) noexcept = default;
};
struct Join {
  std::uint64_t session = 0;
  SessionSecret secret;
  friend bool operator==(const Join&, const Join&) noexcept = default;
};
struct JoinReply {
  ReplyContext context;  // kForbidden: no such session or another secret
  friend bool operator==(const JoinReply&, const JoinReply&) noexcept = default;
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
  std::vector<HeldLend> held;  // at most kSessionLendsMax
  friend bool operator==(const Resume&, const Resume&) noexcept = default;
};
struct ResumeReply {
  ReplyContext context;
  std::vector<std::uint8_t> kept;  // one a lend: 1 lent to the new session, 0 unknown here
  friend bool operator==(const ResumeReply&, const ResumeReply&) noexcept = default;
};
struct Ping {
  friend bool operator==(const Ping&, const Ping&) noexcept = default;
};
struct Pong {
  friend bool operator==(const Pong&, const Pong&) noexcept = default;
};
// Carries the slab's descriptor.
struct SlabNotice {
  std::uint32_t slab = 0;
  std::uint32_t generation = 0;
  std::uint64_t bytes = 0;
  std::uint8_t page_kind = 0;  // 0 small, 1 transparent huge, 2 huge
  friend bool operator==(const SlabNotice&, const SlabNotice&) noexcept = default;
};

// ---- namespaces ----
struct NamespaceOpen {
  RequestContext context;
  std::string fingerprint;  // a JSON object; the daemon canonicalises it
  friend bool operator==(const NamespaceOpen&, const NamespaceOpen&) noexcept = default;
};
struct NamespaceOpenReply {
  ReplyContext context;
  NamespaceDigest digest;
  std::uint64_t epoch = 0;
  std::string message;  // why it was refused, for people
  friend bool operator==(const NamespaceOpenReply&, const NamespaceOpenReply&) noexcept = default;
};
struct Bind {
  RequestContext context;  // digest and epoch that the client had
  friend bool operator==(const Bind&, const Bind&) noexcept = default;
};
struct BindReply {
  ReplyContext context;  // kOk or kWrongNamespace
  friend bool operator==(const BindReply&, const BindReply&) noexcept = default;
};
struct Purge {
  RequestContext context;
  friend bool operator==(const Purge&, const Purge&) noexcept = default;
};
struct PurgeReply {
  ReplyContext context;
  std::uint64_t epoch = 0;  // the new one
  bool is_complete = false;
  friend bool operator==(const PurgeReply&, const PurgeReply&) noexcept = default;
};

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

}  // namespace cairn::wire
