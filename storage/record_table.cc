#include "storage/record_table.h"

#include "base/check.h"
#include "base/checksum.h"

#include <algorithm>
#include <cstddef>
#include <cstring>

namespace cairn::storage {
namespace {

// Made resident at a time: sixteen pages, some microseconds under the store's mutex.
constexpr std::uint32_t kPopulateRecords = 512;

struct RecordsFileHeader {
  std::array<char, 8> magic = {'C', 'A', 'I', 'R', 'N', 'R', 'E', 'C'};
  std::uint32_t version = 1;
  std::uint32_t record_bytes = sizeof(Record);
  std::uint64_t records_max = 0;
  std::uint64_t hash = 0;  // XXH3-64 over the bytes before it
};
static_assert(sizeof(RecordsFileHeader) == 32);

void write_header(std::span<std::byte> memory, std::uint32_t records_max) noexcept {
  RecordsFileHeader header;
  header.records_max = records_max;
  header.hash =
      xxh3_64(std::as_bytes(std::span(&header, 1)).first(offsetof(RecordsFileHeader, hash)));
  std::memcpy(memory.data(), &header, sizeof(header));
}

}  // namespace

Result<RecordTable> RecordTable::create(const RecordsMemory& memory,
                                        std::uint32_t records_max) noexcept {
  if (records_max == 0 || records_max > kRecordsMax)
    return Error{ErrorCode::kInvalid, 0, "records_max"};
  if (memory.bytes.size() < bytes_for(records_max).value())
    return Error{ErrorCode::kNoSpace, 0, "records"};
  const auto body = memory.bytes.subspan(kHeaderBytes.value());
  if (reinterpret_cast<std::uintptr_t>(body.data()) % alignof(Record) != 0)
    return Error{ErrorCode::kInvalid, 0, "records alignment"};
  if (memory.owner != nullptr) {
    CAIRN_TRY_STATUS(memory.owner->populate_records(ByteCount(), kHeaderBytes));
  }
  write_header(memory.bytes, records_max);
  return RecordTable(memory, {reinterpret_cast<Record*>(body.data()), records_max});
}

RecordTable::RecordTable(RecordTable&& other) noexcept
    : memory_(other.memory_),
      records_(other.records_),
      populated_(other.populated_),
      used_(other.used_.load(std::memory_order_relaxed)),
      free_head_(other.free_head_) {}

RecordTable& RecordTable::operator=(RecordTable&& other) noexcept {
  memory_ = other.memory_;
  records_ = other.records_;
  populated_ = other.populated_;
  used_.store(other.used_.load(std::memory_order_relaxed), std::memory_order_relaxed);
  free_head_ = other.free_head_;
  return *this;
}

std::optional<RecordNumber> RecordTable::take() noexcept {
  if (free_head_ != ParentLink::kNone) {
    const RecordNumber number = free_head_;
    free_head_ = records_[number].parent().record;
    return number;
  }
  // Relaxed: only the mutex's holder writes it.
  const std::uint32_t fresh = used_.load(std::memory_order_relaxed);
  if (fresh == records_.size()) return std::nullopt;
  if (fresh == populated_ && !populate_next(fresh)) return std::nullopt;
  used_.store(fresh + 1, std::memory_order_release);
  return fresh;
}

bool RecordTable::populate_next(std::uint32_t fresh) noexcept {
  const std::uint32_t step = std::min(kPopulateRecords, capacity() - fresh);
  if (memory_.owner != nullptr) {
    const ByteCount offset = kHeaderBytes + kRecordBytes * fresh;
    if (!memory_.owner->populate_records(offset, kRecordBytes * step)) return false;
  }
  populated_ = fresh + step;
  return true;
}

void RecordTable::give_back(RecordNumber number) noexcept {
  CAIRN_CHECK(records_[number].pin_word().view().state == RecordState::kFree);
  records_[number].set_parent({free_head_, 0});
  free_head_ = number;
}

}  // namespace cairn::storage
