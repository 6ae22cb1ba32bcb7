// Memory that is there from the start and costs nothing until it is touched, so that tables can be
// sized for the largest store and paid for by the block.
#pragma once

#include "base/result.h"
#include "base/units.h"

#include <cstddef>
#include <cstdint>
#include <span>

namespace cairn::storage {

// kHuge asks for transparent huge pages, where the machine has them: for tables that are filled
// from end to end and looked up at random. Measured by bench/index_lookup: three times the keys a
// second once records and index outgrow what small pages' address translation covers.
enum class LazyPages : std::uint8_t { kSmall, kHuge };

// An anonymous mapping, zero filled, page aligned. Move-only.
class LazyMemory {
 public:
  // Errors: kNoSpace (`sys` says why).
  static Result<LazyMemory> map(ByteCount bytes, LazyPages pages = LazyPages::kSmall) noexcept;

  LazyMemory() = default;
  LazyMemory(LazyMemory&& other) noexcept;
  LazyMemory& operator=(LazyMemory&& other) noexcept;
  LazyMemory(const LazyMemory&) = delete;
  LazyMemory& operator=(const LazyMemory&) = delete;
  ~LazyMemory();

  std::span<std::byte> bytes() const noexcept { return bytes_; }
  // The memory as an array of T, for which all-zero bytes are a valid value.
  template <typename T>
  std::span<T> as() const noexcept {
    return {reinterpret_cast<T*>(bytes_.data()), bytes_.size() / sizeof(T)};
  }

 private:
  explicit LazyMemory(std::span<std::byte> bytes) noexcept
      : bytes_(bytes) {}
  std::span<std::byte> bytes_;
};

}  // namespace cairn::storage
