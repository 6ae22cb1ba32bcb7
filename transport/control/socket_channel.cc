#include "transport/control/socket_channel.h"

#include "base/check.h"
#include "transport/control/socket_address.h"

#include <fcntl.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <string>
#include <utility>

namespace cairn::transport {
namespace {

// A silent peer is given up after kKeepAliveSeconds * (1 + kKeepAliveProbes), and unacknowledged
// bytes after as long.
constexpr int kKeepAliveSeconds = 5;
constexpr int kKeepAliveProbes = 2;
constexpr int kUnacknowledgedMs = 1000 * kKeepAliveSeconds * (1 + kKeepAliveProbes);
constexpr std::size_t kAncillaryBytes = CMSG_SPACE(sizeof(int) * kDescriptorsPerMessageMax);
// The space holds no descriptor more, so the kernel closes what a peer sends beyond.
static_assert(kAncillaryBytes == CMSG_LEN(sizeof(int) * kDescriptorsPerMessageMax));

struct alignas(cmsghdr) Ancillary {
  std::array<std::byte, kAncillaryBytes> bytes;
};

bool would_block(int error) {
  return error == EAGAIN || error == EWOULDBLOCK;
}

void attach(msghdr& message, Ancillary& space, const SendQueue::Piece& piece) {
  const std::size_t bytes = sizeof(int) * piece.descriptor_count;
  message.msg_control = space.bytes.data();
  message.msg_controllen = CMSG_SPACE(bytes);
  std::memset(space.bytes.data(), 0, space.bytes.size());
  cmsghdr* const header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(bytes);
  std::memcpy(CMSG_DATA(header), piece.descriptors.data(), bytes);
}

// An empty set when the process has no descriptor left.
std::optional<DescriptorSet> duplicate(std::span<const int> fds) {
  DescriptorSet set;
  for (std::size_t i = 0; i < fds.size(); ++i) {
    set.at(i) = OwnedFd(::fcntl(fds[i], F_DUPFD_CLOEXEC, 0));
    if (!set.at(i).is_open()) return std::nullopt;
  }
  return set;
}

}  // namespace

void tune_tcp(int socket) noexcept {
  const auto set = [socket](int level, int option, int value) {
    static_cast<void>(::setsockopt(socket, level, option, &value, sizeof(value)));
  };
  set(IPPROTO_TCP, TCP_NODELAY, 1);
  set(SOL_SOCKET, SO_KEEPALIVE, 1);
  set(IPPROTO_TCP, TCP_KEEPIDLE, kKeepAliveSeconds);
  set(IPPROTO_TCP, TCP_KEEPINTVL, kKeepAliveSeconds);
  set(IPPROTO_TCP, TCP_KEEPCNT, kKeepAliveProbes);
  set(IPPROTO_TCP, TCP_USER_TIMEOUT, kUnacknowledgedMs);
}

SocketChannel::SocketChannel(OwnedFd socket, bool is_local, SpinGate spin_gate) noexcept
    : socket_(std::move(socket)),
      is_local_(is_local),
      spin_gate_(spin_gate) {
  CAIRN_CHECK(socket_.is_open());
}

Status SocketChannel::send(std::span<const std::byte> frame, std::span<const int> fds) noexcept {
  CAIRN_CHECK(frame.size() >= wire::kFrameHeaderBytes);
  CAIRN_CHECK(fds.size() <= kDescriptorsPerMessageMax);
  if (!fds.empty() && !is_local_) {
    return Error{ErrorCode::kUnsupported, 0, "descriptors pass over unix sockets only"};
  }
  CAIRN_TRY_STATUS(flush());
  if (!outbox_.has_room(frame.size())) return Error{ErrorCode::kBusy, 0, "send queue"};
  std::size_t sent = 0;
  if (outbox_.is_empty()) {
    SendQueue::Piece piece{.bytes = frame};
    for (const int fd : fds)
      piece.descriptors.at(piece.descriptor_count++) = fd;
    CAIRN_TRY(sent, write_some(piece));
    if (sent == frame.size()) return {};
  }
  DescriptorSet descriptors;
  if (sent == 0 && !fds.empty()) {
    auto duplicates = duplicate(fds);
    if (!duplicates) return Error{ErrorCode::kBusy, errno, "dup"};
    descriptors = *std::move(duplicates);
  }
  outbox_.push(frame.subspan(sent), std::move(descriptors));
  return {};
}

Status SocketChannel::flush() noexcept {
  if (send_error_) return *send_error_;
  while (!outbox_.is_empty()) {
    const SendQueue::Piece piece = outbox_.front();
    CAIRN_TRY(const std::size_t sent, write_some(piece));
    outbox_.sent(sent);
    if (sent < piece.bytes.size()) return {};
  }
  return {};
}

Result<std::size_t> SocketChannel::write_some(const SendQueue::Piece& piece) noexcept {
  iovec vector{};
  // sendmsg() only reads from it.
  vector.iov_base = const_cast<std::byte*>(piece.bytes.data());
  vector.iov_len = piece.bytes.size();
  msghdr message{};
  message.msg_iov = &vector;
  message.msg_iovlen = 1;
  Ancillary space{};
  const bool has_descriptors = piece.descriptor_count > 0;
  if (has_descriptors) attach(message, space, piece);
  constexpr int kFlags = MSG_NOSIGNAL | MSG_DONTWAIT;
  ssize_t sent = 0;
  do {
    // The kernel has less to copy for send().
    sent = has_descriptors ? ::sendmsg(socket_.get(), &message, kFlags)
                           : ::send(socket_.get(), piece.bytes.data(), piece.bytes.size(), kFlags);
  } while (sent < 0 && errno == EINTR);
  if (sent >= 0) return static_cast<std::size_t>(sent);
  if (would_block(errno)) return std::size_t{0};
  send_error_ = Error{ErrorCode::kPeerGone, errno, "sendmsg"};
  return *send_error_;
}

Result<std::optional<Received>> SocketChannel::receive() noexcept {
  inbox_.drop_given();
  if (receive_error_) return *receive_error_;
  for (;;) {
    const auto frame = assembler_.next();
    if (!frame) return fail_receive(frame.error());
    if (frame->has_value()) {
      if (!inbox_.give(assembler_.frame_end())) {
        return fail_receive({ErrorCode::kCorrupt, 0, "too many descriptors with a frame"});
      }
      return Received{**frame};
    }
    if (std::exchange(is_drained_, false)) return std::nullopt;
    const auto progress = read_some();
    if (!progress) return fail_receive(progress.error());
    if (!progress->has_bytes) return std::nullopt;
    is_drained_ = progress->is_drained;
  }
}

Result<SocketChannel::Progress> SocketChannel::read_some() noexcept {
  const std::span<std::byte> room = assembler_.room();
  iovec vector{room.data(), room.size()};
  msghdr message{};
  message.msg_iov = &vector;
  message.msg_iovlen = 1;
  Ancillary space{};
  if (is_local_) {
    message.msg_control = space.bytes.data();
    message.msg_controllen = space.bytes.size();
  }
  ssize_t read = 0;
  do {
    read = ::recvmsg(socket_.get(), &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  } while (read < 0 && errno == EINTR);
  if (read < 0 && would_block(errno)) return Progress{};
  if (read < 0) return Error{ErrorCode::kPeerGone, errno, "recvmsg"};
  assembler_.added(static_cast<std::size_t>(read));
  const bool has_ancillary = message.msg_controllen > 0 || (message.msg_flags & MSG_CTRUNC) != 0;
  if (has_ancillary) CAIRN_TRY_STATUS(take_ancillary(message));
  if (read == 0) return Error{ErrorCode::kPeerGone, 0, "closed by the other side"};
  // A read that brought descriptors ends behind them, whatever the socket still holds.
  return Progress{true, !has_ancillary && static_cast<std::size_t>(read) < room.size()};
}

Status SocketChannel::take_ancillary(msghdr& message) noexcept {
  const bool is_cut = (message.msg_flags & MSG_CTRUNC) != 0;
  std::size_t count = 0;
  bool is_full = false;
  for (cmsghdr* header = CMSG_FIRSTHDR(&message); header != nullptr;
       header = CMSG_NXTHDR(&message, header)) {
    if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS) continue;
    const std::size_t here = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (std::size_t i = 0; i < here; ++i, ++count) {
      int fd = -1;
      std::memcpy(&fd, CMSG_DATA(header) + i * sizeof(int), sizeof(int));
      if (!inbox_.add(OwnedFd(fd), assembler_.stream_end())) is_full = true;
    }
  }
  // Cut short below the bound: this process has no descriptor left for them.
  const bool is_ours = is_cut && count < kDescriptorsPerMessageMax;
  if (is_ours) return Error{ErrorCode::kCorrupt, EMFILE, "descriptors of a frame were lost"};
  if (is_cut || is_full) {
    return Error{ErrorCode::kCorrupt, 0, "too many descriptors with a frame"};
  }
  return {};
}

Error SocketChannel::fail_receive(Error error) noexcept {
  inbox_.clear();
  receive_error_ = error;
  return error;
}

Channel::Peer SocketChannel::peer() const {
  Peer peer;
  if (is_local_) {
    ucred credentials{};
    socklen_t bytes = sizeof(credentials);
    if (::getsockopt(socket_.get(), SOL_SOCKET, SO_PEERCRED, &credentials, &bytes) != 0) {
      return {.pid = 0, .uid = 0, .name = "unix"};
    }
    peer.pid = static_cast<std::uint32_t>(credentials.pid);
    peer.uid = credentials.uid;
    peer.name = "pid " + std::to_string(credentials.pid);
    return peer;
  }
  SocketAddress address;
  address.bytes = sizeof(address.v6);
  if (::getpeername(socket_.get(), &address.any, &address.bytes) != 0) {
    return {.pid = 0, .uid = 0, .name = "tcp"};
  }
  peer.name = to_address(address).to_string();
  return peer;
}

}  // namespace cairn::transport
