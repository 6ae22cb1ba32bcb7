#include "transport/control/socket_address.h"

#include "base/check.h"

#include <arpa/inet.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <string>

namespace cairn::transport {
namespace {

SocketAddress v4_address(in_addr host, std::uint16_t port) {
  SocketAddress address;
  address.v4 = {};
  address.v4.sin_family = AF_INET;
  address.v4.sin_addr = host;
  address.v4.sin_port = htons(port);
  address.bytes = sizeof(address.v4);
  return address;
}

SocketAddress v6_address(const in6_addr& host, std::uint16_t port) {
  SocketAddress address;
  address.v6 = {};
  address.v6.sin6_family = AF_INET6;
  address.v6.sin6_addr = host;
  address.v6.sin6_port = htons(port);
  address.bytes = sizeof(address.v6);
  return address;
}

}  // namespace

Result<SocketAddress> unix_socket_address(std::string_view path) noexcept {
  SocketAddress address;
  if (path.empty() || path.size() >= sizeof(address.unix_path.sun_path)) {
    return Error{ErrorCode::kInvalid, ENAMETOOLONG, "unix socket path"};
  }
  address.unix_path.sun_family = AF_UNIX;
  std::memcpy(static_cast<char*>(address.unix_path.sun_path), path.data(), path.size());
  address.bytes = sizeof(address.unix_path);
  return address;
}

SocketAddress abstract_socket_address(std::string_view name) noexcept {
  SocketAddress address;
  CAIRN_CHECK(name.size() + 1 < sizeof(address.unix_path.sun_path));
  address.unix_path.sun_family = AF_UNIX;
  std::memcpy(static_cast<char*>(address.unix_path.sun_path) + 1, name.data(), name.size());
  address.bytes = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  return address;
}

Result<std::vector<SocketAddress>> resolve(const Address& address) noexcept {
  in_addr v4{};
  if (::inet_pton(AF_INET, address.host.c_str(), &v4) == 1) {
    return std::vector{v4_address(v4, address.port)};
  }
  in6_addr v6{};
  if (::inet_pton(AF_INET6, address.host.c_str(), &v6) == 1) {
    return std::vector{v6_address(v6, address.port)};
  }
  if (address.host == "localhost") {
    return std::vector{v4_address({htonl(INADDR_LOOPBACK)}, address.port),
                       v6_address(in6addr_loopback, address.port)};
  }
  return Error{ErrorCode::kInvalid, 0, "address: names are not looked up; give an IP or localhost"};
}

Address to_address(const SocketAddress& address) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  const bool is_v6 = address.family() == AF_INET6;
  const void* const host = is_v6 ? static_cast<const void*>(&address.v6.sin6_addr)
                                 : static_cast<const void*>(&address.v4.sin_addr);
  ::inet_ntop(address.family(), host, text.data(), text.size());
  Address result;
  result.host = text.data();
  result.port = ntohs(is_v6 ? address.v6.sin6_port : address.v4.sin_port);
  return result;
}

}  // namespace cairn::transport
