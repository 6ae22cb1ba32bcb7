// What the NVMe tier writes besides frames: superblocks, segment headers and footers. A device is
//
//   [superblock area A, 1 MiB][superblock area B, 1 MiB][segment 0][segment 1] ... [segment n - 1]
//   segment: [header, 4 KiB][frames ...][free][descriptors][trailer, 4 KiB]
//
// docs/formats.md, "NVMe device", gives the layout byte by byte. All of it is a hint that proves
// itself: whatever does not decode is as if it were not there.
#pragma once

#include "base/block_key.h"
#include "base/result.h"
#include "base/units.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace cairn::storage {

inline constexpr std::uint16_t kLogVersion = 1;
inline constexpr ByteCount kLogPage = 4_KiB;
inline constexpr ByteCount kSuperblockAreaBytes = 1_MiB;
inline constexpr ByteCount kFirstSegmentAt = kSuperblockAreaBytes * 2;
inline constexpr ByteCount kSegmentBytesMin = 64_MiB;
inline constexpr ByteCount kSegmentBytesMax = 256_MiB;
inline constexpr std::size_t kSuperblockNamespacesMax = 32'768;
// Namespaces of one segment's frames; a frame of another begins a new segment.
inline constexpr std::size_t kFooterNamespacesMax = 256;

using DeviceUuid = std::array<std::byte, 16>;

struct NamespaceEpoch {
  NamespaceDigest digest;
  std::uint64_t epoch = 0;
  friend bool operator==(const NamespaceEpoch&, const NamespaceEpoch&) noexcept = default;
};

// Of two areas the one that decodes and has the higher sequence counts.
struct Superblock {
  std::uint64_t sequence = 0;  // 1 and up, one more at each write
  DeviceUuid device{};         // made when the device was formatted
  DeviceUuid owner{};          // of the data directory that it belongs to
  ByteCount segment_bytes;
  std::uint32_t segments = 0;
  std::vector<NamespaceEpoch> namespaces;  // at most kSuperblockNamespacesMax
};

// Bytes of an encoded area: whole pages. Errors of encode: kInvalid (a field out of range, too many
// namespaces, an area that is too short); of decode: kCorrupt, kVersion (written by a newer one).
ByteCount superblock_bytes(std::size_t namespaces) noexcept;
Status encode_superblock(const Superblock& superblock, std::span<std::byte> area) noexcept;
Result<Superblock> decode_superblock(std::span<const std::byte> area);

// Says which generation of a segment the frames behind it belong to.
struct SegmentHeader {
  DeviceUuid device{};
  std::uint32_t segment = 0;
  std::uint64_t generation = 0;  // 1 and up, never used twice on a device
};

using LogPageSpan = std::span<std::byte, 4096>;
using ConstLogPageSpan = std::span<const std::byte, 4096>;
Status encode_segment_header(const SegmentHeader& header, LogPageSpan page) noexcept;
Result<SegmentHeader> decode_segment_header(ConstLogPageSpan page) noexcept;

// One frame of a sealed segment: what the index needs of it without reading it.
struct FrameDescriptor {
  std::uint64_t key_hash = 0;     // frame_key_hash()
  std::uint64_t branch_hash = 0;  // XXH3-64 of the branch's digest
  std::uint32_t page = 0;         // of the frame's header page, counted from the segment's begin
  std::uint32_t pages = 0;        // header page included
  std::uint16_t name_space = 0;   // index in the footer's namespaces
  friend bool operator==(const FrameDescriptor&, const FrameDescriptor&) noexcept = default;
};

// XXH3-64 of namespace digest and block digest: the same in every process and on every device.
std::uint64_t frame_key_hash(const NamespaceDigest& name_space, const BlockDigest& digest) noexcept;

struct SegmentFooter {
  SegmentHeader of;
  std::uint64_t sealed_unix_ms = 0;
  std::vector<NamespaceEpoch> namespaces;  // at most kFooterNamespacesMax
  std::vector<FrameDescriptor> frames;     // in the order of their pages
};

// Whole pages at the end of the segment: descriptors, then the trailer, which tells how many.
ByteCount footer_bytes(std::size_t namespaces, std::size_t frames) noexcept;
// `pages` is footer_bytes() long. Errors of encode: kInvalid; of decode: kCorrupt, kVersion.
Status encode_footer(const SegmentFooter& footer, std::span<std::byte> pages) noexcept;
// How long the footer is that ends in this trailer: what has to be read before decode_footer().
Result<ByteCount> footer_bytes_of(ConstLogPageSpan trailer) noexcept;
// Every descriptor of the result lies within `segment_bytes` less the footer, and none overlaps
// another.
Result<SegmentFooter> decode_footer(std::span<const std::byte> pages, ByteCount segment_bytes);

}  // namespace cairn::storage
