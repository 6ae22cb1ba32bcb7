// A channel over a connected stream socket, unix or TCP.
//
// Descriptors (unix only). The sender gives them to the sendmsg(2) that begins with the first byte
// of their frame, and that call carries bytes of this frame alone. Linux never reads on behind the
// bytes that descriptors came with: unix_stream_read_generic() ends a recvmsg(2) there. It may
// begin before them, so a read that brings descriptors ends with bytes of their frame: they belong
// to the frame that the last byte of that read lies in. docs/formats.md states the rule for other
// senders; one that breaks it can at worst hand its descriptors to another frame of its own.
#pragma once

#include "base/result.h"
#include "base/spin_gate.h"
#include "transport/channel.h"
#include "transport/control/descriptor_inbox.h"
#include "transport/control/frame_assembler.h"
#include "transport/control/owned_fd.h"
#include "transport/control/send_queue.h"

#include <sys/socket.h>

#include <optional>
#include <span>

namespace cairn::transport {

class SocketChannel final : public Channel {
 public:
  // Takes a connected socket; every call on it is made non-blocking.
  SocketChannel(OwnedFd socket, bool is_local, SpinGate spin_gate = SpinGate()) noexcept;

  using Channel::send;
  Status send(std::span<const std::byte> frame, std::span<const int> fds) noexcept override;
  Status flush() noexcept override;
  ByteCount queued() const noexcept override { return outbox_.size(); }
  Result<std::optional<Received>> receive() noexcept override;
  int take_descriptor() noexcept override { return inbox_.take(); }
  int fd() const noexcept override { return socket_.get(); }
  bool is_local() const noexcept override { return is_local_; }
  Peer peer() const override;

  // Whether receive() has an answer without reading the socket. The pollers ask, since the kernel
  // cannot know of frames that lie in our buffer already.
  bool has_buffered() const noexcept { return receive_error_.has_value() || assembler_.has_next(); }

  // Of those who wait for this channel alone.
  SpinGate& spin_gate() noexcept { return spin_gate_; }

 private:
  struct Progress {
    bool has_bytes = false;
    bool is_drained = false;  // the socket held no more than what was read
  };
  Result<Progress> read_some() noexcept;
  Result<std::size_t> write_some(const SendQueue::Piece& piece) noexcept;
  Error fail_receive(Error error) noexcept;
  Status take_ancillary(msghdr& message) noexcept;

  OwnedFd socket_;
  bool is_local_;
  SpinGate spin_gate_;
  FrameAssembler assembler_;
  DescriptorInbox inbox_;
  SendQueue outbox_;
  // The last read emptied the socket. The next receive() without a whole frame says so without
  // asking the kernel again, and the one after it asks: one system call less for each message. What
  // has come in between is reported by the poller, which is level-triggered.
  bool is_drained_ = false;
  std::optional<Error> receive_error_;
  std::optional<Error> send_error_;
};

// Sets what every TCP connection of ours has: no delay, and keep-alive, by which a peer that
// disappeared silently is noticed. Failures are ignored: the connection works without.
void tune_tcp(int socket) noexcept;

}  // namespace cairn::transport
