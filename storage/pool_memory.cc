#include "storage/pool_memory.h"

#include <unistd.h>

namespace cairn::storage {

OwnedFd& OwnedFd::operator=(OwnedFd&& other) noexcept {
  if (this != &other) {
    if (fd_ >= 0) ::close(fd_);
    fd_ = other.release();
  }
  return *this;
}

OwnedFd::~OwnedFd() {
  // A failed close of a descriptor that is ours would be EBADF, a bug that has no answer here;
  // Linux frees the descriptor whatever close() says.
  if (fd_ >= 0) ::close(fd_);
}

}  // namespace cairn::storage
