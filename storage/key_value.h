// The seam over the embedded key-value store that holds namespaces and, later, segment tables.
// Real: RocksDB; RocksDB's own in-memory Env is what tests use, so it needs no fake of ours; a
// faulty wrapper in tests/support injects errors.
#pragma once

#include "base/result.h"

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace cairn::storage {

enum class Table : unsigned char { kMeta, kSegments, kHeat, kNamespaces, kPins };
inline constexpr std::size_t kTableCount = 5;

struct KeyValueWrite {
  Table table = Table::kMeta;
  std::string key;
  std::optional<std::string> value;  // nullopt: delete
};

// Any thread; calls take turns. Errors of every call: kIo, kNoSpace (its disk failed or is full: a
// later call opens it anew), kLocked (somebody took the files meanwhile), kCorrupt (the store says
// its bytes are wrong, or are gone).
class KeyValue {
 public:
  KeyValue() = default;
  KeyValue(const KeyValue&) = delete;
  KeyValue& operator=(const KeyValue&) = delete;
  virtual ~KeyValue() = default;
  virtual Result<std::optional<std::string>> get(Table table, std::string_view key) noexcept = 0;
  // All or nothing; on stable storage before it returns when `sync`. After an error it may have
  // been done or not, and a later read tells.
  virtual Status write(const std::vector<KeyValueWrite>& writes, bool sync) noexcept = 0;
  // In key order.
  virtual Result<std::vector<std::pair<std::string, std::string>>> scan(Table table) noexcept = 0;
};

struct KeyValueOptions {
  std::string directory;   // created if its parent exists
  bool in_memory = false;  // RocksDB's in-memory Env: tests and simulation
};
// Errors: kLocked (another process has it), kPermission, kCorrupt, kVersion, kNoSpace, kIo.
Result<std::unique_ptr<KeyValue>> open_rocksdb(const KeyValueOptions& options) noexcept;

}  // namespace cairn::storage
