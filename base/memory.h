// The only way memory crosses folders: an address with its extent, kind and device.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace cairn {

enum class MemoryKind : std::uint8_t { kHost, kDevice };

// `address` is valid for loads and stores by the CPU only when kind is kHost. `device` is a GPU
// ordinal for kDevice, and a NUMA node (or -1: unknown) for kHost. Borrows; never owns.
struct MemorySpan {
  std::byte* address = nullptr;
  std::size_t bytes = 0;
  MemoryKind kind = MemoryKind::kHost;
  std::int32_t device = -1;

  std::span<std::byte> host() const noexcept { return {address, bytes}; }
};

}  // namespace cairn
