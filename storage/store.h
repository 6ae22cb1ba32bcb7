// The face of storage that server/ includes: which blocks exist, room for new ones, pins on old
// ones, and who leaves. It moves no bytes: writers fill frames through their mapping, readers copy
// from frames they hold a pin on.
//
// Life of a block: reserve -> (bytes are written) -> commit -> pin/unpin ... -> evicted, removed or
// purged. A reservation claims space, not the key: several may be open for one key and the first
// commit wins.
#pragma once

#include "base/block_key.h"
#include "base/block_status.h"
#include "base/clock.h"
#include "base/result.h"
#include "base/units.h"
#include "storage/eviction/policy.h"
#include "storage/extent.h"
#include "storage/records_memory.h"
#include "storage/tier.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace cairn::storage {

// The number a namespace has inside this process; never on disk or on the wire.
using NamespaceSlot = StrongId<struct NamespaceSlotTag, std::uint32_t>;
inline constexpr std::uint32_t kNamespacesMax = 32'768;

// A namespace at the epoch that the caller opened.
struct Scope {
  NamespaceSlot slot;
  std::uint64_t epoch = 0;
  NamespaceDigest digest;  // for header pages
};

// A record in one of its lives. A ref whose record has moved on to another life is harmless: every
// call compares the generation.
struct BlockRef {
  RecordNumber record = 0;
  std::uint32_t generation = 0;
  friend auto operator<=>(const BlockRef&, const BlockRef&) noexcept = default;
};

struct LookupHit {
  TierKind tier = TierKind::kNone;  // kNone: not here
  std::uint32_t length = 0;
};

// A block that stays where it is until unpin(ref).
struct PinnedBlock {
  BlockRef ref;
  ExtentList extents;
  std::uint32_t length = 0;
};

struct ReserveItem {
  BlockDigest digest;
  std::uint32_t length = 0;  // 1 to 16 MiB
};

struct ReserveRequest {
  Scope scope;
  std::span<const ReserveItem> items;  // a chain, root first, when is_chain; else unrelated
  bool is_chain = true;
  std::optional<BlockDigest> parent;  // of items[0] (of every item if not a chain)
  std::uint32_t position = 0;         // of items[0] in its chain
  std::optional<BlockDigest> branch;  // carried from an earlier batch of the same request
  Milliseconds retain = Milliseconds(0);
};

struct ReserveOutcome {
  // kOk; kExists; kBusy (kFrames: every frame is pinned or reserved); kInvalid (length 0);
  // kTooLarge (over 16 MiB, or longer than the whole pool); kWrongNamespace (the scope's epoch is
  // not the current one); kCut (a chain failed at an earlier item).
  BlockStatus status = BlockStatus::kInvalid;
  BusyReason reason = BusyReason::kNone;
  BlockRef ref;        // when kOk
  ExtentList extents;  // when kOk
};

struct CommitItem {
  BlockRef ref;
  // CRC-32C of each 256 KiB chunk, chunk_count(length) of them.
  std::span<const std::uint32_t> checksums;
  // The attribute bytes of the header page (a TLV run of at most 2 KiB); may be empty.
  std::span<const std::byte> attributes;
};

struct BlockInfo {
  TierKind tier = TierKind::kNone;
  std::uint32_t length = 0;
  std::uint32_t pins = 0;
  bool is_retained = false;
};

struct StoreOptions {
  // Records at most; 0: one per 8 KiB of `pool_bytes`. Memory is touched only as it is used.
  std::uint32_t records_max = 0;
  ByteCount pool_bytes = 1_GiB;
  // Bytes that retention and holds may protect from eviction, as a share of the pool, 0 to 0.9.
  double retained_share = 0.20;
};

struct StoreStats {
  std::uint64_t resident_blocks = 0;
  ByteCount resident_bytes;  // frames of committed blocks, header pages included
  std::uint64_t open_reservations = 0;
  ByteCount reserved_bytes;
  ByteCount retained_bytes;
  std::uint64_t evictions = 0;
  ByteCount evicted_bytes;
  std::uint64_t commits = 0;
  std::uint64_t commit_exists = 0;
  std::uint64_t removed = 0;
  std::uint64_t corrupt_headers = 0;
  TierUsage dram;
  ByteCount records_memory;  // records, index, policy and allocator, in use
};

// Any thread. One mutex guards allocator, policy and record changes, held for a batch of at most 64
// keys at a time and never across a copy or a checksum of payload; lookup() and pin() take it only
// where a bucket of the index keeps changing under them.
class Store {
 public:
  // `dram` and `records` outlive the store. `records` is at least records_bytes(options) long and
  // zero filled. Errors: kInvalid (an option), kNoSpace (records too small, or no memory for their
  // first page), kIo.
  static Result<std::unique_ptr<Store>> open(const StoreOptions& options,
                                             Tier& dram,
                                             const RecordsMemory& records,
                                             std::unique_ptr<EvictionPolicy> policy,
                                             const Clock& clock) noexcept;
  static ByteCount records_bytes(const StoreOptions& options) noexcept;
  static std::uint32_t records_max(const StoreOptions& options) noexcept;
  ~Store();
  Store(const Store&) = delete;
  Store& operator=(const Store&) = delete;

  // Runs `change` on the tier under the store's mutex: slabs are added while the store serves.
  template <typename Change>
  void with_tier_locked(Change&& change);

  // ---- namespaces ----
  // Epochs only rise. Records of older epochs become invisible at once and are dropped by sweep().
  void set_epoch(NamespaceSlot slot, std::uint64_t epoch) noexcept;
  std::uint64_t epoch(NamespaceSlot slot) const noexcept;
  // Drops invisible records, looking at no more than `steps` records. True when none is left.
  bool sweep(std::uint32_t steps) noexcept;

  // ---- questions: never pin, promote or refresh; no lock ----
  // out[i] answers digests[i]; all absent when scope.epoch is not the current one.
  void lookup(const Scope& scope,
              std::span<const BlockDigest> digests,
              std::span<LookupHit> out) const noexcept;
  // The length of the leading run that is present; out[0..run) is filled.
  std::size_t lookup_run(const Scope& scope,
                         std::span<const BlockDigest> digests,
                         std::span<LookupHit> out) const noexcept;
  std::optional<BlockInfo> stat(const Scope& scope, const BlockDigest& digest) const noexcept;
  struct Listing {
    std::vector<BlockDigest> digests;
    std::uint64_t next_cursor = 0;  // 0: the end
  };
  // At most `limit` digests, looking at no more than 64 x limit + 4096 records from `cursor` (0:
  // the start). Blocks that come or go meanwhile may or may not be listed.
  Listing list(const Scope& scope, std::uint64_t cursor, std::size_t limit) const;

  // ---- reading ----
  std::optional<PinnedBlock> pin(const Scope& scope, const BlockDigest& digest) noexcept;
  void unpin(BlockRef ref) noexcept;
  // Copies the chunk checksums of a pinned block into `out` (chunk_count(length) of them). The
  // header page lies in memory that clients can write, so it is compared with the record's own hash
  // first. Errors: kCorrupt (the block is dropped and counted, and the caller answers a miss),
  // kInvalid (the size of `out`).
  Status checksums(const PinnedBlock& block, std::span<std::uint32_t> out) noexcept;
  // The attributes of a pinned block: the bytes copied into `out` (2 KiB suffice). Errors: kCorrupt
  // as above, kTooLarge (`out` is too small).
  Result<std::size_t> attributes(const PinnedBlock& block, std::span<std::byte> out) noexcept;
  // Counts a use of each and of their resident ancestors: the last ref is touched first, then the
  // one before, the ancestors of refs[0] last. A ref that is no longer live is skipped.
  void touch_root_first(std::span<const BlockRef> refs) noexcept;
  // Checks a pinned block's payload against its checksums, as asked by a reader that found it
  // corrupt. False: the bytes are wrong and the block is dropped.
  bool verify(const PinnedBlock& block) noexcept;

  // ---- writing ----
  // One outcome an item. The reply's branch: the one given, or the first item that was not there.
  std::optional<BlockDigest> reserve(const ReserveRequest& request,
                                     std::span<ReserveOutcome> out) noexcept;
  // Publishes: kOk; kExists (another commit won; the frame is freed); kWrongNamespace (the epoch
  // has moved on since the reservation, or the scope is another namespace's); kInvalid (number of
  // checksums); kTooLarge (attributes); kCancelled (no such reservation); kDeclined (the index
  // can't take this key: a crowd of equal hashes). Of items with one key any may win. Whatever the
  // answer, the reservation has ended. Then touches the new blocks leaf first and their resident
  // ancestors up to the root.
  void commit(const Scope& scope,
              std::span<const CommitItem> items,
              std::span<BlockStatus> out) noexcept;
  // Ends a reservation; the frame is free at once, so nobody may write to it any more.
  void abort(BlockRef ref) noexcept;

  // ---- leaving ----
  // kOk, or kMiss if it was not there. A pinned block becomes invisible now and is freed at its
  // last unpin.
  BlockStatus remove(const Scope& scope, const BlockDigest& digest) noexcept;
  // Drops coldest blocks until `bytes` of frames are freed or nothing can go; what was freed.
  ByteCount evict(ByteCount bytes) noexcept;
  // Protects from eviction for `duration`: kOk, kMiss, kQuota (over retained_share). Zero ends it.
  BlockStatus retain(const Scope& scope, const BlockDigest& digest, Milliseconds duration) noexcept;

  StoreStats stats() const noexcept;
  std::string_view policy_name() const noexcept;

 private:
  class Impl;
  explicit Store(std::unique_ptr<Impl> impl) noexcept;
  void lock_tier() noexcept;
  void unlock_tier() noexcept;
  Tier& tier() noexcept;
  std::unique_ptr<Impl> impl_;
};

template <typename Change>
void Store::with_tier_locked(Change&& change) {
  lock_tier();
  change(tier());
  unlock_tier();
}

}  // namespace cairn::storage
