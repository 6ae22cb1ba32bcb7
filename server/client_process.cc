#include "server/client_process.h"

#include "storage/pool_memory.h"
#include "transport/process.h"

namespace cairn::server {

bool PidfdProcess::is_process_descriptor(int descriptor) const noexcept {
  // Verified against no process in particular: kPermission then means a whole, living process that
  // can be seen from here, success one that cannot.
  const Status verified = transport::verify_pidfd(descriptor, {});
  return verified || verified.error().code == ErrorCode::kPermission;
}

bool PidfdProcess::has_exited(int descriptor) const noexcept {
  return transport::has_exited(descriptor);
}

void PidfdProcess::close(int descriptor) noexcept {
  const storage::OwnedFd closing(descriptor);
}

}  // namespace cairn::server
