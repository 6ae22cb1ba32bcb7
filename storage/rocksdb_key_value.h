// What is fixed about the RocksDB behind storage/key_value.h: the version of its rows and the
// memory it may use. Opened by open_rocksdb().
#pragma once

#include "base/units.h"

#include <cstdint>
#include <string_view>

namespace cairn::storage {

// The version of everything in the tables, 4 bytes little-endian under this key of Table::kMeta. A
// higher number than ours: open_rocksdb() answers kVersion and changes nothing.
inline constexpr std::uint32_t kKeyValueFormat = 1;
inline constexpr std::string_view kKeyValueFormatKey = "FORMAT";

// Memory of one open store: write buffers of all tables together, and the cache that also holds
// index and filter blocks: 16 MiB in all. A write that finds the buffers full waits for a flush.
inline constexpr ByteCount kKeyValueWriteBuffersMax = 8_MiB;
inline constexpr ByteCount kKeyValueCacheBytes = 8_MiB;
// Log that a start replays at most, well under a second's work.
inline constexpr ByteCount kKeyValueLogMax = 16_MiB;

}  // namespace cairn::storage
