// The machines on which the contract of PoolMemory is proved: a place where one daemon after
// another runs and finds what the last one left.
#pragma once

#include "storage/pool_memory.h"
#include "tests/support/process_runner.h"
#include "tests/support/sim_pool_memory.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

namespace cairn::testing {

class PoolMachine {
 public:
  virtual ~PoolMachine() = default;
  virtual Result<std::unique_ptr<storage::PoolMemory>> start_daemon() = 0;
};

class SimPoolMachine final : public PoolMachine {
 public:
  Result<std::unique_ptr<storage::PoolMemory>> start_daemon() override;

 private:
  SimMachine machine_;
};

class DirectoryPoolMachine final : public PoolMachine {
 public:
  explicit DirectoryPoolMachine(const std::string& parent)
      : directory_(parent) {}
  Result<std::unique_ptr<storage::PoolMemory>> start_daemon() override;
  const std::string& path() const { return directory_.path(); }

 private:
  TempDir directory_;
  std::uint64_t next_incarnation_ = 1;
};

// Where tmpfs is mounted: /dev/shm.
inline constexpr const char* kTmpfs = "/dev/shm";
// A writable hugetlbfs mount with at least `pages` free pages of 2 MiB; nullopt: none.
std::optional<std::string> find_hugetlbfs(std::uint64_t pages);

}  // namespace cairn::testing
