#include "storage/pool_directory.h"

#include "storage/slab_mapping.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <filesystem>
#include <system_error>

namespace cairn::storage {
namespace {

constexpr std::size_t kHexDigits = 16;
constexpr std::string_view kRecordsPrefix = "records.";
constexpr std::string_view kFormatPrefix = "FORMAT.";

std::string hex_of(std::uint64_t value) {
  std::string text(kHexDigits, '0');
  for (std::size_t i = kHexDigits; i > 0; --i, value >>= 4U)
    text[i - 1] = "0123456789abcdef"[value & 15U];
  return text;
}

template <typename Number>
std::optional<Number> parse_number(std::string_view text, int base) {
  Number value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  if (error != std::errc() || end != text.data() + text.size() || text.empty()) return std::nullopt;
  return value;
}

// The 16 hexadecimal digits that `text` begins with, if what follows them is `separator` or
// nothing.
std::optional<std::uint64_t> parse_hex(std::string_view text, char separator) {
  if (text.size() < kHexDigits) return std::nullopt;
  if (text.size() > kHexDigits && text[kHexDigits] != separator) return std::nullopt;
  return parse_number<std::uint64_t>(text.substr(0, kHexDigits), 16);
}

std::string as_file_name(std::string_view text) {
  std::string name(text.substr(0, kSessionDescriptionMax));
  std::replace_if(
      name.begin(), name.end(), [](char c) { return c == '/' || c < ' '; }, '_');
  return name;
}

Error system_error(const char* what) noexcept {
  switch (errno) {
    case EACCES:
    case EPERM:
    case EROFS:
      return {ErrorCode::kPermission, errno, what};
    case ENOSPC:
    case EDQUOT:
    case ENOMEM:
      return {ErrorCode::kNoSpace, errno, what};
    case ENOENT:
      return {ErrorCode::kNotFound, errno, what};
    case EEXIST:
      return {ErrorCode::kExists, errno, what};
    default:
      return {ErrorCode::kIo, errno, what};
  }
}

Result<OwnedFd> open_folder(int at, const char* name) noexcept {
  OwnedFd folder(::openat(at, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (folder.get() < 0) return system_error("open");
  return folder;
}

// The file system is looked at first, so that nothing is created on one that does not serve.
Status create_root(const std::string& path) noexcept {
  std::filesystem::path parent = std::filesystem::path(path).parent_path();
  if (parent.empty()) parent = ".";
  CAIRN_TRY(const OwnedFd folder, open_folder(AT_FDCWD, parent.c_str()));
  CAIRN_TRY_STATUS(file_system_kind(folder.get()));
  if (::mkdir(path.c_str(), 0700) != 0 && errno != EEXIST) return system_error("mkdir");
  return {};
}

Result<OwnedFd> open_root(const std::string& path) noexcept {
  if (::access(path.c_str(), F_OK) != 0 && errno == ENOENT) CAIRN_TRY_STATUS(create_root(path));
  CAIRN_TRY(OwnedFd root, open_folder(AT_FDCWD, path.c_str()));
  CAIRN_TRY_STATUS(file_system_kind(root.get()));
  return root;
}

}  // namespace

std::string SlabFileName::text() const {
  return hex_of(incarnation) + "." + std::to_string(slab);
}

std::optional<SlabFileName> SlabFileName::parse(std::string_view name) {
  const auto incarnation = parse_hex(name, '.');
  if (!incarnation || name.size() < kHexDigits + 2) return std::nullopt;
  const auto slab = parse_number<std::uint32_t>(name.substr(kHexDigits + 1), 10);
  if (!slab) return std::nullopt;
  return SlabFileName{.incarnation = *incarnation, .slab = *slab};
}

std::string SessionFileName::text() const {
  return hex_of(id) + "." + hex_of(incarnation) + "." + as_file_name(description);
}

std::optional<SessionFileName> SessionFileName::parse(std::string_view name) {
  const auto id = parse_hex(name, '.');
  if (!id || name.size() < kHexDigits + 1) return std::nullopt;
  name.remove_prefix(kHexDigits + 1);
  const auto incarnation = parse_hex(name, '.');
  if (!incarnation || name.size() < kHexDigits + 1) return std::nullopt;
  return SessionFileName{.id = *id,
                         .incarnation = *incarnation,
                         .description = std::string(name.substr(kHexDigits + 1))};
}

std::string records_file_name(std::uint64_t incarnation) {
  return std::string(kRecordsPrefix) + hex_of(incarnation);
}

std::optional<std::uint64_t> parse_records_file_name(std::string_view name) {
  if (!name.starts_with(kRecordsPrefix)) return std::nullopt;
  name.remove_prefix(kRecordsPrefix.size());
  if (name.size() != kHexDigits) return std::nullopt;
  return parse_hex(name, '.');
}

Result<PoolDirectory> PoolDirectory::open(const std::string& path) noexcept {
  PoolDirectory directory;
  directory.path_ = path;
  while (directory.path_.size() > 1 && directory.path_.back() == '/')
    directory.path_.pop_back();
  CAIRN_TRY(directory.root_, open_root(directory.path_));
  CAIRN_TRY_STATUS(directory.lock());
  CAIRN_TRY_STATUS(directory.check_version());
  CAIRN_TRY_STATUS(directory.open_folders());
  return directory;
}

Status PoolDirectory::lock() noexcept {
  lock_ = OwnedFd(::openat(root_.get(), "lock", O_CREAT | O_RDWR | O_CLOEXEC, 0600));
  if (lock_.get() < 0) return system_error("lock");
  if (::flock(lock_.get(), LOCK_EX | LOCK_NB) == 0) return {};
  if (errno == EWOULDBLOCK) return Error{ErrorCode::kLocked, errno, "lock"};
  return system_error("flock");
}

Status PoolDirectory::check_version() const noexcept {
  CAIRN_TRY(const auto names, list(nullptr));
  for (const std::string& name : names) {
    if (!name.starts_with(kFormatPrefix)) continue;
    const std::string_view text = std::string_view{name}.substr(kFormatPrefix.size());
    const auto version = parse_number<std::uint32_t>(text, 10);
    if (!version) return Error{ErrorCode::kCorrupt, 0, "FORMAT"};
    if (*version != kPoolDirectoryVersion) return Error{ErrorCode::kVersion, 0, "FORMAT"};
    return {};
  }
  const std::string format = std::string(kFormatPrefix) + std::to_string(kPoolDirectoryVersion);
  const OwnedFd made(::openat(root_.get(), format.c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0600));
  if (made.get() < 0) return system_error("FORMAT");
  return {};
}

Status PoolDirectory::open_folders() noexcept {
  for (const char* const name : {"slabs", "sessions"}) {
    if (::mkdirat(root_.get(), name, 0700) != 0 && errno != EEXIST) return system_error("mkdir");
  }
  CAIRN_TRY(slabs_, open_folder(root_.get(), "slabs"));
  CAIRN_TRY(sessions_, open_folder(root_.get(), "sessions"));
  return {};
}

Result<std::vector<std::string>> PoolDirectory::list(const char* sub) const noexcept {
  std::filesystem::path folder(path_);
  if (sub != nullptr) folder /= sub;
  std::error_code error;
  std::vector<std::string> names;
  std::filesystem::directory_iterator at(folder, error);
  while (!error && at != std::filesystem::directory_iterator()) {
    names.push_back(at->path().filename().string());
    at.increment(error);
  }
  if (error) return Error{ErrorCode::kIo, error.value(), "readdir"};
  return names;
}

Result<OwnedFd> PoolDirectory::create_session(const SessionFileName& name) const noexcept {
  const std::string file = name.text();
  OwnedFd session(
      ::openat(sessions_.get(), file.c_str(), O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC, 0600));
  if (session.get() < 0) return system_error("session");
  if (::flock(session.get(), LOCK_SH | LOCK_NB) != 0) return system_error("flock");
  return session;
}

bool PoolDirectory::is_free(const SessionFileName& name) const noexcept {
  // Opened anew: a lock belongs to an open file description, and the client's is another.
  const OwnedFd session(::openat(sessions_.get(), name.text().c_str(), O_RDWR | O_CLOEXEC));
  return session.get() >= 0 && ::flock(session.get(), LOCK_EX | LOCK_NB) == 0;
}

bool PoolDirectory::remove_if_free(const SessionFileName& name) const noexcept {
  if (!is_free(name)) return false;
  return ::unlinkat(sessions_.get(), name.text().c_str(), 0) == 0;
}

}  // namespace cairn::storage
