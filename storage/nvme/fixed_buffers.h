// Which memory io_uring knows, and under which number. Pure.
#pragma once

#include "base/units.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace cairn::storage {

class FixedBuffers {
 public:
  // The kernel refuses more in one buffer.
  static constexpr ByteCount kSliceMax = 1_GiB;
  static constexpr int kNone = -1;

  // Where a piece that starts at some address lies.
  struct Place {
    int buffer = kNone;
    ByteCount bytes;  // whole granules up to the end of that buffer; 0 with kNone
  };

  // `slice` is known as number count() from now on; slices do not overlap.
  void add(std::span<std::byte> slice);
  std::uint32_t count() const noexcept { return static_cast<std::uint32_t>(slices_.size()); }
  ByteCount bytes() const noexcept { return bytes_; }
  Place find(const std::byte* address) const noexcept;

 private:
  struct Slice {
    std::uintptr_t begin = 0;
    std::uintptr_t end = 0;
    int buffer = kNone;
  };
  std::vector<Slice> slices_;  // by address
  ByteCount bytes_;
};

}  // namespace cairn::storage
