// Strong types for quantities and ids: explicit in and out, and only the operators that mean
// something. ByteCount(n) builds a value; value() gives the number back.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>

namespace cairn {

// A number with a kind. Comparable and hashable, nothing else: an id plus one is not an id.
template <typename Tag, typename Rep = std::uint64_t>
class StrongId {
 public:
  constexpr StrongId() = default;
  constexpr explicit StrongId(Rep value)
      : value_(value) {}
  constexpr Rep value() const noexcept { return value_; }
  friend constexpr auto operator<=>(const StrongId&, const StrongId&) noexcept = default;

 private:
  Rep value_ = 0;
};

// An amount of memory or storage. Sums and differences of amounts are amounts.
class ByteCount {
 public:
  constexpr ByteCount() = default;
  constexpr explicit ByteCount(std::uint64_t value)
      : value_(value) {}
  constexpr std::uint64_t value() const noexcept { return value_; }
  friend constexpr auto operator<=>(const ByteCount&, const ByteCount&) noexcept = default;
  friend constexpr ByteCount operator+(ByteCount a, ByteCount b) noexcept {
    return ByteCount(a.value_ + b.value_);
  }
  friend constexpr ByteCount operator-(ByteCount a, ByteCount b) noexcept {
    return ByteCount(a.value_ - b.value_);
  }
  friend constexpr ByteCount operator*(ByteCount a, std::uint64_t n) noexcept {
    return ByteCount(a.value_ * n);
  }
  friend constexpr std::uint64_t operator/(ByteCount a, ByteCount b) noexcept {
    return a.value_ / b.value_;
  }
  constexpr ByteCount& operator+=(ByteCount other) noexcept {
    value_ += other.value_;
    return *this;
  }
  constexpr ByteCount& operator-=(ByteCount other) noexcept {
    value_ -= other.value_;
    return *this;
  }

 private:
  std::uint64_t value_ = 0;
};

inline namespace literals {
constexpr ByteCount operator""_B(unsigned long long n) {
  return ByteCount(n);
}
constexpr ByteCount operator""_KiB(unsigned long long n) {
  return ByteCount(n << 10U);
}
constexpr ByteCount operator""_MiB(unsigned long long n) {
  return ByteCount(n << 20U);
}
constexpr ByteCount operator""_GiB(unsigned long long n) {
  return ByteCount(n << 30U);
}
}  // namespace literals

// `multiple` > 0; the result must fit in 64 bits.
constexpr std::uint64_t round_up(std::uint64_t value, std::uint64_t multiple) noexcept {
  return (value + multiple - 1) / multiple * multiple;
}
// `divisor` > 0; right for every `value`.
constexpr std::uint64_t divide_up(std::uint64_t value, std::uint64_t divisor) noexcept {
  return value / divisor + (value % divisor != 0 ? 1 : 0);
}

// The limits of a block, from docs/formats.md "Header page".
inline constexpr ByteCount kBlockBytesMax = 16_MiB;
inline constexpr ByteCount kChunkBytes = 256_KiB;
inline constexpr ByteCount kHeaderBytes = 4_KiB;
inline constexpr std::uint32_t kChunksMax = 64;
inline constexpr std::uint32_t kExtentsMax = 4;
static_assert(kBlockBytesMax / kChunkBytes == kChunksMax);

}  // namespace cairn

template <typename Tag, typename Rep>
struct std::hash<cairn::StrongId<Tag, Rep>> {
  std::size_t operator()(const cairn::StrongId<Tag, Rep>& id) const noexcept {
    return std::hash<Rep>{}(id.value());
  }
};
