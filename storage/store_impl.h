// Inside of Store, shared by its source files. store.h is the face.
#pragma once

#include "base/checksum.h"
#include "base/mutex.h"
#include "storage/block_index.h"
#include "storage/block_query.h"
#include "storage/namespace_epochs.h"
#include "storage/record_table.h"
#include "storage/retention.h"
#include "storage/store.h"
#include "storage/touch_order.h"

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace cairn::storage {

// Keys that one stay under the mutex works on.
inline constexpr std::size_t kLockBatch = 64;
// Blocks that one stay under the mutex evicts at most; a request that needs more comes back.
inline constexpr std::uint32_t kEvictionsPerStay = 1024;

// Records that one stay under the mutex looks at while sweeping: mostly one cache line each.
inline constexpr std::uint32_t kSweepStay = 256;
// Longer retention is cut to this.
inline constexpr Milliseconds kRetainMax = std::chrono::hours(24 * 30);

// The record's proofs of what stands in the header page, which clients can write.
inline std::uint64_t checksums_hash_of(std::span<const std::uint32_t> checksums) noexcept {
  return xxh3_64(std::as_bytes(checksums));
}
inline std::uint32_t attributes_hash_of(std::span<const std::byte> attributes) noexcept {
  return static_cast<std::uint32_t>(xxh3_64(attributes));
}

// What a reservation knows that its record does not.
struct Reservation {
  std::uint32_t generation = 0;
  bool is_claimed = false;  // a commit is at work on it
  std::uint32_t position = 0;
  std::optional<BlockDigest> parent;
  BlockDigest branch;
  Milliseconds retain = Milliseconds(0);
};

// A commit of one item on its way.
struct Claim {
  BlockRef ref;
  Reservation reservation;
  ExtentList extents;
  std::uint32_t length = 0;
  std::uint64_t checksums_hash = 0;
  std::uint32_t attributes_hash = 0;
  // kOk until something is found; then what to answer.
  BlockStatus status = BlockStatus::kOk;
  bool has_frame = false;  // claimed, and neither published nor freed
  TouchTip used;           // the block to touch, where there is one
  bool is_used = false;
};

// Where a search for something to drop stands, within one stay under the mutex. `after` could not
// be dropped, like everything colder.
struct VictimScan {
  std::optional<RecordNumber> after;
  bool takes_retained = false;
  std::uint32_t evictions = 0;
};

class Store::Impl {
 public:
  struct Parts {
    StoreOptions options;
    RecordTable records;
    std::unique_ptr<BlockIndex> index;
    NamespaceEpochs epochs;
    std::unique_ptr<EvictionPolicy> policy;
  };
  Impl(Parts parts, Tier& dram, const Clock& clock) noexcept;

  // store_admin.cc
  void set_epoch(NamespaceSlot slot, std::uint64_t epoch) noexcept;
  std::uint64_t epoch(NamespaceSlot slot) const noexcept { return epochs_.get(slot); }
  bool sweep(std::uint32_t steps) noexcept;
  Listing list(const Scope& scope, std::uint64_t cursor, std::size_t limit) const;
  std::optional<BlockInfo> stat(const Scope& scope, const BlockDigest& digest) const noexcept;
  BlockStatus retain(const Scope& scope, const BlockDigest& digest, Milliseconds duration) noexcept;
  StoreStats stats() const noexcept;
  std::string_view policy_name() const noexcept { return policy_->name(); }
  void lock() noexcept CAIRN_ACQUIRE(mutex_) { mutex_.lock(); }
  void unlock() noexcept CAIRN_RELEASE(mutex_) { mutex_.unlock(); }
  Tier& tier() noexcept { return dram_; }

  // store_lookup.cc
  void lookup(const Scope& scope,
              std::span<const BlockDigest> digests,
              std::span<LookupHit> out) const noexcept;
  std::size_t lookup_run(const Scope& scope,
                         std::span<const BlockDigest> digests,
                         std::span<LookupHit> out) const noexcept;

  // store_read.cc
  std::optional<PinnedBlock> pin(const Scope& scope, const BlockDigest& digest) noexcept;
  void unpin(BlockRef ref) noexcept;
  Status checksums(const PinnedBlock& block, std::span<std::uint32_t> out) noexcept;
  Result<std::size_t> attributes(const PinnedBlock& block, std::span<std::byte> out) noexcept;
  bool verify(const PinnedBlock& block) noexcept;

  // store_reserve.cc
  std::optional<BlockDigest> reserve(const ReserveRequest& request,
                                     std::span<ReserveOutcome> out) noexcept;
  void abort(BlockRef ref) noexcept;

  // store_commit.cc
  void commit(const Scope& scope,
              std::span<const CommitItem> items,
              std::span<BlockStatus> out) noexcept;

  // store_touch.cc
  void touch(std::span<const TouchTip> tips) noexcept;

  // store_evict.cc
  BlockStatus remove(const Scope& scope, const BlockDigest& digest) noexcept;
  ByteCount evict(ByteCount bytes) noexcept;

 private:
  struct ReservePass;

  // Without the mutex; takes it when a bucket keeps changing.
  std::optional<BlockRef> find(const BlockQuery& query) const noexcept CAIRN_EXCLUDES(mutex_);
  std::optional<BlockRef> find_locked(const BlockQuery& query) const noexcept
      CAIRN_REQUIRES(mutex_);
  // One group of at most kLookupGroup keys; the length of its leading run.
  void lookup_group(const Scope& scope,
                    std::span<const BlockDigest> digests,
                    std::span<LookupHit> out) const noexcept;

  // Frees what can be freed of a live block: unlinks it, and frees the frame unless it is pinned.
  void drop_locked(RecordNumber number) noexcept CAIRN_REQUIRES(mutex_);
  // Takes a block that is no longer live out of index, policy and counters.
  void unlink_locked(RecordNumber number) noexcept CAIRN_REQUIRES(mutex_);
  // The frame and the number of a record whose state is free.
  void free_locked(RecordNumber number) noexcept CAIRN_REQUIRES(mutex_);
  // Looks at no more than `steps` records, and drops those of an older epoch.
  void sweep_locked(std::uint32_t steps) noexcept CAIRN_REQUIRES(mutex_);
  // Drops a pinned block whose header page or payload is wrong.
  void drop_corrupt(const PinnedBlock& block) noexcept CAIRN_EXCLUDES(mutex_);
  // Bytes freed by dropping the coldest block that can go; nullopt when none can.
  std::optional<ByteCount> evict_coldest_locked(VictimScan& scan) noexcept CAIRN_REQUIRES(mutex_);

  ByteCount frame_bytes(const ExtentList& extents) const noexcept;

  // The parent of a live block, where it is live too.
  std::optional<BlockRef> resident_parent(BlockRef block) noexcept CAIRN_EXCLUDES(mutex_);
  // As above when the parent's record has moved on: the parent may have come back in another, or
  // have lost to another commit of its key. The block's header page names it.
  std::optional<BlockRef> find_lost_parent(BlockRef block) noexcept CAIRN_EXCLUDES(mutex_);
  // False when the header page of a pinned block names no parent.
  bool read_parent(const Record& record, DigestWords& parent) const noexcept;

  // reserve(), in turn
  std::vector<BlockRef> touch_existing(std::span<const BlockQuery> queries) noexcept;
  void reserve_some_locked(ReservePass& pass) noexcept CAIRN_REQUIRES(mutex_);
  std::optional<ReserveOutcome> reserve_item_locked(ReservePass& pass) noexcept
      CAIRN_REQUIRES(mutex_);
  std::optional<ReserveOutcome> take_frame_locked(ReservePass& pass, ParentLink parent) noexcept
      CAIRN_REQUIRES(mutex_);
  ReserveOutcome open_locked(const ReservePass& pass,
                             RecordNumber number,
                             const ExtentList& extents,
                             ParentLink parent) noexcept CAIRN_REQUIRES(mutex_);
  ParentLink parent_of_next_locked(const ReservePass& pass) const noexcept CAIRN_REQUIRES(mutex_);
  // The reservation ends unpublished.
  void close_locked(RecordNumber number) noexcept CAIRN_REQUIRES(mutex_);

  // commit(), in turn
  void claim_locked(BlockRef ref, Claim& claim) noexcept CAIRN_REQUIRES(mutex_);
  void write_header(const Scope& scope, const CommitItem& item, Claim& claim) noexcept;
  void publish_locked(const Scope& scope, Claim& claim, std::uint32_t insertion) noexcept
      CAIRN_REQUIRES(mutex_);

  StoreOptions options_;
  Tier& dram_;
  const Clock& clock_;
  RecordTable records_;
  std::unique_ptr<BlockIndex> index_;
  NamespaceEpochs epochs_;
  ByteCount granule_;

  // Guards what follows, the tier, and every change of records, index and epochs. No other lock is
  // taken while it is held.
  mutable Mutex mutex_;
  std::unique_ptr<EvictionPolicy> policy_;
  Retention retention_ CAIRN_GUARDED_BY(mutex_);
  std::unordered_map<RecordNumber, Reservation> reservations_ CAIRN_GUARDED_BY(mutex_);
  // Sums over what is resident or reserved now, and counts since the start.
  StoreStats counted_ CAIRN_GUARDED_BY(mutex_);
  // The sweep is done when it has looked at this many more records.
  std::uint32_t sweep_left_ CAIRN_GUARDED_BY(mutex_) = 0;
  std::uint32_t sweep_at_ CAIRN_GUARDED_BY(mutex_) = 0;
};

}  // namespace cairn::storage
