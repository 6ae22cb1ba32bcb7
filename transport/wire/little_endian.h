// Numbers as they lie in frames. Internal to transport/wire.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

namespace cairn::wire {

// Whole arrays are copied as they are.
static_assert(std::endian::native == std::endian::little, "frames are little-endian");

// `bytes` holds at least sizeof(T).
template <typename T>
T load(std::span<const std::byte> bytes) noexcept {
  T value{};
  std::memcpy(&value, bytes.data(), sizeof(T));
  return value;
}
template <typename T>
void store(std::span<std::byte> bytes, T value) noexcept {
  std::memcpy(bytes.data(), &value, sizeof(T));
}

}  // namespace cairn::wire
