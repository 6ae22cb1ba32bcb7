#include "client/types.h"
#include "transport/channel.h"

#include <chrono>

namespace cairn::client {
namespace {

constexpr Milliseconds kDeadlineMax = std::chrono::hours(1);
constexpr Milliseconds kConnectTimeoutMax = std::chrono::minutes(1);
constexpr Milliseconds kBackoffMax = std::chrono::minutes(1);
constexpr std::uint32_t kCopyThreadsMax = 64;
constexpr Nanoseconds kSpinMax = Milliseconds(1);
constexpr std::uint32_t kWindowMax = 1024;
constexpr std::size_t kNameBytesMax = 200;
constexpr std::size_t kTokenBytesMax = 4'096;

constexpr bool is_between(Milliseconds value, Milliseconds low, Milliseconds high) noexcept {
  return value >= low && value <= high;
}

}  // namespace

std::optional<const char*> ClientOptions::validate() const noexcept {
  constexpr Milliseconds kOne(1);
  if (!transport::Address::parse(server)) return "server";
  if (name.size() > kNameBytesMax) return "name";
  if (token.size() > kTokenBytesMax) return "token";
  if (!is_between(deadline, kOne, kDeadlineMax)) return "deadline";
  if (!is_between(connect_timeout, kOne, kConnectTimeoutMax)) return "connect_timeout";
  if (!is_between(backoff_min, kOne, kBackoffMax)) return "backoff_min";
  if (!is_between(backoff_max, backoff_min, kBackoffMax)) return "backoff_max";
  if (copy_threads > kCopyThreadsMax) return "copy_threads";
  if (spin < Nanoseconds(0) || spin > kSpinMax) return "spin";
  if (window < 1 || window > kWindowMax) return "window";
  return std::nullopt;
}

}  // namespace cairn::client
