#include "storage/directory_pool_memory.h"

#include "base/check.h"
#include "base/mutex.h"
#include "storage/pool_directory.h"
#include "storage/slab_mapping.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <map>
#include <set>
#include <utility>
#include <vector>

namespace cairn::storage {
namespace {

Error create_error(const char* what) noexcept {
  const int sys = errno;
  if (sys == EEXIST) return {ErrorCode::kExists, sys, what};
  const bool is_full = sys == ENOSPC || sys == EDQUOT || sys == ENOMEM;
  return {is_full ? ErrorCode::kNoSpace : ErrorCode::kIo, sys, what};
}

OwnedFd create_file(int folder, const std::string& name) noexcept {
  return OwnedFd(::openat(folder, name.c_str(), O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC, 0600));
}

// Zero pages that cost nothing until they are touched, without a file.
Result<SharedMapping> map_anonymous(ByteCount bytes) noexcept {
  void* const address = ::mmap(nullptr,
                               bytes.value(),
                               PROT_READ | PROT_WRITE,
                               MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE,
                               -1,
                               0);
  if (address == MAP_FAILED) return Error{ErrorCode::kNoSpace, errno, "mmap"};
  return SharedMapping({static_cast<std::byte*>(address), bytes.value()});
}

class DirectoryPoolMemory final : public PoolMemory {
 public:
  DirectoryPoolMemory(PoolDirectory directory, FileSystemKind kind, std::uint64_t incarnation)
      : directory_(std::move(directory)),
        kind_(kind),
        incarnation_(incarnation) {
    if (kind_.is_hugetlbfs) {
      page_kind_ = PageKind::kHuge;
    } else if (gives_transparent_huge_pages(directory_.slabs())) {
      page_kind_ = PageKind::kTransparentHuge;
    }
  }
  ~DirectoryPoolMemory() override;
  DirectoryPoolMemory(const DirectoryPoolMemory&) = delete;
  DirectoryPoolMemory& operator=(const DirectoryPoolMemory&) = delete;

  PageKind page_kind() const noexcept override { return page_kind_; }
  Result<SlabMemory> create_slab(std::uint32_t slab, ByteCount bytes) noexcept override;
  Status populate(std::uint32_t slab, ByteCount offset, ByteCount bytes) noexcept override;
  void discard_slab(std::uint32_t slab) noexcept override;
  Result<RecordsMemory> create_records(ByteCount bytes) noexcept override;
  Status populate_records(ByteCount offset, ByteCount bytes) noexcept override;
  Result<OwnedFd> create_session_lock(std::uint64_t id,
                                      std::string_view description) noexcept override;
  void remove_session_lock(std::uint64_t id) noexcept override;
  Result<PredecessorSlabs> reclaim_predecessors() noexcept override;

 private:
  struct SlabFile {
    OwnedFd fd;
    SharedMapping mapping;
  };

  SlabFileName slab_name(std::uint32_t slab) const noexcept {
    return {.incarnation = incarnation_, .slab = slab};
  }
  void unlink_slab(const SlabFileName& name) const noexcept;
  // Removes what free sessions of earlier daemons left; the holders of the others.
  Result<std::map<std::uint64_t, std::vector<std::string>>> find_holders() const noexcept;
  Status remove_old_records() const noexcept;

  PoolDirectory directory_;
  FileSystemKind kind_;
  std::uint64_t incarnation_;
  PageKind page_kind_ = PageKind::kSmall;
  OwnedFd records_file_;
  SharedMapping records_;
  std::map<std::uint64_t, SessionFileName> sessions_;
  std::set<std::uint32_t> used_numbers_;
  Mutex mutex_;  // populate() comes from any thread
  // Nodes of a map stay where they are while others come and go.
  std::map<std::uint32_t, SlabFile> slabs_ CAIRN_GUARDED_BY(mutex_);
};

DirectoryPoolMemory::~DirectoryPoolMemory() {
  if (!records_.bytes().empty())
    static_cast<void>(::unlinkat(directory_.root(), records_file_name(incarnation_).c_str(), 0));
  std::erase_if(sessions_,
                [this](const auto& session) { return directory_.remove_if_free(session.second); });
  if (!sessions_.empty()) return;
  const MutexLock lock(mutex_);
  for (const auto& [number, slab] : slabs_)
    unlink_slab(slab_name(number));
}

void DirectoryPoolMemory::unlink_slab(const SlabFileName& name) const noexcept {
  // One that is gone already, or cannot go, is the next daemon's to find.
  static_cast<void>(::unlinkat(directory_.slabs(), name.text().c_str(), 0));
}

Result<SlabMemory> DirectoryPoolMemory::create_slab(std::uint32_t slab, ByteCount bytes) noexcept {
  if (used_numbers_.contains(slab)) return Error{ErrorCode::kExists, EEXIST, "slab"};
  OwnedFd fd = create_file(directory_.slabs(), slab_name(slab).text());
  if (fd.get() < 0) return create_error("slab");
  auto mapping = map_file(fd.get(), bytes, kind_);
  if (!mapping) {
    unlink_slab(slab_name(slab));
    return mapping.error();
  }
  if (page_kind_ == PageKind::kTransparentHuge) advise_huge_pages(mapping->bytes());
  used_numbers_.insert(slab);
  const SlabMemory memory{.bytes = mapping->bytes(), .fd = fd.get()};
  const MutexLock lock(mutex_);
  slabs_.emplace(slab, SlabFile{.fd = std::move(fd), .mapping = std::move(*mapping)});
  return memory;
}

Status DirectoryPoolMemory::populate(std::uint32_t slab,
                                     ByteCount offset,
                                     ByteCount bytes) noexcept {
  const SlabFile* file = nullptr;
  {
    const MutexLock lock(mutex_);
    const auto found = slabs_.find(slab);
    CAIRN_CHECK(found != slabs_.end());
    file = &found->second;
  }
  return populate_mapping(file->mapping, file->fd.get(), offset, bytes);
}

void DirectoryPoolMemory::discard_slab(std::uint32_t slab) noexcept {
  unlink_slab(slab_name(slab));
  const MutexLock lock(mutex_);
  CAIRN_CHECK(slabs_.erase(slab) == 1);
}

Result<RecordsMemory> DirectoryPoolMemory::create_records(ByteCount bytes) noexcept {
  CAIRN_CHECK(records_.bytes().empty());
  // A sparse file on hugetlbfs would either reserve every page of it or fail with SIGBUS at a
  // touch.
  if (kind_.is_hugetlbfs) {
    CAIRN_TRY(records_, map_anonymous(bytes));
    return RecordsMemory{.bytes = records_.bytes()};
  }
  const std::string name = records_file_name(incarnation_);
  records_file_ = create_file(directory_.root(), name);
  if (records_file_.get() < 0) return create_error("records");
  CAIRN_TRY(records_, map_file(records_file_.get(), bytes, kind_));
  return RecordsMemory{.bytes = records_.bytes(), .owner = this};
}

Status DirectoryPoolMemory::populate_records(ByteCount offset, ByteCount bytes) noexcept {
  return populate_mapping(records_, records_file_.get(), offset, bytes);
}

Result<OwnedFd> DirectoryPoolMemory::create_session_lock(std::uint64_t id,
                                                         std::string_view description) noexcept {
  if (sessions_.contains(id)) return Error{ErrorCode::kExists, EEXIST, "session"};
  SessionFileName name{
      .id = id, .incarnation = incarnation_, .description = std::string(description)};
  CAIRN_TRY(OwnedFd lock, directory_.create_session(name));
  sessions_.emplace(id, std::move(name));
  return lock;
}

void DirectoryPoolMemory::remove_session_lock(std::uint64_t id) noexcept {
  const auto found = sessions_.find(id);
  if (found == sessions_.end()) return;
  static_cast<void>(::unlinkat(directory_.sessions(), found->second.text().c_str(), 0));
  sessions_.erase(found);
}

Result<std::map<std::uint64_t, std::vector<std::string>>> DirectoryPoolMemory::find_holders()
    const noexcept {
  std::map<std::uint64_t, std::vector<std::string>> holders;
  CAIRN_TRY(const auto names, directory_.list("sessions"));
  for (const std::string& name : names) {
    const auto session = SessionFileName::parse(name);
    if (!session || session->incarnation == incarnation_) continue;
    if (directory_.remove_if_free(*session)) continue;
    const std::string id = name.substr(0, name.find('.'));
    holders[session->incarnation].push_back(session->description + " session " + id);
  }
  return holders;
}

Status DirectoryPoolMemory::remove_old_records() const noexcept {
  CAIRN_TRY(const auto names, directory_.list(nullptr));
  for (const std::string& name : names) {
    const auto incarnation = parse_records_file_name(name);
    if (!incarnation || *incarnation == incarnation_) continue;
    static_cast<void>(::unlinkat(directory_.root(), name.c_str(), 0));
  }
  return {};
}

Result<PredecessorSlabs> DirectoryPoolMemory::reclaim_predecessors() noexcept {
  CAIRN_TRY_STATUS(remove_old_records());
  CAIRN_TRY(const auto holders, find_holders());
  CAIRN_TRY(const auto names, directory_.list("slabs"));
  PredecessorSlabs held;
  std::set<std::uint64_t> holding;
  for (const std::string& text : names) {
    const auto name = SlabFileName::parse(text);
    if (!name || name->incarnation == incarnation_) continue;
    if (!holders.contains(name->incarnation)) {
      unlink_slab(*name);
      continue;
    }
    struct stat info {};
    if (::fstatat(directory_.slabs(), text.c_str(), &info, AT_SYMLINK_NOFOLLOW) != 0)
      return Error{ErrorCode::kIo, errno, "fstatat"};
    held.bytes += ByteCount(static_cast<std::uint64_t>(info.st_size));
    holding.insert(name->incarnation);
  }
  for (const std::uint64_t incarnation : holding) {
    const auto& lines = holders.at(incarnation);
    held.holders.insert(held.holders.end(), lines.begin(), lines.end());
  }
  return held;
}

}  // namespace

Result<std::unique_ptr<PoolMemory>> open_directory_pool_memory(
    const DirectoryPoolOptions& options) noexcept {
  CAIRN_TRY(auto directory, PoolDirectory::open(options.directory));
  CAIRN_TRY(const FileSystemKind kind, file_system_kind(directory.root()));
  return std::unique_ptr<PoolMemory>(
      new DirectoryPoolMemory(std::move(directory), kind, options.incarnation));
}

}  // namespace cairn::storage
