// The machine's own SlabMapper.
#pragma once

#include "client/client.h"

#include <span>

namespace cairn::client {

// Maps shared, for reading and writing, left out of forked children. Any thread.
class SystemSlabMapper final : public SlabMapper {
 public:
  Result<std::span<std::byte>> map(int fd, ByteCount bytes) noexcept override;
  void unmap(std::span<std::byte> bytes) noexcept override;
  void populate(std::span<std::byte> bytes) noexcept override;
};

}  // namespace cairn::client
