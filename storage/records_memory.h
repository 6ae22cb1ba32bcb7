// The memory of the records: zero filled, and resident only as far as it is used.
#pragma once

#include "base/result.h"
#include "base/units.h"

#include <cstddef>
#include <span>

namespace cairn::storage {

// Who makes records memory resident. Any thread.
class RecordsOwner {
 public:
  RecordsOwner() = default;
  RecordsOwner(const RecordsOwner&) = delete;
  RecordsOwner& operator=(const RecordsOwner&) = delete;
  virtual ~RecordsOwner() = default;
  // Makes a range of the records resident, so that a touch cannot fail: on a full tmpfs it would be
  // a SIGBUS. Errors: kNoSpace, kIo.
  virtual Status populate_records(ByteCount offset, ByteCount bytes) noexcept = 0;
};

struct RecordsMemory {
  std::span<std::byte> bytes;
  RecordsOwner* owner = nullptr;  // outlives the memory's user; nullptr: all of it can be touched
};

}  // namespace cairn::storage
