// Where blocks lie on NVMe: 16 bytes a slot, and no key. A slot that matches is a candidate; the
// frame that is read there proves itself, or the block is a miss.
#pragma once

#include "base/mutex.h"
#include "base/result.h"
#include "base/units.h"
#include "storage/lazy_memory.h"

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

namespace cairn::storage {

inline constexpr std::uint8_t kLogDevicesMax = 16;
inline constexpr std::uint32_t kLogSegmentsMax = 1U << 20U;
inline constexpr std::uint32_t kFramePagesMin = 2;      // header page and one of payload
inline constexpr std::uint32_t kFramePagesMax = 4'097;  // header page and 16 MiB

// A frame on a device. Of the generation an index keeps the low 12 bits.
struct LogPlace {
  std::uint8_t device = 0;       // below kLogDevicesMax
  std::uint32_t segment = 0;     // below kLogSegmentsMax
  std::uint16_t page = 0;        // of the frame, from the segment's begin; never 0
  std::uint16_t pages = 0;       // kFramePagesMin to kFramePagesMax
  std::uint16_t generation = 0;  // of the segment, modulo 4096
  friend bool operator==(const LogPlace&, const LogPlace&) noexcept = default;
};
inline constexpr std::uint16_t kPlaceGenerations = 4'096;

// A key as the index sees it.
struct LogKey {
  std::uint64_t hash = 0;       // frame_key_hash()
  std::uint8_t name_space = 0;  // some bits of the namespace's digest
};

struct LogCandidate {
  LogPlace place;
  std::uint8_t hits = 0;  // 0 to 7: times touched since it was inserted
};
inline constexpr std::size_t kLogCandidatesMax = 4;
using LogCandidates = std::array<LogCandidate, kLogCandidatesMax>;

// A fixed table of buckets of eight slots; a key has two buckets. When both are full the entry with
// the fewest hits leaves: a cache may drop one (0.16 % of the entries while it fills).
// find() and touch() by any thread without a lock; the rest takes turns on a mutex.
class LogIndex {
 public:
  // Room for `entries` (at least 1) at 0.85 full. Errors: kNoSpace.
  static Result<std::unique_ptr<LogIndex>> create(std::size_t entries) noexcept;
  LogIndex(const LogIndex&) = delete;
  LogIndex& operator=(const LogIndex&) = delete;
  ~LogIndex() = default;

  // Begins to fetch what find() of this key will look at.
  void prefetch(const LogKey& key) const noexcept;
  // How many of `out` are filled.
  std::size_t find(const LogKey& key, LogCandidates& out) const noexcept;
  void touch(const LogKey& key, const LogPlace& place) noexcept;

  // What had to leave for it.
  std::optional<LogPlace> insert(const LogKey& key, const LogPlace& place) noexcept;
  // Only if `key` is at `expected` still. The hits start anew.
  bool replace(const LogKey& key, const LogPlace& expected, const LogPlace& place) noexcept;
  bool erase(const LogKey& key, const LogPlace& expected) noexcept;

  std::size_t entries() const noexcept { return entries_.load(std::memory_order_relaxed); }
  std::size_t slots() const noexcept { return buckets_.size() * kBucketSlots; }
  std::uint64_t displaced() const noexcept { return displaced_.load(std::memory_order_relaxed); }
  ByteCount memory() const noexcept { return ByteCount(buckets_.size_bytes()); }

 private:
  static constexpr std::size_t kBucketSlots = 8;
  // `place` is 0 while the slot is free or being written. Both words carry a part of a check, so a
  // reader that gets the halves of two entries sees that they do not belong together.
  struct Slot {
    std::atomic<std::uint64_t> key{0};
    std::atomic<std::uint64_t> place{0};
  };
  struct alignas(2 * 64) Bucket {
    std::array<Slot, kBucketSlots> slots;
  };
  static_assert(sizeof(Bucket) == kBucketSlots * 16);
  using Pair = std::array<std::size_t, 2>;

  explicit LogIndex(LazyMemory memory) noexcept;
  Pair buckets_of(std::uint64_t hash) const noexcept;
  Slot* find_slot(const LogKey& key, const LogPlace& place) const noexcept;
  Slot& slot_for_insert(std::uint64_t hash) noexcept CAIRN_REQUIRES(mutex_);

  LazyMemory memory_;
  std::span<Bucket> buckets_;
  Mutex mutex_;
  std::atomic<std::size_t> entries_{0};      // written under the mutex
  std::atomic<std::uint64_t> displaced_{0};  // written under the mutex
};

}  // namespace cairn::storage
