// The name of a KV block: a namespace digest (everything that must match for bytes to be usable)
// and a block digest (the caller's chained prefix hash). Both are opaque bytes, compared whole.
#pragma once

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace cairn {

inline constexpr std::size_t kNamespaceDigestBytes = 16;
inline constexpr std::size_t kBlockDigestBytesMin = 16;  // shorter only with allow_weak_keys
inline constexpr std::size_t kBlockDigestBytesMax = 32;

struct NamespaceDigest {
  std::array<std::byte, kNamespaceDigestBytes> bytes{};
  friend auto operator<=>(const NamespaceDigest&, const NamespaceDigest&) noexcept = default;
};

// 1 to 32 bytes; bytes past size() are zero, so whole objects compare and hash as they are.
class BlockDigest {
 public:
  BlockDigest() = default;
  // nullopt when `bytes` is empty or longer than kBlockDigestBytesMax.
  static std::optional<BlockDigest> from(std::span<const std::byte> bytes) noexcept;

  std::span<const std::byte> bytes() const noexcept { return {bytes_.data(), size_}; }
  std::size_t size() const noexcept { return size_; }
  bool is_weak() const noexcept { return size_ < kBlockDigestBytesMin; }
  // All 32 bytes, zero padded: four little-endian words for hashing and comparing.
  const std::array<std::byte, kBlockDigestBytesMax>& padded() const noexcept { return bytes_; }
  friend auto operator<=>(const BlockDigest&, const BlockDigest&) noexcept = default;

 private:
  std::array<std::byte, kBlockDigestBytesMax> bytes_{};
  std::uint8_t size_ = 0;
};

struct BlockKey {
  NamespaceDigest name_space;
  BlockDigest digest;
  friend auto operator<=>(const BlockKey&, const BlockKey&) noexcept = default;
};

std::string to_hex(std::span<const std::byte> bytes);
// nullopt unless `text` is an even number of hexadecimal digits.
std::optional<std::string> bytes_from_hex(std::string_view text);
std::optional<BlockDigest> block_digest_from_hex(std::string_view text);
std::optional<NamespaceDigest> namespace_digest_from_hex(std::string_view text);

}  // namespace cairn

template <>
struct std::hash<cairn::NamespaceDigest> {
  std::size_t operator()(const cairn::NamespaceDigest& digest) const noexcept;
};
template <>
struct std::hash<cairn::BlockDigest> {
  std::size_t operator()(const cairn::BlockDigest& digest) const noexcept;
};
