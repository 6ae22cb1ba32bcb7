#include "server/data_directory.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <optional>
#include <utility>

namespace cairn::server {
namespace {

constexpr const char* kLockName = "/lock";
constexpr const char* kKeyValueName = "/rocksdb";

Error file_error(const char* what) {
  switch (errno) {
    case EACCES:
    case EPERM:
    case EROFS:
      return {ErrorCode::kPermission, errno, what};
    case ENOENT:
      return {ErrorCode::kNotFound, errno, what};
    case ENOSPC:
    case EDQUOT:
      return {ErrorCode::kNoSpace, errno, what};
    default:
      return {ErrorCode::kIo, errno, what};
  }
}

std::string counter_row(std::uint64_t counter) {
  std::string row(sizeof counter, '\0');
  for (std::size_t i = 0; i < row.size(); ++i) {
    row[i] = static_cast<char>((counter >> (8 * i)) & 0xFFU);
  }
  return row;
}

Result<std::uint64_t> counter_of(const std::string& row) {
  if (row.size() != sizeof(std::uint64_t)) return Error{ErrorCode::kCorrupt, 0, "boot row"};
  std::uint64_t counter = 0;
  for (std::size_t i = 0; i < row.size(); ++i) {
    counter |= std::uint64_t{static_cast<unsigned char>(row[i])} << (8 * i);
  }
  return counter;
}

}  // namespace

Started<DataDirectory> DataDirectory::open(const std::string& path, const std::string& origin) {
  const DirectoryPlace place{"data_dir", path, origin, path + kLockName};
  DataDirectory directory;
  if (const Status locked = directory.lock(path); !locked) {
    return tl::unexpected(directory_failure(place, locked.error()));
  }
  Result<std::unique_ptr<storage::KeyValue>> opened =
      storage::open_rocksdb({.directory = path + kKeyValueName, .in_memory = false});
  if (!opened) {
    DirectoryPlace store = place;
    store.path += kKeyValueName;
    store.lock_file = store.path + "/LOCK";
    return tl::unexpected(directory_failure(store, opened.error()));
  }
  directory.key_value_ = *std::move(opened);
  return directory;
}

Status DataDirectory::lock(const std::string& path) noexcept {
  if (::mkdir(path.c_str(), 0700) != 0 && errno != EEXIST) return file_error("mkdir");
  const std::string name = path + kLockName;
  lock_ = storage::OwnedFd(::open(name.c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0600));
  if (lock_.get() < 0) return file_error("open lock");
  if (::flock(lock_.get(), LOCK_EX | LOCK_NB) == 0) return {};
  if (errno == EWOULDBLOCK) return Error{ErrorCode::kLocked, errno, "lock"};
  return file_error("flock");
}

Result<std::uint64_t> next_boot_counter(storage::KeyValue& key_value, const Clock& clock) noexcept {
  CAIRN_TRY(const std::optional<std::string> row, key_value.get(storage::Table::kMeta, kBootKey));
  std::uint64_t stored = 0;
  if (row) {
    CAIRN_TRY(stored, counter_of(*row));
  }
  const std::uint64_t counter = std::max(stored + 1, clock.unix_ms());
  CAIRN_TRY_STATUS(key_value.write(
      {{storage::Table::kMeta, std::string(kBootKey), counter_row(counter)}}, true));
  return counter;
}

}  // namespace cairn::server
