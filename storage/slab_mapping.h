// Mapping the files of a pool: aligned for huge pages, made resident piece by piece.
#pragma once

#include "base/result.h"
#include "base/units.h"
#include "storage/pool_memory.h"

#include <cstddef>
#include <span>

namespace cairn::storage {

// What the file system of an open directory gives.
struct FileSystemKind {
  bool is_hugetlbfs = false;
  ByteCount page_bytes;  // of hugetlbfs; 4 KiB on tmpfs
};

// Errors: kUnsupported (neither hugetlbfs nor tmpfs), kIo.
Result<FileSystemKind> file_system_kind(int fd) noexcept;

// Unmaps a mapping; an empty one owns nothing.
class SharedMapping {
 public:
  SharedMapping() = default;
  explicit SharedMapping(std::span<std::byte> bytes)
      : bytes_(bytes) {}
  SharedMapping(SharedMapping&& other) noexcept;
  SharedMapping& operator=(SharedMapping&& other) noexcept;
  SharedMapping(const SharedMapping&) = delete;
  SharedMapping& operator=(const SharedMapping&) = delete;
  ~SharedMapping();
  std::span<std::byte> bytes() const noexcept { return bytes_; }

 private:
  std::span<std::byte> bytes_;
};

// Sets the file's length and maps it, shared, at a multiple of 2 MiB or the file system's page. On
// hugetlbfs the pages are reserved here, so that a later touch cannot fail. Errors: kNoSpace, kIo.
Result<SharedMapping> map_file(int fd, ByteCount bytes, const FileSystemKind& kind) noexcept;

// Asks for transparent huge pages; a kernel that refuses leaves small ones.
void advise_huge_pages(std::span<std::byte> bytes) noexcept;

// Makes `bytes` of the mapping of `fd` from `offset` resident. Any thread. Errors: kNoSpace, kIo.
Status populate_mapping(const SharedMapping& mapping,
                        int fd,
                        ByteCount offset,
                        ByteCount bytes) noexcept;

// True when a trial file in the tmpfs directory is really mapped by huge pages: the mount's huge=
// option and shmem_enabled decide together, so the trial asks both. False when in doubt.
bool gives_transparent_huge_pages(int directory) noexcept;

}  // namespace cairn::storage
