// From a key's tag to the numbers of the records that may hold it. Found by many threads without a
// lock, changed by the holder of the store's mutex.
#pragma once

#include "base/atomics.h"
#include "base/result.h"
#include "base/units.h"
#include "storage/index_bucket.h"
#include "storage/lazy_memory.h"
#include "storage/reader_gate.h"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace cairn::storage {

// Grows by half when four of five slots are taken: 11.4 to 17.2 bytes an entry. A tag is 32 bits of
// the key's hash and decides the bucket too, so growing never looks at a record.
// Without the padding entries_, which writers change, would share a cache line with table_, which
// every reader loads.
// NOLINTNEXTLINE(clang-analyzer-optin.performance.Padding)
class BlockIndex {
 public:
  using Row = BasicBucketRow<StdAtomics>;
  using Bucket = Row::Bucket;

  // Errors: kNoSpace.
  static Result<std::unique_ptr<BlockIndex>> create() noexcept;
  ~BlockIndex();
  BlockIndex(const BlockIndex&) = delete;
  BlockIndex& operator=(const BlockIndex&) = delete;

  // A reader's stay: the row is valid until it ends. Any thread.
  class Reading {
   public:
    explicit Reading(const BlockIndex& index) noexcept
        : gate_(index.gate_),
          side_(gate_.enter()),
          row_(index.table_.load(std::memory_order_seq_cst)->row) {}
    ~Reading() { gate_.leave(side_); }
    Reading(const Reading&) = delete;
    Reading& operator=(const Reading&) = delete;
    const Row& row() const noexcept { return row_; }

   private:
    BasicReaderGate<StdAtomics>& gate_;
    std::uint32_t side_;
    const Row& row_;
  };

  // The rest is for the holder of the store's mutex.

  const Row& row_locked() const noexcept { return table_.load(std::memory_order_relaxed)->row; }
  // False when there is no room: more than kProbeBucketsMax x 7 entries crowd around one tag, which
  // happens to no hash of honest keys, or there is no memory to grow. Nothing is changed then.
  [[nodiscard]] bool insert(std::uint32_t tag, std::uint32_t record) noexcept;
  // The entry is here.
  void erase(std::uint32_t tag, std::uint32_t record) noexcept;
  // Frees replaced tables when no reader is left in them. insert() does so as well.
  void reclaim() noexcept;

  std::size_t entries() const noexcept { return entries_; }
  std::size_t slots() const noexcept { return row_locked().size() * kBucketSlots; }
  // Tables in use, replaced ones that a reader may still be in included.
  ByteCount memory() const noexcept;

 private:
  struct Table {
    LazyMemory memory;
    Row row;
  };

  explicit BlockIndex(std::unique_ptr<Table> table) noexcept;
  static Result<std::unique_ptr<Table>> make_table(std::size_t buckets) noexcept;
  bool grow() noexcept;

  std::atomic<Table*> table_;
  std::unique_ptr<Table> owner_;
  std::vector<std::unique_ptr<Table>> replaced_;
  mutable BasicReaderGate<StdAtomics> gate_;
  std::size_t entries_ = 0;
};

}  // namespace cairn::storage
