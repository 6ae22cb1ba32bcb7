// The owner of a descriptor that came over a channel.
#pragma once

#include "transport/process.h"

#include <utility>

namespace cairn::client {

// Closed through the process seam, since a simulated descriptor is no descriptor of the machine.
class Descriptor {
 public:
  Descriptor() = default;
  // `fd` may be -1: none.
  Descriptor(transport::ProcessWatch& process, int fd) noexcept
      : process_(&process),
        fd_(fd) {}
  Descriptor(Descriptor&& other) noexcept
      : process_(other.process_),
        fd_(other.release()) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    if (this != &other) {
      reset();
      process_ = other.process_;
      fd_ = other.release();
    }
    return *this;
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() { reset(); }

  bool is_open() const noexcept { return fd_ >= 0; }
  int get() const noexcept { return fd_; }
  // Gives it to the caller; -1 when there is none.
  int release() noexcept { return std::exchange(fd_, -1); }
  void reset() noexcept {
    if (fd_ >= 0) process_->close(release());
  }

 private:
  transport::ProcessWatch* process_ = nullptr;
  int fd_ = -1;
};

}  // namespace cairn::client
