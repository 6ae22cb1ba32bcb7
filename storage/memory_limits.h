// Whether a pool fits this machine, asked before anything is created: a pool that is too large
// would be found out by the OOM killer, hours later.
#pragma once

#include "base/units.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace cairn::storage {

// Numbers are not persistent; names are for messages and configuration.
enum class MemoryLimit : std::uint8_t {
  kMachine,       // MemAvailable
  kCgroup,        // the tightest memory limit of this process's cgroup and those above it
  kHugePages,     // free huge pages of the size that pool.dir gives
  kFileSystem,    // free bytes of pool.dir's tmpfs
  kAddressSpace,  // RLIMIT_AS
  kFileSize,      // RLIMIT_FSIZE
};

// "memory of the machine", "cgroup memory limit", ...
std::string_view memory_limit_name(MemoryLimit limit) noexcept;

// What the machine has left; nullopt where there is no such limit or it cannot be read.
struct MemoryFigures {
  std::optional<ByteCount> machine;
  std::optional<ByteCount> cgroup;
  std::optional<ByteCount> huge_pages;  // set exactly when pool.dir is on hugetlbfs
  std::optional<ByteCount> file_system;
  std::optional<ByteCount> address_space;
  std::optional<ByteCount> file_size;
};

struct MemoryNeed {
  ByteCount pool;   // slabs that are still to be made: predecessors' bytes are gone already
  ByteCount slab;   // the largest of them
  ByteCount other;  // records, index, buffers: ordinary pages
};

struct MemoryShortage {
  MemoryLimit limit = MemoryLimit::kMachine;
  ByteCount needed;
  ByteCount available;
  friend bool operator==(const MemoryShortage&, const MemoryShortage&) noexcept = default;
};

// The limit that misses most, or nullopt: everything fits. Pure.
std::optional<MemoryShortage> check_memory(const MemoryNeed& need,
                                           const MemoryFigures& figures) noexcept;

// Where the figures are read; other folders in tests.
struct MemorySources {
  std::string proc = "/proc";
  std::string cgroup = "/sys/fs/cgroup";
  std::string huge_pages = "/sys/kernel/mm/hugepages";
};

// Reads the figures for a pool in `pool_dir` (or, while it does not exist, in its parent).
MemoryFigures read_memory_figures(const std::string& pool_dir,
                                  const MemorySources& sources) noexcept;

}  // namespace cairn::storage
