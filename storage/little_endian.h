// Integers of the formats on disk: little-endian whatever the processor, at any address.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

namespace cairn::storage {

// At most the 8 bytes of a Number at `at` lie within `bytes`: the caller's fixed layout says so.
template <typename Number>
void put_number(std::span<std::byte> bytes, std::size_t at, Number value) noexcept {
  for (std::size_t i = 0; i < sizeof(Number); ++i)
    bytes[at + i] = static_cast<std::byte>(static_cast<std::uint64_t>(value) >> (8 * i));
}

template <typename Number>
Number get_number(std::span<const std::byte> bytes, std::size_t at) noexcept {
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < sizeof(Number); ++i)
    value |= std::to_integer<std::uint64_t>(bytes[at + i]) << (8 * i);
  return static_cast<Number>(value);
}

// Of bytes that a format leaves unused.
inline bool is_zero(std::span<const std::byte> bytes) noexcept {
  return std::ranges::all_of(bytes, [](std::byte b) { return b == std::byte{0}; });
}

}  // namespace cairn::storage
