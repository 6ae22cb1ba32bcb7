#include "server/client_process.h"

#include "storage/pool_memory.h"
#include "transport/process.h"

namespace cairn::server {

bool PidfdProcess::is_process_of(int descriptor,
                                 const transport::Channel::Peer& peer) const noexcept {
  return transport::verify_pidfd(descriptor, peer).has_value();
}

bool PidfdProcess::has_exited(int descriptor) const noexcept {
  return transport::has_exited(descriptor);
}

void PidfdProcess::close(int descriptor) noexcept {
  const storage::OwnedFd closing(descriptor);
}

}  // namespace cairn::server
