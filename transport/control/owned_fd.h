// The owner of a file descriptor. Closing one that is not open is a bug.
#pragma once

#include "base/check.h"

#include <unistd.h>

#include <cerrno>
#include <utility>

namespace cairn::transport {

class OwnedFd {
 public:
  OwnedFd() = default;
  explicit OwnedFd(int fd) noexcept
      : fd_(fd) {}
  OwnedFd(OwnedFd&& other) noexcept
      : fd_(other.release()) {}
  OwnedFd& operator=(OwnedFd&& other) noexcept {
    if (this != &other) {
      reset();
      fd_ = other.release();
    }
    return *this;
  }
  OwnedFd(const OwnedFd&) = delete;
  OwnedFd& operator=(const OwnedFd&) = delete;
  ~OwnedFd() { reset(); }

  int get() const noexcept { return fd_; }
  bool is_open() const noexcept { return fd_ >= 0; }
  // Gives the descriptor to the caller; -1 when there is none.
  int release() noexcept { return std::exchange(fd_, -1); }
  void reset() noexcept {
    if (fd_ < 0) return;
    CAIRN_CHECK(::close(fd_) == 0 || errno != EBADF);
    fd_ = -1;
  }

 private:
  int fd_ = -1;
};

}  // namespace cairn::transport
