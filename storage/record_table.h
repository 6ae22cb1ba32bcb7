// The records by number, and which numbers are free. The records file begins with a page that says
// what it holds; docs/formats.md, "Record".
#pragma once

#include "base/result.h"
#include "base/units.h"
#include "storage/eviction/policy.h"
#include "storage/record.h"
#include "storage/records_memory.h"

#include <atomic>
#include <cstdint>
#include <optional>
#include <span>

namespace cairn::storage {

// One half of 2^32, so that a number plus one and the mark "none" fit in 32 bits.
inline constexpr std::uint32_t kRecordsMax = 1U << 31U;

// take() and give_back() are for the holder of the store's mutex; the rest is any thread's.
class RecordTable {
 public:
  static ByteCount bytes_for(std::uint32_t records_max) noexcept {
    return kHeaderBytes + kRecordBytes * records_max;
  }
  // Writes the first page of `memory`, which is zero filled and outlives the table. Errors:
  // kInvalid (records_max is 0 or over kRecordsMax), kNoSpace (shorter than bytes_for(), or its
  // first page cannot be had), kIo.
  static Result<RecordTable> create(const RecordsMemory& memory,
                                    std::uint32_t records_max) noexcept;

  Record& operator[](RecordNumber number) const noexcept { return records_[number]; }
  // Numbers below were used at some time.
  std::uint32_t used() const noexcept { return used_.load(std::memory_order_acquire); }
  std::uint32_t capacity() const noexcept { return static_cast<std::uint32_t>(records_.size()); }

  // A record whose state is free; nullopt when all are taken, or when there is no memory for
  // another (a later call asks again). The last one given back comes first, so that memory in use
  // stays small.
  std::optional<RecordNumber> take() noexcept;
  void give_back(RecordNumber number) noexcept;

  ByteCount memory() const noexcept { return kHeaderBytes + kRecordBytes * used(); }

  // Only before the table is used by more than one thread.
  RecordTable(RecordTable&& other) noexcept;
  RecordTable& operator=(RecordTable&& other) noexcept;
  RecordTable(const RecordTable&) = delete;
  RecordTable& operator=(const RecordTable&) = delete;
  ~RecordTable() = default;

 private:
  RecordTable(const RecordsMemory& memory, std::span<Record> records) noexcept
      : memory_(memory),
        records_(records) {}
  bool populate_next(std::uint32_t fresh) noexcept;

  RecordsMemory memory_;
  std::span<Record> records_;
  std::uint32_t populated_ = 0;  // records below can be touched
  // Release after a fresh record's first use is prepared; readers that walk all records acquire.
  std::atomic<std::uint32_t> used_{0};
  // Free records are chained through their parent links, which nobody reads in a free record.
  std::uint32_t free_head_ = ParentLink::kNone;
};

}  // namespace cairn::storage
