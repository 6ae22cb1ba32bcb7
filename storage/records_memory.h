// The memory of the records: zero filled, and resident only as far as it is used.
#pragma once

#include "base/result.h"
#include "base/units.h"

#include <cstddef>
#include <functional>
#include <span>
#include <utility>

namespace cairn::storage {

struct RecordsMemory {
  using Populate = std::function<Status(ByteCount offset, ByteCount bytes)>;

  RecordsMemory() = default;
  // Without `populate` all of it can be touched.
  // NOLINTNEXTLINE(google-explicit-constructor): plain memory is records memory too
  RecordsMemory(std::span<std::byte> memory, Populate populate_range = {})
      : bytes(memory),
        populate(std::move(populate_range)) {}

  std::span<std::byte> bytes;
  // Makes a range resident, so that a touch cannot fail: on a full tmpfs it would be a SIGBUS.
  // Errors: kNoSpace, kIo.
  Populate populate;
};

}  // namespace cairn::storage
