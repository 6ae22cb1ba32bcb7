// What the node asks of Linux about a client's process: pidfds.
#pragma once

#include "server/node.h"

namespace cairn::server {

// Any thread.
class PidfdProcess final : public ClientProcess {
 public:
  bool is_process_of(int descriptor, const transport::Channel::Peer& peer) const noexcept override;
  bool has_exited(int descriptor) const noexcept override;
  void close(int descriptor) noexcept override;
};

}  // namespace cairn::server
