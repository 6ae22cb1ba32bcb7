#include "storage/memory_limits.h"

#include "storage/pool_memory.h"
#include "storage/slab_mapping.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <system_error>

namespace cairn::storage {
namespace {

namespace fs = std::filesystem;

// cgroup v1 says "no limit" by a number near 2^63.
constexpr std::uint64_t kUnlimited = std::uint64_t{1} << 62U;

std::optional<std::uint64_t> parse(std::string_view text) {
  while (!text.empty() && (text.back() == '\n' || text.back() == ' '))
    text.remove_suffix(1);
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

// The number that is a file's first line; nullopt for anything else ("max", no such file).
std::optional<std::uint64_t> read_number(const fs::path& file) {
  std::ifstream input(file);
  std::string line;
  if (!std::getline(input, line)) return std::nullopt;
  return parse(line);
}

// The first number in the line that begins with `key`.
std::optional<std::uint64_t> read_field(const fs::path& file, std::string_view key) {
  std::ifstream input(file);
  for (std::string line; std::getline(input, line);) {
    if (!line.starts_with(key)) continue;
    std::string_view rest = line;
    rest.remove_prefix(key.size());
    rest.remove_prefix(std::min(rest.find_first_not_of(' '), rest.size()));
    return parse(rest.substr(0, rest.find(' ')));
  }
  return std::nullopt;
}

std::optional<ByteCount> smaller(std::optional<ByteCount> a, std::optional<ByteCount> b) {
  if (!a || !b) return a ? a : b;
  return std::min(*a, *b);
}

std::optional<ByteCount> room(std::optional<std::uint64_t> limit,
                              std::optional<std::uint64_t> used) {
  if (!limit || *limit >= kUnlimited) return std::nullopt;
  return ByteCount(*limit - std::min(*limit, used.value_or(0)));
}

// The files of one version of cgroups.
struct CgroupFiles {
  const char* limit;
  const char* used;
  const char* inactive;  // the field of memory.stat that counts page cache to be had for the asking
};
constexpr CgroupFiles kCgroupV1 = {
    "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file "};
constexpr CgroupFiles kCgroupV2 = {"memory.max", "memory.current", "inactive_file "};

// The least room on the way from `group` up to `root`.
std::optional<ByteCount> cgroup_room(const fs::path& root,
                                     const std::string& group,
                                     const CgroupFiles& files) {
  std::optional<ByteCount> least;
  fs::path relative = fs::path(group).relative_path();
  for (;;) {
    const fs::path folder = root / relative;
    const std::uint64_t used = read_number(folder / files.used).value_or(0);
    const std::uint64_t inactive = read_field(folder / "memory.stat", files.inactive).value_or(0);
    least =
        smaller(least, room(read_number(folder / files.limit), used - std::min(used, inactive)));
    if (relative.empty()) return least;
    relative = relative.parent_path();
  }
}

// True when `item` is one of the items of `list`, which commas part.
bool has_item(std::string_view list, std::string_view item) {
  while (!list.empty()) {
    const std::size_t comma = std::min(list.find(','), list.size());
    if (list.substr(0, comma) == item) return true;
    list.remove_prefix(std::min(comma + 1, list.size()));
  }
  return false;
}

// Lines of /proc/self/cgroup: "0::/path" (v2) and "4:memory:/path" (v1, perhaps among others).
std::optional<ByteCount> read_cgroup(const MemorySources& sources) {
  std::ifstream input(fs::path(sources.proc) / "self/cgroup");
  std::optional<ByteCount> least;
  for (std::string line; std::getline(input, line);) {
    const std::size_t first = line.find(':');
    const std::size_t second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string_view controllers =
        std::string_view{line}.substr(first + 1, second - first - 1);
    const std::string group = line.substr(second + 1);
    if (controllers.empty()) {
      least = smaller(least, cgroup_room(sources.cgroup, group, kCgroupV2));
    } else if (has_item(controllers, "memory")) {
      const fs::path root = fs::path(sources.cgroup) / "memory";
      least = smaller(least, cgroup_room(root, group, kCgroupV1));
    }
  }
  return least;
}

std::optional<ByteCount> read_resource(int resource, std::uint64_t used) {
  rlimit limit{};
  if (::getrlimit(static_cast<__rlimit_resource_t>(resource), &limit) != 0) return std::nullopt;
  if (limit.rlim_cur == RLIM_INFINITY) return std::nullopt;
  return room(limit.rlim_cur, used);
}

std::uint64_t address_space_used(const MemorySources& sources) {
  const auto pages = read_field(fs::path(sources.proc) / "self/statm", "");
  return pages.value_or(0) * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
}

void read_folder(const std::string& pool_dir,
                 const MemorySources& sources,
                 MemoryFigures& figures) {
  std::error_code error;
  fs::path folder(pool_dir);
  if (!fs::exists(folder, error)) folder = folder.parent_path();
  const OwnedFd fd(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  const auto kind = file_system_kind(fd.get());
  struct statfs info {};
  if (!kind || ::fstatfs(fd.get(), &info) != 0) return;
  if (!kind->is_hugetlbfs) {
    // A tmpfs without a size has no blocks.
    if (info.f_blocks > 0)
      figures.file_system = ByteCount(info.f_bavail * static_cast<std::uint64_t>(info.f_bsize));
    return;
  }
  const std::string size = std::to_string(kind->page_bytes / 1_KiB);
  const fs::path pages = fs::path(sources.huge_pages) / ("hugepages-" + size + "kB");
  const std::uint64_t free = read_number(pages / "free_hugepages").value_or(0);
  const std::uint64_t promised = read_number(pages / "resv_hugepages").value_or(0);
  figures.huge_pages = kind->page_bytes * (free - std::min(free, promised));
}

}  // namespace

std::string_view memory_limit_name(MemoryLimit limit) noexcept {
  switch (limit) {
    case MemoryLimit::kMachine:
      return "memory of the machine";
    case MemoryLimit::kCgroup:
      return "cgroup memory limit";
    case MemoryLimit::kHugePages:
      return "free huge pages";
    case MemoryLimit::kFileSystem:
      return "free space of pool.dir";
    case MemoryLimit::kAddressSpace:
      return "address space limit (RLIMIT_AS)";
    case MemoryLimit::kFileSize:
      return "file size limit (RLIMIT_FSIZE)";
  }
  return "unknown";
}

std::optional<MemoryShortage> check_memory(const MemoryNeed& need,
                                           const MemoryFigures& figures) noexcept {
  // Huge pages were taken from the machine and its cgroups when they were reserved.
  const ByteCount pages = figures.huge_pages ? need.other : need.pool + need.other;
  struct Question {
    MemoryLimit limit = MemoryLimit::kMachine;
    ByteCount needed;
    std::optional<ByteCount> available;
  };
  const Question questions[] = {
      {MemoryLimit::kMachine, pages, figures.machine},
      {MemoryLimit::kCgroup, pages, figures.cgroup},
      {MemoryLimit::kHugePages, need.pool, figures.huge_pages},
      {MemoryLimit::kFileSystem, need.pool, figures.file_system},
      {MemoryLimit::kAddressSpace, need.pool + need.other, figures.address_space},
      {MemoryLimit::kFileSize, need.slab, figures.file_size},
  };
  std::optional<MemoryShortage> worst;
  for (const Question& question : questions) {
    if (!question.available || question.needed <= *question.available) continue;
    const ByteCount missing = question.needed - *question.available;
    if (worst && missing <= worst->needed - worst->available) continue;
    worst = MemoryShortage{question.limit, question.needed, *question.available};
  }
  return worst;
}

MemoryFigures read_memory_figures(const std::string& pool_dir,
                                  const MemorySources& sources) noexcept {
  MemoryFigures figures;
  if (const auto kib = read_field(fs::path(sources.proc) / "meminfo", "MemAvailable:"))
    figures.machine = 1_KiB * *kib;
  figures.cgroup = read_cgroup(sources);
  read_folder(pool_dir, sources, figures);
  figures.address_space = read_resource(RLIMIT_AS, address_space_used(sources));
  figures.file_size = read_resource(RLIMIT_FSIZE, 0);
  return figures;
}

}  // namespace cairn::storage
