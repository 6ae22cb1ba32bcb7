// The bytes of a simulated disk: zero until written, and cheap to copy, so that a test can keep one
// as it was at each of thousands of moments.
#pragma once

#include "base/units.h"

#include <array>
#include <cstddef>
#include <memory>
#include <span>
#include <vector>

namespace cairn::testing {

class SimImage {
 public:
  explicit SimImage(ByteCount size);
  ByteCount size() const noexcept { return size_; }
  void read(ByteCount offset, std::span<std::byte> into) const;
  void write(ByteCount offset, std::span<const std::byte> from);

 private:
  static constexpr std::size_t kPageBytes = 16'384;
  using Page = std::array<std::byte, kPageBytes>;

  ByteCount size_;
  std::vector<std::shared_ptr<Page>> pages_;  // shared between copies until one writes
};

}  // namespace cairn::testing
