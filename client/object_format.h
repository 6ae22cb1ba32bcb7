// Objects of more than kBlockBytesMax lie in the store as parts. Part 0 has the object's key and
// says in its attributes what the others are; docs/formats.md, "Objects over 16 MiB".
#pragma once

#include "base/block_key.h"
#include "base/units.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace cairn::client {

inline constexpr ByteCount kPartBytes = kBlockBytesMax;
inline constexpr std::uint64_t kPartsMax = 65'536;

struct ObjectInfo {
  std::uint64_t length = 0;  // 0: a plain block
  std::uint64_t body = 0;
  std::uint32_t parts = 0;
  friend bool operator==(const ObjectInfo&, const ObjectInfo&) noexcept = default;
};

inline constexpr std::size_t kObjectAttributeBytes = 4 + 20;

// `length` > kPartBytes, at most kPartsMax parts.
ObjectInfo make_object(std::uint64_t length, std::uint64_t body) noexcept;
std::array<std::byte, kObjectAttributeBytes> encode_object(const ObjectInfo& object) noexcept;
// What a block's attributes say of an object; a plain block's for none, and for one that
// contradicts itself.
ObjectInfo find_object(std::span<const std::byte> attributes) noexcept;

struct PartRange {
  std::uint64_t offset = 0;
  std::uint64_t length = 0;
};
PartRange part_range(const ObjectInfo& object, std::uint32_t part) noexcept;
// SHA-256(digest || "cairn.part" || body || LE32 part), as long as `digest`. `part` > 0.
BlockDigest part_digest(const BlockDigest& digest, std::uint64_t body, std::uint32_t part) noexcept;

}  // namespace cairn::client
