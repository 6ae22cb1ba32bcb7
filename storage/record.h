// What the daemon decides by, one a resident block or open reservation, outside any client's
// mapping. Source: docs/formats.md, "Record".
#pragma once

#include "base/atomics.h"
#include "base/block_key.h"
#include "base/check.h"
#include "base/units.h"
#include "storage/extent.h"
#include "storage/pin_word.h"

#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>

namespace cairn::storage {

// A block digest as lookups compare it: four words of the zero-padded bytes, and the size.
struct DigestWords {
  std::array<std::uint64_t, 4> words{};
  std::uint8_t bytes = 0;
  friend bool operator==(const DigestWords&, const DigestWords&) noexcept = default;
};

inline DigestWords digest_words(const BlockDigest& digest) noexcept {
  static_assert(std::endian::native == std::endian::little);
  DigestWords out;
  std::memcpy(out.words.data(), digest.padded().data(), sizeof(out.words));
  out.bytes = static_cast<std::uint8_t>(digest.size());
  return out;
}

inline BlockDigest block_digest(const DigestWords& digest) noexcept {
  const auto bytes = std::as_bytes(std::span(digest.words));
  return BlockDigest::from(bytes.first(digest.bytes)).value_or(BlockDigest());
}

// The record of the parent in the life it had. kNone: the block is a root. kAbsent: it has a parent
// that was not there; the header page names it.
struct ParentLink {
  static constexpr std::uint32_t kNone = std::numeric_limits<std::uint32_t>::max();
  static constexpr std::uint32_t kAbsent = kNone - 1;
  std::uint32_t record = kNone;
  std::uint32_t generation = 0;
  friend bool operator==(const ParentLink&, const ParentLink&) noexcept = default;
};

// Where the frame lies on an NVMe device; all zero: nowhere.
struct NvmeLocation {
  std::uint32_t segment = 0;
  std::uint32_t segment_generation = 0;
  std::uint32_t offset_granules = 0;  // 4 KiB each, from the segment's start
};

// A field that threads without the mutex read. Loads acquire and stores release: a reader checks
// the pin word's generation after its loads (BasicPinWord::is_still says why that is enough). On
// x86 both are plain moves.
template <typename Atomics, typename T>
class RecordField {
 public:
  T load() const noexcept { return value_.load(std::memory_order_acquire); }
  void store(T value) noexcept { value_.store(value, std::memory_order_release); }

 private:
  typename Atomics::template Atomic<T> value_{T{}};
};

// 128 bytes; the first 64 are all that a lookup reads. Fields change under the store's mutex.
template <typename Atomics>
class alignas(64) BasicRecord {
 public:
  BasicPinWord<Atomics>& pin_word() noexcept { return pin_word_; }
  const BasicPinWord<Atomics>& pin_word() const noexcept { return pin_word_; }

  bool has_key(std::uint32_t slot, const DigestWords& digest) const noexcept {
    return slot_.load() == slot && digest_bytes_.load() == digest.bytes &&
           digest_[0].load() == digest.words[0] && digest_[1].load() == digest.words[1] &&
           digest_[2].load() == digest.words[2] && digest_[3].load() == digest.words[3];
  }
  void set_key(std::uint32_t slot, const DigestWords& digest) noexcept {
    slot_.store(static_cast<std::uint16_t>(slot));
    digest_bytes_.store(digest.bytes);
    for (std::size_t i = 0; i < digest_.size(); ++i)
      digest_[i].store(digest.words[i]);
  }
  std::uint32_t slot() const noexcept { return slot_.load(); }
  DigestWords digest() const noexcept {
    DigestWords out;
    for (std::size_t i = 0; i < digest_.size(); ++i)
      out.words[i] = digest_[i].load();
    out.bytes = digest_bytes_.load();
    return out;
  }

  std::uint64_t epoch() const noexcept { return epoch_.load(); }
  void set_epoch(std::uint64_t epoch) noexcept { epoch_.store(epoch); }
  std::uint32_t length() const noexcept { return length_.load(); }
  void set_length(std::uint32_t length) noexcept { length_.store(length); }

  // One word, so that a reader never sees half of a link.
  ParentLink parent() const noexcept {
    const std::uint64_t word = parent_.load();
    return {static_cast<std::uint32_t>(word), static_cast<std::uint32_t>(word >> 32U)};
  }
  void set_parent(ParentLink link) noexcept {
    parent_.store(std::uint64_t{link.generation} << 32U | link.record);
  }

  ExtentList extents() const noexcept {
    ExtentList out;
    const std::size_t count = extent_count_.load();
    for (std::size_t i = 0; i < count && i < extents_.size(); ++i) {
      const std::uint64_t word = extents_[i].load();
      out.push({static_cast<std::uint32_t>(word), static_cast<std::uint32_t>(word >> 32U)});
    }
    return out;
  }
  void set_extents(const ExtentList& list) noexcept {
    extent_count_.store(static_cast<std::uint8_t>(list.size()));
    for (std::size_t i = 0; i < extents_.size(); ++i) {
      const Extent extent = i < list.size() ? list.items()[i] : Extent{};
      extents_[i].store(std::uint64_t{extent.count} << 32U | extent.first);
    }
  }

  // XXH3-64 over the chunk checksums as they stand in the header page.
  std::uint64_t checksums_hash() const noexcept { return checksums_hash_.load(); }
  void set_checksums_hash(std::uint64_t hash) noexcept { checksums_hash_.store(hash); }
  // The low half of XXH3-64 over the attribute bytes.
  std::uint32_t attributes_hash() const noexcept { return attributes_hash_.load(); }
  void set_attributes_hash(std::uint32_t hash) noexcept { attributes_hash_.store(hash); }
  // XXH3-64 over the digest of the branch's first block, without namespace.
  std::uint64_t branch_hash() const noexcept { return branch_hash_.load(); }
  void set_branch_hash(std::uint64_t hash) noexcept { branch_hash_.store(hash); }

  NvmeLocation nvme() const noexcept {
    return {nvme_segment_.load(), nvme_segment_generation_.load(), nvme_offset_.load()};
  }
  void set_nvme(const NvmeLocation& location) noexcept {
    nvme_segment_.store(location.segment);
    nvme_segment_generation_.store(location.segment_generation);
    nvme_offset_.store(location.offset_granules);
  }

 private:
  template <typename T>
  using Field = RecordField<Atomics, T>;

  std::array<Field<std::uint64_t>, 4> digest_;    // 0
  BasicPinWord<Atomics> pin_word_;                // 32
  Field<std::uint64_t> epoch_;                    // 40
  Field<std::uint32_t> length_;                   // 48
  Field<std::uint16_t> slot_;                     // 52
  Field<std::uint8_t> digest_bytes_;              // 54
  Field<std::uint8_t> extent_count_;              // 55
  Field<std::uint64_t> parent_;                   // 56
  std::array<Field<std::uint64_t>, 4> extents_;   // 64
  Field<std::uint64_t> checksums_hash_;           // 96
  Field<std::uint64_t> branch_hash_;              // 104
  Field<std::uint32_t> nvme_segment_;             // 112
  Field<std::uint32_t> nvme_segment_generation_;  // 116
  Field<std::uint32_t> nvme_offset_;              // 120
  Field<std::uint32_t> attributes_hash_;          // 124

  friend struct RecordLayout;
};

using Record = BasicRecord<StdAtomics>;

// The layout of docs/formats.md, "Record".
struct RecordLayout {
  static_assert(sizeof(Record) == 128 && alignof(Record) == 64);
  static_assert(std::atomic<std::uint64_t>::is_always_lock_free);
  static_assert(offsetof(Record, pin_word_) == 32);
  static_assert(offsetof(Record, epoch_) == 40);
  static_assert(offsetof(Record, length_) == 48);
  static_assert(offsetof(Record, slot_) == 52);
  static_assert(offsetof(Record, digest_bytes_) == 54);
  static_assert(offsetof(Record, extent_count_) == 55);
  static_assert(offsetof(Record, parent_) == 56);
  static_assert(offsetof(Record, extents_) == 64);
  static_assert(offsetof(Record, checksums_hash_) == 96);
  static_assert(offsetof(Record, branch_hash_) == 104);
  static_assert(offsetof(Record, nvme_segment_) == 112);
  static_assert(offsetof(Record, nvme_segment_generation_) == 116);
  static_assert(offsetof(Record, nvme_offset_) == 120);
  static_assert(offsetof(Record, attributes_hash_) == 124);
};

inline constexpr ByteCount kRecordBytes = ByteCount(sizeof(Record));

}  // namespace cairn::storage
