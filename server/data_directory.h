// data_dir: what outlives a restart. One daemon at a time holds it. docs/operations.md, "Files".
#pragma once

#include "base/clock.h"
#include "base/result.h"
#include "server/start_failure.h"
#include "storage/key_value.h"
#include "storage/pool_memory.h"

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace cairn::server {

inline constexpr std::string_view kBootKey = "boot";

// One owner; the lock is held until it dies.
class DataDirectory {
 public:
  // Creates `path` (mode 0700) if its parent exists, locks it and opens the key-value store in it.
  static Started<DataDirectory> open(const std::string& path, const std::string& origin);

  storage::KeyValue& key_value() noexcept { return *key_value_; }

 private:
  DataDirectory() = default;
  Status lock(const std::string& path) noexcept;

  storage::OwnedFd lock_;
  std::unique_ptr<storage::KeyValue> key_value_;
};

// The boot counter of this start: max(stored + 1, Unix ms), so it is above that of every earlier
// start on this store. On stable storage before it returns. Errors: kIo, kCorrupt.
Result<std::uint64_t> next_boot_counter(storage::KeyValue& key_value, const Clock& clock) noexcept;

}  // namespace cairn::server
