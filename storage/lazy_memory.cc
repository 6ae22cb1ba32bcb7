#include "storage/lazy_memory.h"

#include "base/check.h"

#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <utility>

namespace cairn::storage {

Result<LazyMemory> LazyMemory::map(ByteCount bytes, LazyPages pages) noexcept {
  const std::size_t size = std::max<std::size_t>(bytes.value(), 1);
  void* const address = mmap(
      nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (address == MAP_FAILED) return Error{ErrorCode::kNoSpace, errno, "mmap"};
  // A refusal leaves small pages, which are slower and as right.
  if (pages == LazyPages::kHuge) static_cast<void>(madvise(address, size, MADV_HUGEPAGE));
  return LazyMemory({static_cast<std::byte*>(address), size});
}

LazyMemory::LazyMemory(LazyMemory&& other) noexcept
    : bytes_(std::exchange(other.bytes_, {})) {}

LazyMemory& LazyMemory::operator=(LazyMemory&& other) noexcept {
  std::swap(bytes_, other.bytes_);
  return *this;
}

LazyMemory::~LazyMemory() {
  if (bytes_.empty()) return;
  CAIRN_CHECK(munmap(bytes_.data(), bytes_.size()) == 0);
}

}  // namespace cairn::storage
