#include "transport/control/socket_listener.h"

#include "base/checksum.h"
#include "transport/control/socket_address.h"
#include "transport/control/socket_channel.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <cerrno>
#include <string>
#include <utility>
#include <vector>

namespace cairn::transport {
namespace {

constexpr mode_t kSocketMode = 0600;

Error system_error(const char* call) {
  switch (errno) {
    case EADDRINUSE:
      return {ErrorCode::kExists, errno, call};
    case EACCES:
    case EPERM:
    case EROFS:
      return {ErrorCode::kPermission, errno, call};
    default:
      return {ErrorCode::kIo, errno, call};
  }
}

Result<OwnedFd> open_socket(int family) {
  OwnedFd socket(::socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket.is_open()) return system_error("socket");
  return socket;
}

// Held while a socket file is looked at, replaced and listened on, so that of two processes that
// start at once one cannot take the other's new file for an old one. An abstract name needs no
// file and goes with its process.
Result<OwnedFd> lock_path(const std::string& path) {
  CAIRN_TRY(OwnedFd lock, open_socket(AF_UNIX));
  const std::uint64_t hash = xxh3_64(std::as_bytes(std::span(path)));
  const SocketAddress name = abstract_socket_address("cairn.listen." + std::to_string(hash));
  if (::bind(lock.get(), &name.any, name.bytes) != 0) return system_error("bind (lock of path)");
  return lock;
}

// Removes a socket file that nobody listens on. Errors: kExists (somebody listens, or it is no
// socket), kPermission, kIo.
Status remove_stale(const std::string& path, const SocketAddress& address) {
  struct stat file {};
  if (::lstat(path.c_str(), &file) != 0) {
    if (errno == ENOENT) return {};
    return system_error("lstat");
  }
  if (!S_ISSOCK(file.st_mode)) {
    return Error{ErrorCode::kExists, ENOTSOCK, "the path is there and no socket"};
  }
  CAIRN_TRY(const OwnedFd probe, open_socket(AF_UNIX));
  if (::connect(probe.get(), &address.any, address.bytes) == 0 || errno != ECONNREFUSED) {
    if (errno == EACCES) return system_error("connect (is anybody there)");
    return Error{ErrorCode::kExists, EADDRINUSE, "somebody listens there"};
  }
  if (::unlink(path.c_str()) != 0 && errno != ENOENT) return system_error("unlink");
  return {};
}

Result<OwnedFd> bind_tcp(const SocketAddress& address) {
  CAIRN_TRY(OwnedFd socket, open_socket(address.family()));
  const int on = 1;
  if (::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) != 0) {
    return system_error("SO_REUSEADDR");
  }
  if (::bind(socket.get(), &address.any, address.bytes) != 0) return system_error("bind");
  if (::listen(socket.get(), kBacklog) != 0) return system_error("listen");
  return socket;
}

OwnedFd open_spare() {
  return OwnedFd(::open("/dev/null", O_RDONLY | O_CLOEXEC));
}

bool is_gone_connection(int error) {
  return error == ECONNABORTED || error == EPROTO || error == EINTR || error == EPERM;
}

}  // namespace

SocketListener::SocketListener(OwnedFd socket, Address address) noexcept
    : socket_(std::move(socket)),
      spare_(open_spare()),
      address_(std::move(address)) {}

Result<std::unique_ptr<Listener>> SocketListener::open_unix(const Address& address) noexcept {
  CAIRN_TRY(const SocketAddress name, unix_socket_address(address.path));
  CAIRN_TRY(const OwnedFd lock, lock_path(address.path));
  CAIRN_TRY_STATUS(remove_stale(address.path, name));
  CAIRN_TRY(OwnedFd socket, open_socket(AF_UNIX));
  // bind(2) gives the file the mode of the socket, so there is no moment in which it is wider.
  if (::fchmod(socket.get(), kSocketMode) != 0) return system_error("fchmod");
  if (::bind(socket.get(), &name.any, name.bytes) != 0) return system_error("bind");
  if (::listen(socket.get(), kBacklog) != 0) return system_error("listen");
  std::unique_ptr<SocketListener> listener(new SocketListener(std::move(socket), address));
  struct stat file {};
  if (::lstat(address.path.c_str(), &file) != 0) return system_error("lstat");
  listener->device_ = file.st_dev;
  listener->inode_ = file.st_ino;
  return std::unique_ptr<Listener>(std::move(listener));
}

Result<std::unique_ptr<Listener>> SocketListener::open_tcp(const Address& address) noexcept {
  CAIRN_TRY(const std::vector<SocketAddress> names, resolve(address));
  CAIRN_TRY(OwnedFd socket, bind_tcp(names.front()));
  SocketAddress bound;
  bound.bytes = sizeof(bound.v6);
  if (::getsockname(socket.get(), &bound.any, &bound.bytes) != 0) {
    return system_error("getsockname");
  }
  return std::unique_ptr<Listener>(new SocketListener(std::move(socket), to_address(bound)));
}

SocketListener::~SocketListener() {
  if (!address_.is_unix) return;
  struct stat file {};
  if (::lstat(address_.path.c_str(), &file) != 0) return;
  if (file.st_dev != device_ || file.st_ino != inode_) return;
  static_cast<void>(::unlink(address_.path.c_str()));
}

Result<std::unique_ptr<Channel>> SocketListener::accept() noexcept {
  for (int tries = 0; tries < kAcceptTriesMax; ++tries) {
    OwnedFd socket(::accept4(socket_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (socket.is_open()) {
      if (!address_.is_unix) tune_tcp(socket.get());
      return std::make_unique<SocketChannel>(std::move(socket), address_.is_unix);
    }
    if (errno == EAGAIN || errno == EWOULDBLOCK) return std::unique_ptr<Channel>();
    if (errno == EINVAL) return Error{ErrorCode::kPeerGone, errno, "accept4"};
    if (errno == EMFILE || errno == ENFILE) return refuse_one(errno);
    if (!is_gone_connection(errno)) return Error{ErrorCode::kIo, errno, "accept4"};
  }
  return std::unique_ptr<Channel>();
}

Error SocketListener::refuse_one(int reason) noexcept {
  spare_.reset();
  OwnedFd refused(::accept4(socket_.get(), nullptr, nullptr, SOCK_CLOEXEC));
  refused.reset();
  spare_ = open_spare();
  return {ErrorCode::kIo, reason, "accept4"};
}

Result<std::unique_ptr<Listener>> listen(const Address& address) noexcept {
  return address.is_unix ? SocketListener::open_unix(address) : SocketListener::open_tcp(address);
}

}  // namespace cairn::transport
