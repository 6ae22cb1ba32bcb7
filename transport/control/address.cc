#include "transport/channel.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/un.h>

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <string>
#include <string_view>

namespace cairn::transport {
namespace {

constexpr std::string_view kUnixPrefix = "unix:";
constexpr std::size_t kUnixPathMax = sizeof(sockaddr_un::sun_path) - 1;
constexpr std::size_t kHostBytesMax = 253;

Result<std::uint16_t> parse_port(std::string_view text) {
  std::uint16_t port = 0;
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, port);
  if (text.empty() || error != std::errc{} || rest != end) {
    return Error{ErrorCode::kInvalid, 0, "address: the port is no number from 0 to 65535"};
  }
  return port;
}

bool is_ipv4(const std::string& host) {
  in_addr address{};
  return ::inet_pton(AF_INET, host.c_str(), &address) == 1;
}

bool is_ipv6(const std::string& host) {
  in6_addr address{};
  return ::inet_pton(AF_INET6, host.c_str(), &address) == 1;
}

bool is_host_name(const std::string& host) {
  const auto is_allowed = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '.' || c == '_';
  };
  // What looks like a number must be a right one: "127.0.0.256" is a slip, not a name.
  const bool looks_numeric = host.find_first_not_of("0123456789.") == std::string::npos;
  return !host.empty() && host.size() <= kHostBytesMax && !looks_numeric &&
         std::ranges::all_of(host, is_allowed);
}

Result<Address> parse_unix(std::string_view path) {
  if (path.empty()) return Error{ErrorCode::kInvalid, 0, "address: unix: without a path"};
  if (path.size() > kUnixPathMax) {
    return Error{ErrorCode::kInvalid, 0, "address: a unix socket's path has 107 bytes at most"};
  }
  if (path.find('\0') != std::string_view::npos) {
    return Error{ErrorCode::kInvalid, 0, "address: a path holds no zero byte"};
  }
  Address address;
  address.is_unix = true;
  address.path = path;
  return address;
}

}  // namespace

Result<Address> Address::parse(std::string_view text) {
  if (text.starts_with(kUnixPrefix)) return parse_unix(text.substr(kUnixPrefix.size()));
  const std::size_t colon = text.rfind(':');
  if (colon == std::string_view::npos) {
    return Error{ErrorCode::kInvalid, 0, "address: neither unix:PATH nor HOST:PORT"};
  }
  Address address;
  std::string_view host = text.substr(0, colon);
  const bool has_brackets = host.size() >= 2 && host.front() == '[' && host.back() == ']';
  if (has_brackets) host = host.substr(1, host.size() - 2);
  address.host = host;
  if (has_brackets && !is_ipv6(address.host)) {
    return Error{ErrorCode::kInvalid, 0, "address: no IPv6 address between the brackets"};
  }
  if (!has_brackets && !is_ipv4(address.host) && !is_host_name(address.host)) {
    return Error{ErrorCode::kInvalid, 0, "address: the host is no IPv4 address, [IPv6] or name"};
  }
  CAIRN_TRY(address.port, parse_port(text.substr(colon + 1)));
  return address;
}

std::string Address::to_string() const {
  if (is_unix) return std::string(kUnixPrefix) + path;
  const bool needs_brackets = host.find(':') != std::string::npos;
  return (needs_brackets ? '[' + host + ']' : host) + ':' + std::to_string(port);
}

bool Address::is_loopback() const noexcept {
  if (is_unix) return false;
  in_addr v4{};
  if (::inet_pton(AF_INET, host.c_str(), &v4) == 1) {
    return (ntohl(v4.s_addr) >> IN_CLASSA_NSHIFT) == IN_LOOPBACKNET;
  }
  in6_addr v6{};
  return ::inet_pton(AF_INET6, host.c_str(), &v6) == 1 && IN6_IS_ADDR_LOOPBACK(&v6);
}

}  // namespace cairn::transport
