#include "storage/nvme/log_format.h"

#include "base/checksum.h"
#include "storage/little_endian.h"

#include <algorithm>
#include <cstring>
#include <string_view>

namespace cairn::storage {
namespace {

constexpr std::string_view kSuperblockMagic = "CAIRNDEV";
constexpr std::string_view kSegmentMagic = "CAIRNSEG";
constexpr std::string_view kTrailerMagic = "CAIRNFTR";

// What all three kinds of page begin and end with.
constexpr std::size_t kVersionAt = 8;
constexpr std::size_t kDeviceAt = 16;
constexpr std::size_t kPageHashAt = 4088;
// Superblock.
constexpr std::size_t kOwnerAt = 32;
constexpr std::size_t kSequenceAt = 48;
constexpr std::size_t kSegmentBytesAt = 56;
constexpr std::size_t kSegmentsAt = 64;
constexpr std::size_t kNamespacesAt = 68;
constexpr std::size_t kRowsHashAt = 72;
constexpr std::size_t kSuperblockEnd = 80;
// Segment header and trailer.
constexpr std::size_t kSegmentAt = 32;
constexpr std::size_t kSegmentPadAt = 36;
constexpr std::size_t kGenerationAt = 40;
constexpr std::size_t kSegmentHeaderEnd = 48;
constexpr std::size_t kFooterNamespacesAt = 10;
constexpr std::size_t kFooterFramesAt = 12;
constexpr std::size_t kSealedAt = 48;
constexpr std::size_t kBodyHashAt = 56;
constexpr std::size_t kTrailerEnd = 64;

constexpr std::size_t kNamespaceRowBytes = 24;
constexpr std::size_t kDescriptorBytes = 32;
constexpr std::size_t kDescriptorEnd = 26;
constexpr std::uint64_t kPage = kLogPage.value();
constexpr std::uint64_t kFramesMax = kSegmentBytesMax / kLogPage / 2;
static_assert(kNamespaceDigestBytes + sizeof(std::uint64_t) == kNamespaceRowBytes);
static_assert(kSuperblockNamespacesMax * kNamespaceRowBytes + kPage <=
              kSuperblockAreaBytes.value());

constexpr std::uint64_t whole_pages(std::uint64_t bytes) noexcept {
  return round_up(bytes, kPage);
}

Error corrupt(const char* what) noexcept {
  return {ErrorCode::kCorrupt, 0, what};
}

Error invalid(const char* what) noexcept {
  return {ErrorCode::kInvalid, 0, what};
}

void begin_page(std::span<std::byte> page, std::string_view magic, const DeviceUuid& device) {
  std::ranges::fill(page, std::byte{0});
  std::memcpy(page.data(), magic.data(), magic.size());
  put_number(page, kVersionAt, kLogVersion);
  std::ranges::copy(device, page.begin() + kDeviceAt);
}

void end_page(std::span<std::byte> page) noexcept {
  put_number(page, kPageHashAt, xxh3_64(page.first(kPageHashAt)));
}

// Version before hash: a newer page may hash otherwise.
Status check_page(std::span<const std::byte> page, std::string_view magic, const char* what) {
  if (std::memcmp(page.data(), magic.data(), magic.size()) != 0) return corrupt(what);
  const auto version = get_number<std::uint16_t>(page, kVersionAt);
  if (version == 0) return corrupt(what);
  if (version != kLogVersion) return Error{ErrorCode::kVersion, 0, what};
  const auto hash = get_number<std::uint64_t>(page, kPageHashAt);
  return hash == xxh3_64(page.first(kPageHashAt)) ? Status() : corrupt(what);
}

DeviceUuid get_uuid(std::span<const std::byte> page, std::size_t at) noexcept {
  DeviceUuid uuid{};
  std::memcpy(uuid.data(), page.data() + at, uuid.size());
  return uuid;
}

bool is_in_order(std::span<const NamespaceEpoch> rows) noexcept {
  return std::ranges::adjacent_find(rows, [](const NamespaceEpoch& a, const NamespaceEpoch& b) {
           return !(a.digest.bytes < b.digest.bytes);
         }) == rows.end();
}

void put_rows(std::span<std::byte> body, std::span<const NamespaceEpoch> rows) noexcept {
  std::size_t at = 0;
  for (const NamespaceEpoch& row : rows) {
    std::ranges::copy(row.digest.bytes, body.begin() + static_cast<std::ptrdiff_t>(at));
    put_number(body, at + kNamespaceDigestBytes, row.epoch);
    at += kNamespaceRowBytes;
  }
}

std::vector<NamespaceEpoch> get_rows(std::span<const std::byte> body, std::size_t count) {
  std::vector<NamespaceEpoch> rows(count);
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t at = i * kNamespaceRowBytes;
    std::memcpy(rows[i].digest.bytes.data(), body.data() + at, kNamespaceDigestBytes);
    rows[i].epoch = get_number<std::uint64_t>(body, at + kNamespaceDigestBytes);
  }
  return rows;
}

bool is_segment_size(ByteCount bytes) noexcept {
  return bytes >= kSegmentBytesMin && bytes <= kSegmentBytesMax && bytes.value() % kPage == 0;
}

void put_segment(std::span<std::byte> page, const SegmentHeader& header) noexcept {
  put_number(page, kSegmentAt, header.segment);
  put_number(page, kGenerationAt, header.generation);
}

Result<SegmentHeader> get_segment(std::span<const std::byte> page, const char* what) {
  SegmentHeader header{.device = get_uuid(page, kDeviceAt),
                       .segment = get_number<std::uint32_t>(page, kSegmentAt),
                       .generation = get_number<std::uint64_t>(page, kGenerationAt)};
  if (header.generation == 0) return corrupt(what);
  if (!is_zero(page.subspan(kSegmentPadAt, kGenerationAt - kSegmentPadAt))) return corrupt(what);
  return header;
}

std::uint64_t body_bytes(std::uint64_t namespaces, std::uint64_t frames) noexcept {
  return namespaces * kNamespaceRowBytes + frames * kDescriptorBytes;
}

void put_descriptor(std::span<std::byte> bytes, const FrameDescriptor& frame) noexcept {
  put_number(bytes, 0, frame.key_hash);
  put_number(bytes, 8, frame.branch_hash);
  put_number(bytes, 16, frame.page);
  put_number(bytes, 20, frame.pages);
  put_number(bytes, 24, frame.name_space);
}

// The page behind it; 0: it cannot be.
std::uint64_t end_of(const FrameDescriptor& frame,
                     std::uint64_t from,
                     std::uint64_t end,
                     std::size_t namespaces) noexcept {
  constexpr std::uint32_t kPagesMin = 2;
  const std::uint64_t behind = std::uint64_t{frame.page} + frame.pages;
  const bool is_right = frame.pages >= kPagesMin && frame.page >= from && behind <= end &&
                        frame.name_space < namespaces;
  return is_right ? behind : 0;
}

}  // namespace

// ---- superblock ----

ByteCount superblock_bytes(std::size_t namespaces) noexcept {
  return ByteCount(kPage + whole_pages(namespaces * kNamespaceRowBytes));
}

Status encode_superblock(const Superblock& superblock, std::span<std::byte> area) noexcept {
  constexpr const char* kWhat = "superblock";
  const std::size_t count = superblock.namespaces.size();
  const bool is_right = superblock.sequence > 0 && superblock.segments > 0 &&
                        is_segment_size(superblock.segment_bytes) &&
                        count <= kSuperblockNamespacesMax && is_in_order(superblock.namespaces);
  if (!is_right) return invalid(kWhat);
  if (area.size() != superblock_bytes(count).value()) return invalid(kWhat);
  const auto page = area.first(kPage);
  const auto rows = area.subspan(kPage);
  begin_page(page, kSuperblockMagic, superblock.device);
  std::ranges::fill(rows, std::byte{0});
  put_rows(rows, superblock.namespaces);
  std::ranges::copy(superblock.owner, page.begin() + kOwnerAt);
  put_number(page, kSequenceAt, superblock.sequence);
  put_number(page, kSegmentBytesAt, superblock.segment_bytes.value());
  put_number(page, kSegmentsAt, superblock.segments);
  put_number(page, kNamespacesAt, static_cast<std::uint32_t>(count));
  put_number(page, kRowsHashAt, xxh3_64(rows));
  end_page(page);
  return {};
}

Result<Superblock> decode_superblock(std::span<const std::byte> area) {
  constexpr const char* kWhat = "superblock";
  if (area.size() < kPage) return corrupt(kWhat);
  const auto page = area.first(kPage);
  CAIRN_TRY_STATUS(check_page(page, kSuperblockMagic, kWhat));
  const auto count = get_number<std::uint32_t>(page, kNamespacesAt);
  if (count > kSuperblockNamespacesMax) return corrupt(kWhat);
  const std::uint64_t bytes = superblock_bytes(count).value();
  if (area.size() < bytes) return corrupt(kWhat);
  const auto rows = area.subspan(kPage, bytes - kPage);
  if (get_number<std::uint64_t>(page, kRowsHashAt) != xxh3_64(rows)) return corrupt(kWhat);
  Superblock superblock{
      .sequence = get_number<std::uint64_t>(page, kSequenceAt),
      .device = get_uuid(page, kDeviceAt),
      .owner = get_uuid(page, kOwnerAt),
      .segment_bytes = ByteCount(get_number<std::uint64_t>(page, kSegmentBytesAt)),
      .segments = get_number<std::uint32_t>(page, kSegmentsAt),
      .namespaces = get_rows(rows, count)};
  const bool is_clean = is_zero(page.subspan(kVersionAt + 2, kDeviceAt - kVersionAt - 2)) &&
                        is_zero(page.subspan(kSuperblockEnd, kPageHashAt - kSuperblockEnd)) &&
                        is_zero(rows.subspan(count * kNamespaceRowBytes));
  const bool is_right = superblock.sequence > 0 && superblock.segments > 0 &&
                        is_segment_size(superblock.segment_bytes) &&
                        is_in_order(superblock.namespaces);
  if (!is_clean || !is_right) return corrupt(kWhat);
  return superblock;
}

// ---- segment header ----

Status encode_segment_header(const SegmentHeader& header, LogPageSpan page) noexcept {
  if (header.generation == 0) return invalid("segment header");
  begin_page(page, kSegmentMagic, header.device);
  put_segment(page, header);
  end_page(page);
  return {};
}

Result<SegmentHeader> decode_segment_header(ConstLogPageSpan page) noexcept {
  constexpr const char* kWhat = "segment header";
  CAIRN_TRY_STATUS(check_page(page, kSegmentMagic, kWhat));
  const std::span<const std::byte> bytes = page;
  const bool is_clean = is_zero(bytes.subspan(kVersionAt + 2, kDeviceAt - kVersionAt - 2)) &&
                        is_zero(bytes.subspan(kSegmentHeaderEnd, kPageHashAt - kSegmentHeaderEnd));
  return is_clean ? get_segment(page, kWhat) : corrupt(kWhat);
}

// ---- footer ----

std::uint64_t frame_key_hash(const NamespaceDigest& name_space,
                             const BlockDigest& digest) noexcept {
  std::array<std::byte, kNamespaceDigestBytes + kBlockDigestBytesMax> key{};
  std::ranges::copy(name_space.bytes, key.begin());
  std::ranges::copy(digest.bytes(), key.begin() + kNamespaceDigestBytes);
  // Without the padding: two digests of different lengths differ.
  return xxh3_64(std::span(key).first(kNamespaceDigestBytes + digest.size()));
}

ByteCount footer_bytes(std::size_t namespaces, std::size_t frames) noexcept {
  return ByteCount(whole_pages(body_bytes(namespaces, frames)) + kPage);
}

Status encode_footer(const SegmentFooter& footer, std::span<std::byte> pages) noexcept {
  constexpr const char* kWhat = "segment footer";
  const std::size_t namespaces = footer.namespaces.size();
  const std::size_t frames = footer.frames.size();
  const bool is_right = footer.of.generation > 0 && namespaces <= kFooterNamespacesMax &&
                        frames <= kFramesMax &&
                        pages.size() == footer_bytes(namespaces, frames).value();
  if (!is_right) return invalid(kWhat);
  const auto body = pages.first(pages.size() - kPage);
  const auto trailer = pages.last(kPage);
  std::ranges::fill(body, std::byte{0});
  put_rows(body, footer.namespaces);
  std::uint64_t from = 1;
  for (std::size_t i = 0; i < frames; ++i) {
    from = end_of(footer.frames[i], from, kSegmentBytesMax / kLogPage, namespaces);
    if (from == 0) return invalid(kWhat);
    put_descriptor(body.subspan(body_bytes(namespaces, i)), footer.frames[i]);
  }
  begin_page(trailer, kTrailerMagic, footer.of.device);
  put_segment(trailer, footer.of);
  put_number(trailer, kFooterNamespacesAt, static_cast<std::uint16_t>(namespaces));
  put_number(trailer, kFooterFramesAt, static_cast<std::uint32_t>(frames));
  put_number(trailer, kSealedAt, footer.sealed_unix_ms);
  put_number(trailer, kBodyHashAt, xxh3_64(body));
  end_page(trailer);
  return {};
}

Result<ByteCount> footer_bytes_of(ConstLogPageSpan trailer) noexcept {
  constexpr const char* kWhat = "segment trailer";
  CAIRN_TRY_STATUS(check_page(trailer, kTrailerMagic, kWhat));
  const auto namespaces = get_number<std::uint16_t>(trailer, kFooterNamespacesAt);
  const auto frames = get_number<std::uint32_t>(trailer, kFooterFramesAt);
  if (namespaces > kFooterNamespacesMax || frames > kFramesMax) return corrupt(kWhat);
  return footer_bytes(namespaces, frames);
}

Result<SegmentFooter> decode_footer(std::span<const std::byte> pages, ByteCount segment_bytes) {
  constexpr const char* kWhat = "segment footer";
  if (pages.size() < kPage || pages.size() > segment_bytes.value()) return corrupt(kWhat);
  const auto trailer = pages.last<kPage>();
  CAIRN_TRY(const ByteCount bytes, footer_bytes_of(trailer));
  if (pages.size() != bytes.value()) return corrupt(kWhat);
  const auto body = pages.first(pages.size() - kPage);
  if (get_number<std::uint64_t>(trailer, kBodyHashAt) != xxh3_64(body)) return corrupt(kWhat);
  const auto namespaces = get_number<std::uint16_t>(trailer, kFooterNamespacesAt);
  const auto frames = get_number<std::uint32_t>(trailer, kFooterFramesAt);
  SegmentFooter footer;
  CAIRN_TRY(footer.of, get_segment(trailer, kWhat));
  footer.sealed_unix_ms = get_number<std::uint64_t>(trailer, kSealedAt);
  footer.namespaces = get_rows(body, namespaces);
  const std::span<const std::byte> page = trailer;
  bool is_right = is_zero(page.subspan(kTrailerEnd, kPageHashAt - kTrailerEnd)) &&
                  is_zero(body.subspan(body_bytes(namespaces, frames)));
  const std::uint64_t end = (segment_bytes - bytes) / kLogPage;
  std::uint64_t from = 1;
  for (std::uint32_t i = 0; i < frames && is_right; ++i) {
    const auto row = body.subspan(body_bytes(namespaces, i), kDescriptorBytes);
    const FrameDescriptor frame{.key_hash = get_number<std::uint64_t>(row, 0),
                                .branch_hash = get_number<std::uint64_t>(row, 8),
                                .page = get_number<std::uint32_t>(row, 16),
                                .pages = get_number<std::uint32_t>(row, 20),
                                .name_space = get_number<std::uint16_t>(row, 24)};
    from = end_of(frame, from, end, namespaces);
    is_right = from != 0 && is_zero(row.subspan(kDescriptorEnd));
    footer.frames.push_back(frame);
  }
  if (!is_right) return corrupt(kWhat);
  return footer;
}

}  // namespace cairn::storage
