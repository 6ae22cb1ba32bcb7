// A listening socket, unix or TCP.
#pragma once

#include "base/result.h"
#include "transport/channel.h"
#include "transport/control/owned_fd.h"

#include <sys/types.h>

#include <memory>

namespace cairn::transport {

// Connections that may wait for accept() at once; the kernel refuses or delays more.
inline constexpr int kBacklog = 256;
// Connections that went away while they waited, passed over in one accept().
inline constexpr int kAcceptTriesMax = 64;

class SocketListener final : public Listener {
 public:
  // Errors: as listen() in transport/channel.h.
  static Result<std::unique_ptr<Listener>> open_unix(const Address& address) noexcept;
  static Result<std::unique_ptr<Listener>> open_tcp(const Address& address) noexcept;
  // Removes the socket's file unless somebody has put another there.
  ~SocketListener() override;
  SocketListener(const SocketListener&) = delete;
  SocketListener& operator=(const SocketListener&) = delete;

  // When the process has no descriptor left, the connection that waits longest is closed (else it
  // would be reported for ever) and the error is kIo with EMFILE or ENFILE.
  Result<std::unique_ptr<Channel>> accept() noexcept override;
  int fd() const noexcept override { return socket_.get(); }
  Address address() const override { return address_; }

 private:
  SocketListener(OwnedFd socket, Address address) noexcept;
  Error refuse_one(int reason) noexcept;

  OwnedFd socket_;
  OwnedFd spare_;  // closed for the moment in which a connection must be taken to be refused
  Address address_;
  dev_t device_ = 0;  // of the unix socket's file
  ino_t inode_ = 0;
};

}  // namespace cairn::transport
