// From addresses as people write them to what bind(2) and connect(2) take.
#pragma once

#include "base/result.h"
#include "transport/channel.h"

#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <string>
#include <string_view>
#include <vector>

namespace cairn::transport {

struct SocketAddress {
  union {
    sockaddr any;
    sockaddr_un unix_path{};  // the longest
    sockaddr_in v4;
    sockaddr_in6 v6;
  };
  socklen_t bytes = 0;

  int family() const noexcept { return any.sa_family; }
};

// Errors: kInvalid (too long for a unix socket, or empty).
Result<SocketAddress> unix_socket_address(std::string_view path) noexcept;
// A name in the abstract namespace, which disappears with its last socket.
SocketAddress abstract_socket_address(std::string_view name) noexcept;

// Every address that host and port mean, in the order to try them. Only numbers and
// "localhost": the system's resolver keeps no deadline. Errors: kInvalid (another name).
Result<std::vector<SocketAddress>> resolve(const Address& address) noexcept;

// "127.0.0.1:80" with the port of a bound or connected socket's name.
Address to_address(const SocketAddress& address);

}  // namespace cairn::transport
