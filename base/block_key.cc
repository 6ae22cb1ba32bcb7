#include "base/block_key.h"

#include "base/checksum.h"

#include <cstring>

namespace cairn {
namespace {

std::optional<std::uint8_t> hex_digit(char c) noexcept {
  if (c >= '0' && c <= '9') return static_cast<std::uint8_t>(c - '0');
  if (c >= 'a' && c <= 'f') return static_cast<std::uint8_t>(c - 'a' + 10);
  if (c >= 'A' && c <= 'F') return static_cast<std::uint8_t>(c - 'A' + 10);
  return std::nullopt;
}

}  // namespace

std::optional<BlockDigest> BlockDigest::from(std::span<const std::byte> bytes) noexcept {
  if (bytes.empty() || bytes.size() > kBlockDigestBytesMax) return std::nullopt;
  BlockDigest digest;
  std::memcpy(digest.bytes_.data(), bytes.data(), bytes.size());
  digest.size_ = static_cast<std::uint8_t>(bytes.size());
  return digest;
}

std::string to_hex(std::span<const std::byte> bytes) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text;
  text.reserve(bytes.size() * 2);
  for (const std::byte byte : bytes) {
    const auto value = std::to_integer<unsigned>(byte);
    text.push_back(kDigits[value >> 4U]);
    text.push_back(kDigits[value & 0xFU]);
  }
  return text;
}

std::optional<std::string> bytes_from_hex(std::string_view text) {
  if (text.size() % 2 != 0) return std::nullopt;
  std::string bytes;
  bytes.reserve(text.size() / 2);
  for (std::size_t i = 0; i < text.size(); i += 2) {
    const auto high = hex_digit(text[i]);
    const auto low = hex_digit(text[i + 1]);
    if (!high || !low) return std::nullopt;
    bytes.push_back(static_cast<char>(*high << 4U | *low));
  }
  return bytes;
}

std::optional<BlockDigest> block_digest_from_hex(std::string_view text) {
  const auto bytes = bytes_from_hex(text);
  if (!bytes) return std::nullopt;
  return BlockDigest::from(std::as_bytes(std::span(*bytes)));
}

std::optional<NamespaceDigest> namespace_digest_from_hex(std::string_view text) {
  const auto bytes = bytes_from_hex(text);
  if (!bytes || bytes->size() != kNamespaceDigestBytes) return std::nullopt;
  NamespaceDigest digest;
  std::memcpy(digest.bytes.data(), bytes->data(), kNamespaceDigestBytes);
  return digest;
}

}  // namespace cairn

std::size_t std::hash<cairn::NamespaceDigest>::operator()(
    const cairn::NamespaceDigest& digest) const noexcept {
  return cairn::xxh3_64(digest.bytes);
}

std::size_t std::hash<cairn::BlockDigest>::operator()(
    const cairn::BlockDigest& digest) const noexcept {
  return cairn::xxh3_64(digest.bytes());
}
