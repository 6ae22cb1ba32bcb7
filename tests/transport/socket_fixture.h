// Raw sockets beside our channel, to send what no channel of ours would send.
#pragma once

#include "base/check.h"
#include "transport/control/socket_channel.h"

#include <sys/socket.h>

#include <array>
#include <cstring>
#include <filesystem>
#include <memory>
#include <span>
#include <utility>
#include <vector>

namespace cairn::transport::testing {

// A channel and the raw other end of its socket.
struct HostilePair {
  HostilePair() {
    std::array<int, 2> fds{};
    CAIRN_CHECK(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds.data()) == 0);
    channel = std::make_unique<SocketChannel>(OwnedFd(fds[0]), true);
    raw = OwnedFd(fds[1]);
  }
  std::unique_ptr<SocketChannel> channel;
  OwnedFd raw;
};

// One sendmsg(2) with these bytes and descriptors, any number of either.
inline void send_raw(int socket, std::span<const std::byte> bytes, std::span<const int> fds) {
  std::vector<std::byte> space(CMSG_SPACE(sizeof(int) * fds.size()));
  iovec vector{const_cast<std::byte*>(bytes.data()), bytes.size()};
  msghdr message{};
  message.msg_iov = &vector;
  message.msg_iovlen = 1;
  if (!fds.empty()) {
    message.msg_control = space.data();
    message.msg_controllen = space.size();
    cmsghdr* const header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof(int) * fds.size());
    std::memcpy(CMSG_DATA(header), fds.data(), sizeof(int) * fds.size());
  }
  CAIRN_CHECK(::sendmsg(socket, &message, MSG_NOSIGNAL) == static_cast<ssize_t>(bytes.size()));
}

// Descriptors that this process has open.
inline std::size_t open_descriptors() {
  using std::filesystem::directory_iterator;
  const auto all = std::distance(directory_iterator("/proc/self/fd"), directory_iterator());
  return static_cast<std::size_t>(all) - 1;  // the iterator's own
}

}  // namespace cairn::transport::testing
