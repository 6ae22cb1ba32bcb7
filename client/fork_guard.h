// Tells a forked child from the process that made a handle.
#pragma once

#include <sys/types.h>

namespace cairn::client {

// A page that the kernel wipes in forked children, so that asking costs one load. Where the kernel
// cannot wipe, process ids are compared. Any thread.
class ForkGuard {
 public:
  ForkGuard() noexcept;
  ~ForkGuard();
  ForkGuard(const ForkGuard&) = delete;
  ForkGuard& operator=(const ForkGuard&) = delete;

  // True in a child of the process that made this object.
  bool is_child() const noexcept;

 private:
  const volatile unsigned char* page_ = nullptr;
  ::pid_t owner_ = 0;
};

}  // namespace cairn::client
