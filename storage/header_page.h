// The first 4 KiB of a frame: what the payload behind it is, so that every copy proves itself. The
// same bytes in DRAM and on NVMe. docs/formats.md, "Header page", gives the layout byte by byte.
#pragma once

#include "base/block_key.h"
#include "base/result.h"
#include "base/units.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace cairn::storage {

inline constexpr std::uint16_t kHeaderVersion = 1;
inline constexpr std::size_t kHeaderPageBytes = 4096;
inline constexpr std::size_t kHeaderAttributesMax = 2048;
inline constexpr std::uint8_t kHeaderChunkLog2 = 18;
static_assert(kHeaderBytes == ByteCount(kHeaderPageBytes));
static_assert(kChunkBytes == ByteCount(std::uint64_t{1} << kHeaderChunkLog2));

// Numbers in the header page; they never change meaning. Version 1 speaks these alone.
enum class Codec : std::uint16_t { kNone = 0 };
enum class ChecksumKind : std::uint8_t { kCrc32c = 1 };
enum class ComputedBy : std::uint8_t { kClientCpu = 1, kClientGpu = 2, kDaemon = 3 };
enum class Aead : std::uint8_t { kNone = 0 };

struct HeaderPage {
  NamespaceDigest name_space;
  std::uint64_t epoch = 0;
  BlockDigest digest;
  std::optional<BlockDigest> parent;
  std::optional<BlockDigest> branch;
  std::uint32_t position = 0;  // in its chain, root = 0
  std::uint32_t length = 0;    // of the payload, 1 B to 16 MiB
  Codec codec = Codec::kNone;
  ChecksumKind checksum_kind = ChecksumKind::kCrc32c;
  ComputedBy computed_by = ComputedBy::kClientCpu;
  Aead aead = Aead::kNone;
  std::array<std::byte, 24> aead_nonce{};  // zero without AEAD
  std::array<std::byte, 16> aead_tag{};    // zero without AEAD
  // The first chunk_count(length) are meant.
  std::array<std::uint32_t, kChunksMax> checksums{};
  // Opaque, at most kHeaderAttributesMax bytes. Borrowed: after decode a view of the page.
  std::span<const std::byte> attributes;
};

// Where a frame was appended on NVMe. Offsets are multiples of 4 KiB.
struct HeaderLocation {
  std::uint64_t segment_generation = 0;  // 1 and up
  std::uint64_t offset = 0;              // of the frame in the device's file, in bytes
  friend bool operator==(const HeaderLocation&, const HeaderLocation&) noexcept = default;
};

using HeaderSpan = std::span<std::byte, kHeaderPageBytes>;
using ConstHeaderSpan = std::span<const std::byte, kHeaderPageBytes>;

// Writes every byte of `page`; its location sector is zero until encode_location(). Errors:
// kInvalid (no digest, length 0), kTooLarge (length, attributes); then nothing is written.
Status encode_header(const HeaderPage& header, HeaderSpan page) noexcept;

// Looks at everything but the location sector. A page that others may write meanwhile is copied
// first. Errors: kCorrupt (magic, hash, a field out of range, an unused byte that is not zero),
// kVersion (a newer version, or a codec, checksum, author or cipher that this build lacks),
// kTooLarge (length or attributes beyond the limits).
Result<HeaderPage> decode_header(ConstHeaderSpan page) noexcept;

// Writes the location sector of an encoded page, and nothing else. Whoever writes it is alone at
// it.
void encode_location(const HeaderLocation& location, HeaderSpan page) noexcept;
// Errors: kCorrupt (the sector is not one that was written for this very header).
Result<HeaderLocation> decode_location(ConstHeaderSpan page) noexcept;

// The bytes of the chunk checksums of a payload of `length` (at most 16 MiB), little-endian, as
// they stand in the page; unchecked.
std::span<const std::byte> header_checksum_bytes(ConstHeaderSpan page,
                                                 std::uint32_t length) noexcept;
// The attribute bytes as they stand in the page: unchecked, but never beyond their section.
std::span<const std::byte> header_attribute_bytes(ConstHeaderSpan page) noexcept;

}  // namespace cairn::storage
