#include "client/fork_guard.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>

namespace cairn::client {
namespace {

constexpr std::size_t kPageBytes = 4096;

}  // namespace

ForkGuard::ForkGuard() noexcept
    : owner_(::getpid()) {
  void* const page =
      ::mmap(nullptr, kPageBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (page == MAP_FAILED) return;
  if (::madvise(page, kPageBytes, MADV_WIPEONFORK) != 0) {
    ::munmap(page, kPageBytes);
    return;
  }
  auto* const mark = static_cast<unsigned char*>(page);
  *mark = 1;
  page_ = mark;
}

ForkGuard::~ForkGuard() {
  if (page_ != nullptr) ::munmap(const_cast<unsigned char*>(page_), kPageBytes);
}

bool ForkGuard::is_child() const noexcept {
  return page_ != nullptr ? *page_ == 0 : ::getpid() != owner_;
}

}  // namespace cairn::client
