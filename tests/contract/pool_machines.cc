#include "tests/contract/pool_machines.h"

#include "storage/directory_pool_memory.h"

#include <sys/vfs.h>
#include <unistd.h>

#include <fstream>
#include <sstream>
#include <utility>

namespace cairn::testing {

using storage::PoolMemory;

Result<std::unique_ptr<PoolMemory>> SimPoolMachine::start_daemon() {
  auto memory = machine_.start_daemon();
  if (!memory) return memory.error();
  return std::unique_ptr<PoolMemory>(std::move(*memory));
}

Result<std::unique_ptr<PoolMemory>> DirectoryPoolMachine::start_daemon() {
  return storage::open_directory_pool_memory(
      {.directory = path(), .incarnation = next_incarnation_++});
}

std::optional<std::string> find_hugetlbfs(std::uint64_t pages) {
  constexpr std::uint64_t kPageBytes = (2_MiB).value();
  std::ifstream mounts("/proc/mounts");
  for (std::string line; std::getline(mounts, line);) {
    std::istringstream fields(line);
    std::string device;
    std::string folder;
    std::string type;
    fields >> device >> folder >> type;
    struct statfs info {};
    if (type != "hugetlbfs" || ::access(folder.c_str(), W_OK) != 0) continue;
    if (::statfs(folder.c_str(), &info) != 0 || info.f_bsize != kPageBytes) continue;
    std::ifstream free_pages("/sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages");
    std::uint64_t free_count = 0;
    if (free_pages >> free_count && free_count >= pages) return folder;
  }
  return std::nullopt;
}

}  // namespace cairn::testing
