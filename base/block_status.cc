#include "base/block_status.h"

#include <array>

namespace cairn {
namespace {

constexpr std::array<std::string_view, kBlockStatusCount> kStatusNames = {"ok",
                                                                          "exists",
                                                                          "miss",
                                                                          "cut",
                                                                          "busy",
                                                                          "declined",
                                                                          "timeout",
                                                                          "cancelled",
                                                                          "corrupt",
                                                                          "peer_lost",
                                                                          "quota",
                                                                          "forbidden",
                                                                          "wrong_namespace",
                                                                          "too_large",
                                                                          "invalid"};

constexpr std::array<std::string_view, kBusyReasonCount> kReasonNames = {
    "none", "frames", "lent_limit", "window", "rate"};

}  // namespace

std::string_view block_status_name(BlockStatus status) noexcept {
  const auto number = static_cast<std::size_t>(status);
  return number < kStatusNames.size() ? kStatusNames[number] : "unknown";
}

std::string_view busy_reason_name(BusyReason reason) noexcept {
  const auto number = static_cast<std::size_t>(reason);
  return number < kReasonNames.size() ? kReasonNames[number] : "unknown";
}

std::optional<BlockStatus> block_status_from(std::uint8_t number) noexcept {
  if (number >= kBlockStatusCount) return std::nullopt;
  return static_cast<BlockStatus>(number);
}

std::optional<BusyReason> busy_reason_from(std::uint8_t number) noexcept {
  if (number >= kBusyReasonCount) return std::nullopt;
  return static_cast<BusyReason>(number);
}

}  // namespace cairn
