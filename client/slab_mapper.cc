#include "client/slab_mapper.h"

#include "base/check.h"

#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

namespace cairn::client {
namespace {

Result<std::span<std::byte>> map_descriptor(int fd, ByteCount bytes) noexcept {
  struct stat file {};
  if (::fstat(fd, &file) != 0) return Error{ErrorCode::kIo, errno, "fstat slab"};
  // Beyond the end of the file every access would be a SIGBUS.
  if (file.st_size < 0 || static_cast<std::uint64_t>(file.st_size) < bytes.value()) {
    return Error{ErrorCode::kIo, 0, "slab is shorter than announced"};
  }
  void* const memory = ::mmap(nullptr, bytes.value(), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (memory == MAP_FAILED) {
    return Error{errno == ENOMEM ? ErrorCode::kNoSpace : ErrorCode::kIo, errno, "mmap slab"};
  }
  if (::madvise(memory, bytes.value(), MADV_DONTFORK) != 0) {
    const int error = errno;
    ::munmap(memory, bytes.value());
    return Error{ErrorCode::kIo, error, "MADV_DONTFORK"};
  }
  return std::span(static_cast<std::byte*>(memory), bytes.value());
}

}  // namespace

Result<std::span<std::byte>> SystemSlabMapper::map(int fd, ByteCount bytes) noexcept {
  auto memory = map_descriptor(fd, bytes);
  ::close(fd);
  return memory;
}

void SystemSlabMapper::unmap(std::span<std::byte> bytes) noexcept {
  CAIRN_CHECK(::munmap(bytes.data(), bytes.size()) == 0);
}

void SystemSlabMapper::populate(std::span<std::byte> bytes) noexcept {
  // Only speed depends on it: what stays unmapped is faulted in by the first access.
  static_cast<void>(::madvise(bytes.data(), bytes.size(), MADV_POPULATE_WRITE));
}

}  // namespace cairn::client
