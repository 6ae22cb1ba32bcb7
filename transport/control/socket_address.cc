#include "transport/control/socket_address.h"

#include "base/check.h"

#include <arpa/inet.h>
#include <netdb.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <memory>
#include <string>

namespace cairn::transport {
namespace {

constexpr std::size_t kAddressesMax = 16;  // of one name; more are not tried

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

Error resolver_error(int code) {
  switch (code) {
    case EAI_NONAME:
    case EAI_NODATA:
      return {ErrorCode::kNotFound, 0, "resolve: no such host"};
    case EAI_AGAIN:
      return {ErrorCode::kTimeout, 0, "resolve: the resolver did not answer"};
    default:
      return {ErrorCode::kIo, code == EAI_SYSTEM ? errno : 0, "getaddrinfo"};
  }
}

Result<std::vector<SocketAddress>> ask_resolver(const Address& address) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* first = nullptr;
  const int code = ::getaddrinfo(address.host.c_str(), nullptr, &hints, &first);
  if (code != 0) return resolver_error(code);
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> owner(first, &::freeaddrinfo);
  std::vector<SocketAddress> found;
  for (const addrinfo* at = first; at != nullptr && found.size() < kAddressesMax;
       at = at->ai_next) {
    SocketAddress next;
    if (at->ai_family != AF_INET && at->ai_family != AF_INET6) continue;
    std::memcpy(&next.any, at->ai_addr, at->ai_addrlen);
    next.bytes = at->ai_addrlen;
    (at->ai_family == AF_INET ? next.v4.sin_port : next.v6.sin6_port) = htons(address.port);
    found.push_back(next);
  }
  if (found.empty()) return resolver_error(EAI_NONAME);
  return found;
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
  return ask_resolver(address);
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
