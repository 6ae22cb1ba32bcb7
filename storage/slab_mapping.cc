#include "storage/slab_mapping.h"

#include "base/check.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <string>
#include <string_view>
#include <utility>

namespace cairn::storage {
namespace {

// linux/magic.h
constexpr unsigned long kHugetlbfsMagic = 0x958458F6UL;
constexpr unsigned long kTmpfsMagic = 0x01021994UL;
// Since Linux 5.14; older libc headers lack the name.
constexpr int kMadvPopulateWrite = 23;
constexpr ByteCount kHugePage = 2_MiB;
constexpr ByteCount kSmallPage = 4_KiB;

Error file_error(const char* what) noexcept {
  const int sys = errno;
  const bool is_full = sys == ENOSPC || sys == ENOMEM || sys == EDQUOT || sys == EFBIG;
  return {is_full ? ErrorCode::kNoSpace : ErrorCode::kIo, sys, what};
}

// The kernel's two ways of saying that a page could not be had are ENOMEM and EFAULT (where a touch
// would have been SIGBUS); see madvise(2), MADV_POPULATE_WRITE.
Status populate_by_madvise(std::byte* address, ByteCount bytes) noexcept {
  if (::madvise(address, bytes.value(), kMadvPopulateWrite) == 0) return {};
  if (errno == EFAULT) return Error{ErrorCode::kNoSpace, EFAULT, "madvise(MADV_POPULATE_WRITE)"};
  return file_error("madvise(MADV_POPULATE_WRITE)");
}

// Kilobytes of the mapping at `address` that huge pages map, from /proc/self/smaps.
std::uint64_t huge_kib_at(const std::byte* address) {
  char start[17];
  const auto end =
      std::to_chars(start, start + sizeof(start), reinterpret_cast<std::uintptr_t>(address), 16);
  const std::string head = std::string(start, end.ptr) + "-";
  constexpr std::string_view kField = "ShmemPmdMapped:";
  std::ifstream smaps("/proc/self/smaps");
  std::string line;
  bool is_here = false;
  while (std::getline(smaps, line)) {
    if (line.starts_with(head)) is_here = true;
    if (!is_here || !line.starts_with(kField)) continue;
    return std::strtoull(line.c_str() + kField.size(), nullptr, 10);
  }
  return 0;
}

}  // namespace

Result<FileSystemKind> file_system_kind(int fd) noexcept {
  struct statfs info {};
  if (::fstatfs(fd, &info) != 0) return Error{ErrorCode::kIo, errno, "fstatfs"};
  const auto magic = static_cast<unsigned long>(info.f_type);
  if (magic == kHugetlbfsMagic) {
    return FileSystemKind{.is_hugetlbfs = true,
                          .page_bytes = ByteCount(static_cast<std::uint64_t>(info.f_bsize))};
  }
  if (magic == kTmpfsMagic) return FileSystemKind{.is_hugetlbfs = false, .page_bytes = kSmallPage};
  return Error{ErrorCode::kUnsupported, 0, "pool.dir is on neither hugetlbfs nor tmpfs"};
}

SharedMapping::SharedMapping(SharedMapping&& other) noexcept
    : bytes_(std::exchange(other.bytes_, {})) {}

SharedMapping& SharedMapping::operator=(SharedMapping&& other) noexcept {
  std::swap(bytes_, other.bytes_);
  return *this;
}

SharedMapping::~SharedMapping() {
  if (!bytes_.empty()) CAIRN_CHECK(::munmap(bytes_.data(), bytes_.size()) == 0);
}

Result<SharedMapping> map_file(int fd, ByteCount bytes, const FileSystemKind& kind) noexcept {
  if (::ftruncate(fd, static_cast<off_t>(bytes.value())) != 0) return file_error("ftruncate");
  const std::uint64_t align = std::max(kHugePage, kind.page_bytes).value();
  const std::uint64_t length = round_up(bytes.value(), kSmallPage.value());
  const std::uint64_t reserved = length + align;
  // A stretch of addresses with an aligned one inside; the file's mapping replaces part of it.
  void* const room =
      ::mmap(nullptr, reserved, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (room == MAP_FAILED) return file_error("mmap");
  auto* const begin = static_cast<std::byte*>(room);
  const auto address = reinterpret_cast<std::uintptr_t>(room);
  std::byte* const aligned = begin + (round_up(address, align) - address);
  const int flags = MAP_SHARED | MAP_FIXED | (kind.is_hugetlbfs ? 0 : MAP_NORESERVE);
  void* const mapped = ::mmap(aligned, length, PROT_READ | PROT_WRITE, flags, fd, 0);
  if (mapped == MAP_FAILED) {
    const Error error = file_error("mmap");
    CAIRN_CHECK(::munmap(room, reserved) == 0);
    return error;
  }
  const auto before = static_cast<std::uint64_t>(aligned - begin);
  if (before > 0) CAIRN_CHECK(::munmap(begin, before) == 0);
  const std::uint64_t after = reserved - before - length;
  if (after > 0) CAIRN_CHECK(::munmap(aligned + length, after) == 0);
  return SharedMapping({aligned, bytes.value()});
}

void advise_huge_pages(std::span<std::byte> bytes) noexcept {
  static_cast<void>(::madvise(bytes.data(), bytes.size(), MADV_HUGEPAGE));
}

Status populate_mapping(const SharedMapping& mapping,
                        int fd,
                        ByteCount offset,
                        ByteCount bytes) noexcept {
  CAIRN_CHECK((offset + bytes).value() <= mapping.bytes().size());
  Status status = populate_by_madvise(mapping.bytes().data() + offset.value(), bytes);
  if (status.has_value() || status.error().sys != EINVAL) return status;
  // An older kernel: allocating the file's blocks is as good, only the page tables stay empty.
  const auto begin = static_cast<off_t>(offset.value());
  if (::fallocate(fd, 0, begin, static_cast<off_t>(bytes.value())) == 0) return {};
  return file_error("fallocate");
}

bool gives_transparent_huge_pages(int directory) noexcept {
  const OwnedFd trial(::openat(directory, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));
  if (trial.get() < 0) return false;
  const auto mapping =
      map_file(trial.get(), kHugePage, {.is_hugetlbfs = false, .page_bytes = kSmallPage});
  if (!mapping) return false;
  advise_huge_pages(mapping->bytes());
  if (!populate_by_madvise(mapping->bytes().data(), kHugePage)) return false;
  return huge_kib_at(mapping->bytes().data()) > 0;
}

}  // namespace cairn::storage
