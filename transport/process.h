// The seam of client processes: whether the process behind a descriptor still lives. Real: pidfds.
// Simulated: tests/support/sim_network.h.
#pragma once

#include "base/result.h"
#include "transport/channel.h"

#include <memory>

namespace cairn::transport {

// What a daemon asks about its clients' processes, by a descriptor that the client sent. The
// descriptor becomes readable for Poller::add_descriptor() when the process has exited. Any thread.
class ProcessWatch {
 public:
  ProcessWatch() = default;
  ProcessWatch(const ProcessWatch&) = delete;
  ProcessWatch& operator=(const ProcessWatch&) = delete;
  virtual ~ProcessWatch() = default;

  // Checks a descriptor that came over a unix socket: that it names a whole process, and the one
  // that connected. Where the peer's pid is 0 (it is in a PID namespace that this process cannot
  // see) only a pidfd of such a process passes. The descriptor stays the caller's. Errors: kInvalid
  // (no pidfd, or one of a thread), kPermission (of another process), kPeerGone (it has been reaped
  // already), kIo (no /proc).
  virtual Status verify(int fd, const Channel::Peer& peer) noexcept = 0;
  // True once the process has exited, also while it waits as a zombie to be reaped. A stopped
  // process has not exited. `fd` has passed verify().
  virtual bool has_exited(int fd) noexcept = 0;
  // Closes a descriptor that take_descriptor() or open_own() gave.
  virtual void close(int fd) noexcept = 0;
  // A descriptor of the calling process, to be sent to a daemon; close-on-exec. Errors:
  // kUnsupported (the kernel has no pidfds), kIo.
  virtual Result<int> open_own() noexcept = 0;
};

// The real one is made of these. open_own_pidfd() serves a client that is never simulated.
Result<int> open_own_pidfd() noexcept;
bool has_exited(int pidfd) noexcept;
Status verify_pidfd(int fd, const Channel::Peer& peer) noexcept;
std::unique_ptr<ProcessWatch> make_process_watch();

}  // namespace cairn::transport
