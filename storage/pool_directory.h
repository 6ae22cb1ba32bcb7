// The names in a pool directory and the locks on them. Everything that a later daemon must know is
// in names, because hugetlbfs takes no writes: docs/formats.md, "Pool directory".
#pragma once

#include "base/result.h"
#include "storage/pool_memory.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace cairn::storage {

inline constexpr std::uint32_t kPoolDirectoryVersion = 1;
// Bytes of a session's description that its file's name keeps.
inline constexpr std::size_t kSessionDescriptionMax = 160;

struct SlabFileName {
  std::uint64_t incarnation = 0;
  std::uint32_t slab = 0;
  std::string text() const;
  static std::optional<SlabFileName> parse(std::string_view name);
};

struct SessionFileName {
  std::uint64_t id = 0;
  std::uint64_t incarnation = 0;
  std::string description;  // what a file name cannot hold is written as '_'
  std::string text() const;
  static std::optional<SessionFileName> parse(std::string_view name);
};

std::string records_file_name(std::uint64_t incarnation);
// The incarnation in a records file's name.
std::optional<std::uint64_t> parse_records_file_name(std::string_view name);

// A pool directory that this process has locked until the object dies. One owner.
class PoolDirectory {
 public:
  // Errors: as open_directory_pool_memory().
  static Result<PoolDirectory> open(const std::string& path) noexcept;

  int root() const noexcept { return root_.get(); }
  int slabs() const noexcept { return slabs_.get(); }
  int sessions() const noexcept { return sessions_.get(); }

  // Names in the root, or in `sub` ("slabs", "sessions"). Errors: kIo.
  Result<std::vector<std::string>> list(const char* sub) const noexcept;

  // Makes a new session file and locks it, shared. Errors: kExists, kNoSpace, kIo.
  Result<OwnedFd> create_session(const SessionFileName& name) const noexcept;
  // Removes the file of a session whose lock is free; true if it was. A file that cannot be opened
  // counts as held.
  bool remove_if_free(const SessionFileName& name) const noexcept;
  // The same question without removing it.
  bool is_free(const SessionFileName& name) const noexcept;

 private:
  Status lock() noexcept;
  Status check_version() const noexcept;
  Status open_folders() noexcept;

  std::string path_;
  OwnedFd root_;
  OwnedFd lock_;
  OwnedFd slabs_;
  OwnedFd sessions_;
};

}  // namespace cairn::storage
