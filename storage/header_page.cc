#include "storage/header_page.h"

#include "base/check.h"
#include "base/checksum.h"
#include "storage/little_endian.h"

#include <algorithm>
#include <cstring>

namespace cairn::storage {
namespace {

constexpr std::array<char, 8> kMagic = {'C', 'A', 'I', 'R', 'N', 'B', 'L', 'K'};

// Offsets in the page. Sections: identity, checksums, attributes, location.
constexpr std::size_t kMagicAt = 0;
constexpr std::size_t kVersionAt = 8;
constexpr std::size_t kDigestBytesAt = 10;
constexpr std::size_t kParentBytesAt = 11;
constexpr std::size_t kBranchBytesAt = 12;
constexpr std::size_t kChecksumKindAt = 13;
constexpr std::size_t kChunkLog2At = 14;
constexpr std::size_t kComputedByAt = 15;
constexpr std::size_t kNamespaceAt = 16;
constexpr std::size_t kEpochAt = 32;
constexpr std::size_t kLengthAt = 40;
constexpr std::size_t kPositionAt = 44;
constexpr std::size_t kDigestAt = 48;
constexpr std::size_t kParentAt = 80;
constexpr std::size_t kBranchAt = 112;
constexpr std::size_t kCodecAt = 144;
constexpr std::size_t kAttributeBytesAt = 146;
constexpr std::size_t kAeadAt = 148;
constexpr std::size_t kAeadEnd = 149;
constexpr std::size_t kNonceAt = 152;
constexpr std::size_t kTagAt = 176;
constexpr std::size_t kIdentityEnd = 192;
constexpr std::size_t kIdentityHashAt = 504;
constexpr std::size_t kChecksumsAt = 512;
constexpr std::size_t kAttributesAt = 1536;
constexpr std::size_t kLocationAt = 3584;
constexpr std::size_t kSegmentGenerationAt = kLocationAt;
constexpr std::size_t kFrameOffsetAt = kLocationAt + 8;
constexpr std::size_t kLocationFieldsEnd = kLocationAt + 16;
constexpr std::size_t kLocationHashAt = 4088;

static_assert(kNamespaceAt + kNamespaceDigestBytes == kEpochAt);
static_assert(kDigestAt + kBlockDigestBytesMax == kParentAt);
static_assert(kParentAt + kBlockDigestBytesMax == kBranchAt);
static_assert(kBranchAt + kBlockDigestBytesMax == kCodecAt);
static_assert(kNonceAt + sizeof(HeaderPage::aead_nonce) == kTagAt);
static_assert(kTagAt + sizeof(HeaderPage::aead_tag) == kIdentityEnd);
static_assert(kIdentityHashAt + sizeof(std::uint64_t) == kChecksumsAt);
static_assert(kChecksumsAt + kChunksMax * sizeof(std::uint32_t) <= kAttributesAt);
static_assert(kAttributesAt + kHeaderAttributesMax == kLocationAt);
static_assert(kLocationHashAt + sizeof(std::uint64_t) == kHeaderPageBytes);
static_assert(kLocationAt % 512 == 0);

void put_bytes(HeaderSpan page, std::size_t at, std::span<const std::byte> bytes) noexcept {
  if (!bytes.empty()) std::memcpy(page.data() + at, bytes.data(), bytes.size());
}

void put_digest(HeaderSpan page,
                std::size_t size_at,
                std::size_t at,
                const BlockDigest& digest) noexcept {
  put_number(page, size_at, static_cast<std::uint8_t>(digest.size()));
  put_bytes(page, at, digest.padded());
}

bool is_zero_between(ConstHeaderSpan page, std::size_t begin, std::size_t end) noexcept {
  return is_zero(page.subspan(begin, end - begin));
}

std::uint64_t identity_hash(ConstHeaderSpan page) noexcept {
  std::array<std::byte, kLocationAt> bytes{};
  std::memcpy(bytes.data(), page.data(), bytes.size());
  std::memset(bytes.data() + kIdentityHashAt, 0, sizeof(std::uint64_t));
  return xxh3_64(bytes);
}

// Over the location sector with the identity hash where its own hash will stand.
std::uint64_t location_hash(ConstHeaderSpan page) noexcept {
  std::array<std::byte, kHeaderPageBytes - kLocationAt> bytes{};
  std::memcpy(bytes.data(), page.data() + kLocationAt, bytes.size());
  std::memcpy(bytes.data() + (kLocationHashAt - kLocationAt),
              page.data() + kIdentityHashAt,
              sizeof(std::uint64_t));
  return xxh3_64(bytes);
}

// nullopt: no digest of `size` bytes, or one whose padding is not zero.
std::optional<BlockDigest> get_digest(ConstHeaderSpan page,
                                      std::size_t size_at,
                                      std::size_t at) noexcept {
  const std::size_t size = get_number<std::uint8_t>(page, size_at);
  if (size > kBlockDigestBytesMax) return std::nullopt;
  if (!is_zero_between(page, at + size, at + kBlockDigestBytesMax)) return std::nullopt;
  return BlockDigest::from(page.subspan(at, size));
}

Error corrupt(const char* what) noexcept {
  return {ErrorCode::kCorrupt, 0, what};
}

// A digest that may be left out: absent, present, or kCorrupt.
Status get_optional_digest(ConstHeaderSpan page,
                           std::size_t size_at,
                           std::size_t at,
                           std::optional<BlockDigest>& out) noexcept {
  out = get_digest(page, size_at, at);
  if (out.has_value()) return {};
  const bool is_absent = get_number<std::uint8_t>(page, size_at) == 0 &&
                         is_zero_between(page, at, at + kBlockDigestBytesMax);
  return is_absent ? Status() : corrupt("header page: parent or branch");
}

// What this build can read: version first, for a newer page may hash otherwise.
Status check_proof(ConstHeaderSpan page) noexcept {
  if (std::memcmp(page.data() + kMagicAt, kMagic.data(), kMagic.size()) != 0)
    return corrupt("header page: magic");
  const auto version = get_number<std::uint16_t>(page, kVersionAt);
  if (version == 0) return corrupt("header page: version");
  if (version != kHeaderVersion) return Error{ErrorCode::kVersion, 0, "header page: version"};
  if (get_number<std::uint64_t>(page, kIdentityHashAt) != identity_hash(page))
    return corrupt("header page: hash");
  return {};
}

Status check_kinds(ConstHeaderSpan page) noexcept {
  const bool is_known =
      get_number<std::uint16_t>(page, kCodecAt) == static_cast<std::uint16_t>(Codec::kNone) &&
      get_number<std::uint8_t>(page, kChecksumKindAt) ==
          static_cast<std::uint8_t>(ChecksumKind::kCrc32c) &&
      get_number<std::uint8_t>(page, kAeadAt) == static_cast<std::uint8_t>(Aead::kNone) &&
      get_number<std::uint8_t>(page, kChunkLog2At) == kHeaderChunkLog2;
  if (!is_known) return Error{ErrorCode::kVersion, 0, "header page: codec, checksum or cipher"};
  const auto author = get_number<std::uint8_t>(page, kComputedByAt);
  if (author < static_cast<std::uint8_t>(ComputedBy::kClientCpu) ||
      author > static_cast<std::uint8_t>(ComputedBy::kDaemon))
    return Error{ErrorCode::kVersion, 0, "header page: computed by"};
  return {};
}

Status check_unused(ConstHeaderSpan page, std::uint32_t length, std::size_t attributes) noexcept {
  const std::size_t checksums_end = kChecksumsAt + chunk_count(length) * sizeof(std::uint32_t);
  const bool is_clean = is_zero_between(page, kAeadEnd, kIdentityEnd) &&
                        is_zero_between(page, kIdentityEnd, kIdentityHashAt) &&
                        is_zero_between(page, checksums_end, kAttributesAt) &&
                        is_zero_between(page, kAttributesAt + attributes, kLocationAt);
  return is_clean ? Status() : corrupt("header page: unused bytes");
}

}  // namespace

Status encode_header(const HeaderPage& header, HeaderSpan page) noexcept {
  if (header.digest.size() == 0) return Error{ErrorCode::kInvalid, 0, "header page: digest"};
  if (header.length == 0) return Error{ErrorCode::kInvalid, 0, "header page: length"};
  if (header.length > kBlockBytesMax.value())
    return Error{ErrorCode::kTooLarge, 0, "header page: length"};
  if (header.attributes.size() > kHeaderAttributesMax)
    return Error{ErrorCode::kTooLarge, 0, "header page: attributes"};
  std::memset(page.data(), 0, page.size());
  put_bytes(page, kMagicAt, std::as_bytes(std::span(kMagic)));
  put_number(page, kVersionAt, kHeaderVersion);
  put_number(page, kChecksumKindAt, static_cast<std::uint8_t>(header.checksum_kind));
  put_number(page, kChunkLog2At, kHeaderChunkLog2);
  put_number(page, kComputedByAt, static_cast<std::uint8_t>(header.computed_by));
  put_bytes(page, kNamespaceAt, header.name_space.bytes);
  put_number(page, kEpochAt, header.epoch);
  put_number(page, kLengthAt, header.length);
  put_number(page, kPositionAt, header.position);
  put_digest(page, kDigestBytesAt, kDigestAt, header.digest);
  if (header.parent) put_digest(page, kParentBytesAt, kParentAt, *header.parent);
  if (header.branch) put_digest(page, kBranchBytesAt, kBranchAt, *header.branch);
  put_number(page, kCodecAt, static_cast<std::uint16_t>(header.codec));
  put_number(page, kAttributeBytesAt, static_cast<std::uint16_t>(header.attributes.size()));
  put_number(page, kAeadAt, static_cast<std::uint8_t>(header.aead));
  put_bytes(page, kNonceAt, header.aead_nonce);
  put_bytes(page, kTagAt, header.aead_tag);
  for (std::size_t chunk = 0; chunk < chunk_count(header.length); ++chunk)
    put_number(page, kChecksumsAt + chunk * sizeof(std::uint32_t), header.checksums[chunk]);
  put_bytes(page, kAttributesAt, header.attributes);
  // Its own field is still zero, as the hash wants it.
  put_number(page, kIdentityHashAt, xxh3_64(page.first<kLocationAt>()));
  return {};
}

Result<HeaderPage> decode_header(ConstHeaderSpan page) noexcept {
  CAIRN_TRY_STATUS(check_proof(page));
  CAIRN_TRY_STATUS(check_kinds(page));
  HeaderPage header;
  header.length = get_number<std::uint32_t>(page, kLengthAt);
  const std::size_t attributes = get_number<std::uint16_t>(page, kAttributeBytesAt);
  if (header.length == 0) return corrupt("header page: length");
  if (header.length > kBlockBytesMax.value())
    return Error{ErrorCode::kTooLarge, 0, "header page: length"};
  if (attributes > kHeaderAttributesMax)
    return Error{ErrorCode::kTooLarge, 0, "header page: attributes"};
  CAIRN_TRY_STATUS(check_unused(page, header.length, attributes));
  const auto digest = get_digest(page, kDigestBytesAt, kDigestAt);
  if (!digest) return corrupt("header page: digest");
  header.digest = *digest;
  CAIRN_TRY_STATUS(get_optional_digest(page, kParentBytesAt, kParentAt, header.parent));
  CAIRN_TRY_STATUS(get_optional_digest(page, kBranchBytesAt, kBranchAt, header.branch));
  std::memcpy(header.name_space.bytes.data(), page.data() + kNamespaceAt, kNamespaceDigestBytes);
  header.epoch = get_number<std::uint64_t>(page, kEpochAt);
  header.position = get_number<std::uint32_t>(page, kPositionAt);
  header.computed_by = static_cast<ComputedBy>(get_number<std::uint8_t>(page, kComputedByAt));
  for (std::size_t chunk = 0; chunk < chunk_count(header.length); ++chunk) {
    header.checksums[chunk] =
        get_number<std::uint32_t>(page, kChecksumsAt + chunk * sizeof(std::uint32_t));
  }
  header.attributes = page.subspan(kAttributesAt, attributes);
  return header;
}

void encode_location(const HeaderLocation& location, HeaderSpan page) noexcept {
  CAIRN_CHECK(location.segment_generation > 0);
  std::memset(page.data() + kLocationAt, 0, kHeaderPageBytes - kLocationAt);
  put_number(page, kSegmentGenerationAt, location.segment_generation);
  put_number(page, kFrameOffsetAt, location.offset);
  put_number(page, kLocationHashAt, location_hash(page));
}

Result<HeaderLocation> decode_location(ConstHeaderSpan page) noexcept {
  if (get_number<std::uint64_t>(page, kLocationHashAt) != location_hash(page))
    return corrupt("header page: location hash");
  const HeaderLocation location{
      .segment_generation = get_number<std::uint64_t>(page, kSegmentGenerationAt),
      .offset = get_number<std::uint64_t>(page, kFrameOffsetAt)};
  if (location.segment_generation == 0) return corrupt("header page: location");
  if (!is_zero_between(page, kLocationFieldsEnd, kLocationHashAt))
    return corrupt("header page: unused bytes");
  return location;
}

std::span<const std::byte> header_checksum_bytes(ConstHeaderSpan page,
                                                 std::uint32_t length) noexcept {
  CAIRN_CHECK(length <= kBlockBytesMax.value());
  return page.subspan(kChecksumsAt, chunk_count(length) * sizeof(std::uint32_t));
}

std::span<const std::byte> header_attribute_bytes(ConstHeaderSpan page) noexcept {
  const std::size_t bytes = get_number<std::uint16_t>(page, kAttributeBytesAt);
  return page.subspan(kAttributesAt, std::min(bytes, kHeaderAttributesMax));
}

}  // namespace cairn::storage
