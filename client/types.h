// What the SDK's calls take and give. Spans borrow: what they name lives until the ticket that they
// were given to is `returned` or its queue is destroyed (Queue), or until the call ends (Client).
#pragma once

#include "base/block_key.h"
#include "base/block_status.h"
#include "base/clock.h"
#include "base/units.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

namespace cairn::client {

enum class Verify : std::uint8_t { kAlways, kSample, kNever };  // kSample: one block in 64
enum class Priority : std::uint8_t { kLoad = 0, kPrefetch = 1, kStore = 2 };

struct ClientOptions {
  // unix:PATH or HOST:PORT (loopback) of the daemon on this host.
  std::string server = "unix:/run/cairn/cairnd.sock";
  // Shown in the daemon's log and session list.
  std::string name = "cairn-cpp";
  std::string token;
  // Deadline of a call that names none, 1 ms to 1 h.
  Milliseconds deadline = Milliseconds(5000);
  // Time to connect and say hello, 1 ms to 1 min.
  Milliseconds connect_timeout = Milliseconds(2000);
  // First and longest pause between reconnects; doubled each time with jitter.
  Milliseconds backoff_min = Milliseconds(10);
  Milliseconds backoff_max = Milliseconds(1000);
  // Threads that copy beside the caller, 0 to 64. 0: the SDK has no thread.
  std::uint32_t copy_threads = 0;
  Verify verify = Verify::kAlways;
  // False: a session for metadata and inline bytes, which maps no pool. TCP sessions never map.
  bool map_pool = true;
  // NUMA node of the caller's memory, -1: unknown.
  std::int32_t numa_node = -1;
  // How long a blocking wait looks for the answer before it sleeps, after a wait that was as short,
  // 0 (never) to 1 ms. On unix sockets, and while nothing is copied by copy_threads.
  Nanoseconds spin = std::chrono::microseconds(50);
  // Requests in flight a queue, 1 to 1024.
  std::uint32_t window = 256;

  // The name of the first field that is out of range, or nullopt.
  std::optional<const char*> validate() const noexcept;
};

// An open namespace: a value, good for every queue of its client. wrong_namespace sticks to it
// until the caller opens it again.
struct Namespace {
  NamespaceDigest digest;
  std::uint64_t epoch = 0;
  friend bool operator==(const Namespace&, const Namespace&) noexcept = default;
};

struct KeyResult {
  BlockStatus status = BlockStatus::kTimeout;
  BusyReason reason = BusyReason::kNone;
  std::uint64_t length = 0;  // of the block or object, where known
};

struct CallOptions {
  Milliseconds deadline = Milliseconds(0);  // 0: ClientOptions::deadline
  Priority priority = Priority::kLoad;
  std::uint64_t trace_id = 0;
};

// ---- lookup ----
struct LookupRequest {
  Namespace name_space;
  std::span<const BlockDigest> digests;
  bool is_run = true;                   // leading run, or a set
  std::span<const Namespace> gang;      // further namespaces that must have the keys too
  Milliseconds hold = Milliseconds(0);  // short retention of what is found
  // A set: tiers.size() == digests.size(); a run: may be empty, or as long. 0: absent, 1 HBM, 2
  // DRAM, 3 NVMe, 4 a peer.
  std::span<std::uint8_t> tiers;
  CallOptions call;
};
struct LookupAnswer {
  BlockStatus status = BlockStatus::kTimeout;  // kOk, or why nothing is known
  BusyReason reason = BusyReason::kNone;
  std::uint32_t run = 0;
  std::chrono::microseconds load_estimate{0};
};

// ---- get ----
// Copies: targets[i] receives the block's bytes from its front; shorter than the block: kTooLarge
// and nothing is written.
struct GetRequest {
  Namespace name_space;
  std::span<const BlockDigest> digests;
  std::span<const std::span<std::byte>> targets;
  bool is_chain = true;
  std::optional<Verify> verify;
  std::span<KeyResult> results;  // one a digest
  CallOptions call;
};

// A block in place: its payload's pieces, in order, in the mapped pool. Stays right, whatever
// happens to the daemon, until it is released.
struct BlockView {
  std::array<std::span<const std::byte>, kExtentsMax> pieces{};
  std::uint32_t piece_count = 0;
  std::uint32_t length = 0;
  std::uint64_t lend = 0;  // 0: nothing to release
};
struct GetViewsRequest {
  Namespace name_space;
  std::span<const BlockDigest> digests;
  bool is_chain = true;
  std::optional<Verify> verify;
  std::span<BlockView> views;    // one a digest; set where the status is kOk
  std::span<KeyResult> results;  // one a digest
  CallOptions call;
};

// ---- put ----
struct PutPlacement {
  bool is_chain = true;               // digests are a chain, root first
  std::optional<BlockDigest> parent;  // of digests[0]
  std::uint32_t position = 0;         // of digests[0] in its chain
  std::optional<BlockDigest> branch;  // from an earlier put of the same request
  Milliseconds retain = Milliseconds(0);
  bool is_durable = false;
};
// Copies sources[i] (1 B to 16 MiB; larger ones are split into parts) into the store.
struct PutRequest {
  Namespace name_space;
  std::span<const BlockDigest> digests;
  std::span<const std::span<const std::byte>> sources;
  PutPlacement placement;
  std::span<KeyResult> results;  // one a digest: kOk, kExists, kBusy, kDeclined, ...
  CallOptions call;
};
// A lent frame that the caller fills in place.
struct BlockReservation {
  std::array<std::span<std::byte>, kExtentsMax> pieces{};
  std::uint32_t piece_count = 0;
  std::uint32_t length = 0;
  std::uint64_t lend = 0;  // 0: nothing is lent
};
struct ReserveRequest {
  Namespace name_space;
  std::span<const BlockDigest> digests;
  std::span<const std::uint32_t> lengths;
  PutPlacement placement;
  std::span<BlockReservation> reservations;  // one a digest; set where the status is kOk
  std::span<KeyResult> results;
  CallOptions call;
};
// Ends each reservation, whatever the status. The SDK computes the checksums from the frame unless
// they are given (chunk_count(length) of each reservation, in order).
struct CommitRequest {
  Namespace name_space;
  std::span<const BlockReservation> reservations;
  std::span<const std::uint32_t> checksums;
  std::span<KeyResult> results;
  CallOptions call;
};

// ---- keeping and leaving ----
struct KeysRequest {
  Namespace name_space;
  std::span<const BlockDigest> digests;
  std::span<KeyResult> results;
  CallOptions call;
};

}  // namespace cairn::client
