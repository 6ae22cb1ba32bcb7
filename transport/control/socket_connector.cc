#include "base/clock.h"
#include "transport/channel.h"
#include "transport/control/owned_fd.h"
#include "transport/control/socket_address.h"
#include "transport/control/socket_channel.h"
#include "transport/control/wait.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/time.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <utility>

namespace cairn::transport {
namespace {

Error connect_error(int error) {
  switch (error) {
    case ECONNREFUSED:
    case ECONNRESET:
    case ENOENT:
      return {ErrorCode::kPeerGone, error, "connect"};
    case EACCES:
    case EPERM:
      return {ErrorCode::kPermission, error, "connect"};
    case EAGAIN:
    case EINPROGRESS:
    case ETIMEDOUT:
      return {ErrorCode::kTimeout, error, "connect"};
    default:
      return {ErrorCode::kIo, error, "connect"};
  }
}

// Longer time-outs are cut to this.
constexpr Milliseconds kConnectTimeoutMax = std::chrono::hours(24);

// A port of the ephemeral range on which nobody listens can be given to the very socket that
// connects to it, which TCP then joins to itself.
bool is_joined_to_itself(int socket) {
  SocketAddress own;
  SocketAddress peer;
  own.bytes = peer.bytes = sizeof(own.v6);
  if (::getsockname(socket, &own.any, &own.bytes) != 0) return false;
  if (::getpeername(socket, &peer.any, &peer.bytes) != 0) return false;
  return to_address(own).to_string() == to_address(peer).to_string();
}

class SocketConnector final : public Connector {
 public:
  SocketConnector(const Clock& clock, Nanoseconds spin) noexcept
      : clock_(clock),
        spin_(spin) {}

  Result<std::unique_ptr<Channel>> connect(const Address& address,
                                           Milliseconds timeout) noexcept override;
  bool wait(Channel& channel, MonotonicTime until) noexcept override;
  void pause(MonotonicTime until) noexcept override {
    static_cast<void>(wait_for(-1, 0, until, clock_));
  }

 private:
  Result<OwnedFd> connect_unix(const SocketAddress& address, const Deadline& deadline);
  Result<OwnedFd> connect_tcp(const SocketAddress& address, const Deadline& deadline);

  const Clock& clock_;
  const Nanoseconds spin_;
};

// A blocking socket with a send time-out, because a unix socket whose listener has a full backlog
// answers EAGAIN and offers nothing to poll for.
Result<OwnedFd> SocketConnector::connect_unix(const SocketAddress& address,
                                              const Deadline& deadline) {
  OwnedFd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!socket.is_open()) return Error{ErrorCode::kIo, errno, "socket"};
  for (;;) {
    // Zero would mean for ever.
    const auto left = std::max(deadline.remaining(clock_.now()), Nanoseconds(1000));
    const timeval timeout = to_timeval(left);
    if (::setsockopt(socket.get(), SOL_SOCKET, SO_SNDTIMEO, &timeout, sizeof(timeout)) != 0) {
      return Error{ErrorCode::kIo, errno, "SO_SNDTIMEO"};
    }
    if (::connect(socket.get(), &address.any, address.bytes) == 0) return socket;
    if (errno != EINTR) return connect_error(errno);
    if (deadline.has_passed(clock_.now())) return connect_error(ETIMEDOUT);
  }
}

Result<OwnedFd> SocketConnector::connect_tcp(const SocketAddress& address,
                                             const Deadline& deadline) {
  OwnedFd socket(::socket(address.family(), SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket.is_open()) return Error{ErrorCode::kIo, errno, "socket"};
  tune_tcp(socket.get());
  if (::connect(socket.get(), &address.any, address.bytes) != 0 && errno != EINPROGRESS &&
      errno != EINTR) {
    return connect_error(errno);
  }
  if (!wait_for(socket.get(), POLLOUT, deadline.at(), clock_)) return connect_error(ETIMEDOUT);
  int error = 0;
  socklen_t bytes = sizeof(error);
  if (::getsockopt(socket.get(), SOL_SOCKET, SO_ERROR, &error, &bytes) != 0) error = errno;
  if (error == 0 && is_joined_to_itself(socket.get())) error = ECONNREFUSED;
  if (error != 0) return connect_error(error);
  return socket;
}

Result<std::unique_ptr<Channel>> SocketConnector::connect(const Address& address,
                                                          Milliseconds timeout) noexcept {
  const Deadline deadline =
      Deadline::after(clock_, std::clamp(timeout, Milliseconds(0), kConnectTimeoutMax));
  if (address.is_unix) {
    const auto name = unix_socket_address(address.path);
    if (!name) return Error{ErrorCode::kIo, name.error().sys, name.error().what};
    CAIRN_TRY(OwnedFd socket, connect_unix(*name, deadline));
    return std::make_unique<SocketChannel>(std::move(socket), true, SpinGate(spin_));
  }
  const auto names = resolve(address);
  if (!names) return names.error();
  Error last = connect_error(ETIMEDOUT);
  for (const SocketAddress& name : *names) {
    auto socket = connect_tcp(name, deadline);
    if (socket) return std::make_unique<SocketChannel>(std::move(*socket), false);
    last = socket.error();
    if (deadline.has_passed(clock_.now())) break;
  }
  return last;
}

bool SocketConnector::wait(Channel& channel, MonotonicTime until) noexcept {
  auto* const socket = dynamic_cast<SocketChannel*>(&channel);
  const short events = channel.queued() > ByteCount() ? POLLIN | POLLOUT : POLLIN;
  if (socket == nullptr) return wait_for(channel.fd(), events, until, clock_);
  if (socket->has_buffered()) return true;
  SpinGate& gate = socket->spin_gate();
  const MonotonicTime begin = clock_.now();
  const MonotonicTime spin_end = std::min(until, begin + gate.budget());
  MonotonicTime now = begin;
  bool has_come = false;
  while (!has_come && now < spin_end) {
    has_come = wait_for(socket->fd(), events, now, clock_);
    now = clock_.now();
  }
  has_come = has_come || wait_for(socket->fd(), events, until, clock_);
  gate.waited(clock_.now() - begin, has_come);
  return has_come;
}

}  // namespace

std::unique_ptr<Connector> make_connector(const Clock& clock, Nanoseconds spin) {
  return std::make_unique<SocketConnector>(clock, spin);
}

}  // namespace cairn::transport
