#include "storage/header_page.h"

#include "base/checksum.h"
#include "base/random.h"
#include "tests/support/seed.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <string>
#include <vector>

namespace cairn::storage {
namespace {

using Page = std::array<std::byte, kHeaderPageBytes>;
// The identity hash covers these; the location has its own.
constexpr std::size_t kHashedBytes = 3584;

BlockDigest digest_of(std::uint8_t first, std::size_t size) {
  std::vector<std::byte> bytes(size);
  for (std::size_t i = 0; i < size; ++i)
    bytes[i] = static_cast<std::byte>(first + i);
  return *BlockDigest::from(bytes);
}

const std::array<std::byte, 12>& attributes() {
  static const std::array<std::byte, 12> bytes = {std::byte{1}, std::byte{0}, std::byte{8}};
  return bytes;
}

// Every field of version 1 set to something.
HeaderPage full_header() {
  HeaderPage header;
  for (std::size_t i = 0; i < kNamespaceDigestBytes; ++i)
    header.name_space.bytes[i] = static_cast<std::byte>(0xA0 + i);
  header.epoch = 1'700'000'000'123;
  header.digest = digest_of(0x10, 32);
  header.parent = digest_of(0x40, 16);
  header.branch = digest_of(0x70, 20);
  header.position = 7;
  header.length = 3 * 262'144 + 5;
  header.computed_by = ComputedBy::kDaemon;
  for (std::uint32_t i = 0; i < 4; ++i)
    header.checksums[i] = 0xC0DE'0000 + i;
  header.attributes = attributes();
  return header;
}

Page encoded(const HeaderPage& header) {
  Page page;
  page.fill(std::byte{0xEE});
  EXPECT_TRUE(encode_header(header, page));
  return page;
}

// Writes the identity hash anew, as a writer of a wrong but whole page would.
void rehash(Page& page) {
  Page copy = page;
  std::memset(copy.data() + 504, 0, 8);
  const std::uint64_t hash = xxh3_64(std::span(copy).first(3584));
  for (std::size_t i = 0; i < 8; ++i)
    page[504 + i] = static_cast<std::byte>(hash >> (8 * i));
}

ErrorCode decode_error(const Page& page) {
  const auto header = decode_header(page);
  EXPECT_FALSE(header);
  return header ? ErrorCode::kInvalid : header.error().code;
}

ErrorCode decode_error_with(std::size_t at, std::uint8_t value) {
  Page page = encoded(full_header());
  page[at] = static_cast<std::byte>(value);
  rehash(page);
  return decode_error(page);
}

TEST(HeaderPage, RoundTripsEveryField) {
  const HeaderPage header = full_header();
  const Page page = encoded(header);
  const auto back = decode_header(page);
  ASSERT_TRUE(back);
  EXPECT_EQ(back->name_space, header.name_space);
  EXPECT_EQ(back->epoch, header.epoch);
  EXPECT_EQ(back->digest, header.digest);
  EXPECT_EQ(back->parent, header.parent);
  EXPECT_EQ(back->branch, header.branch);
  EXPECT_EQ(back->position, header.position);
  EXPECT_EQ(back->length, header.length);
  EXPECT_EQ(back->computed_by, header.computed_by);
  EXPECT_EQ(back->checksums, header.checksums);
  EXPECT_TRUE(std::ranges::equal(back->attributes, header.attributes));
}

TEST(HeaderPage, RoundTripsTheSmallestAndTheLargestBlock) {
  for (const std::uint32_t length : {1U, 16U * 1024 * 1024}) {
    HeaderPage header;
    header.digest = digest_of(1, 1);
    header.length = length;
    header.checksums.fill(length == 1 ? 0 : 9);
    std::vector<std::byte> attributes_max(kHeaderAttributesMax, std::byte{3});
    if (length > 1) header.attributes = attributes_max;
    const Page page = encoded(header);
    const auto back = decode_header(page);
    ASSERT_TRUE(back);
    EXPECT_EQ(back->parent, std::nullopt);
    EXPECT_EQ(back->branch, std::nullopt);
    EXPECT_EQ(back->checksums, header.checksums);
    EXPECT_EQ(back->attributes.size(), header.attributes.size());
  }
}

TEST(HeaderPage, HasTheGoldenBytesOfVersion1) {
  Page page = encoded(full_header());
  encode_location({.segment_generation = 42, .offset = 0x1234'5000}, page);
  std::ifstream file(CAIRN_GOLDEN_DIR "/header_page_v1.hex");
  ASSERT_TRUE(file) << "tests/golden/header_page_v1.hex";
  std::string golden;
  for (std::string line; std::getline(file, line);)
    golden += line;
  EXPECT_EQ(to_hex(page), golden);
}

TEST(HeaderPage, RefusesToEncodeWhatItCouldNotDecode) {
  Page page{};
  HeaderPage header = full_header();
  header.length = 0;
  EXPECT_EQ(encode_header(header, page).error().code, ErrorCode::kInvalid);
  header = full_header();
  header.digest = BlockDigest();
  EXPECT_EQ(encode_header(header, page).error().code, ErrorCode::kInvalid);
  header = full_header();
  header.length = 16 * 1024 * 1024 + 1;
  EXPECT_EQ(encode_header(header, page).error().code, ErrorCode::kTooLarge);
  header = full_header();
  const std::vector<std::byte> many(kHeaderAttributesMax + 1);
  header.attributes = many;
  EXPECT_EQ(encode_header(header, page).error().code, ErrorCode::kTooLarge);
  EXPECT_EQ(page, Page{});
}

TEST(HeaderPage, CallsEveryFlippedBitOfTheHashedPartCorruptOrForeign) {
  const Page good = encoded(full_header());
  for (std::size_t bit = 0; bit < kHashedBytes * 8; ++bit) {
    Page page = good;
    page[bit / 8] ^= static_cast<std::byte>(1U << (bit % 8));
    const ErrorCode code = decode_error(page);
    const bool is_version = bit / 8 == 8 || bit / 8 == 9;
    ASSERT_TRUE(code == ErrorCode::kCorrupt || (is_version && code == ErrorCode::kVersion)) << bit;
  }
}

TEST(HeaderPage, NamesANewerVersionBeforeItLooksAtTheHash) {
  Page page = encoded(full_header());
  page[8] = std::byte{2};
  EXPECT_EQ(decode_error(page), ErrorCode::kVersion);
}

TEST(HeaderPage, RefusesKindsThatThisBuildLacks) {
  EXPECT_EQ(decode_error_with(144, 1), ErrorCode::kVersion);  // codec
  EXPECT_EQ(decode_error_with(13, 2), ErrorCode::kVersion);   // checksum kind
  EXPECT_EQ(decode_error_with(14, 19), ErrorCode::kVersion);  // chunk size
  EXPECT_EQ(decode_error_with(148, 1), ErrorCode::kVersion);  // AEAD
  EXPECT_EQ(decode_error_with(15, 0), ErrorCode::kVersion);   // computed by
  EXPECT_EQ(decode_error_with(15, 4), ErrorCode::kVersion);
}

TEST(HeaderPage, RefusesWhatIsTooLarge) {
  EXPECT_EQ(decode_error_with(43, 2), ErrorCode::kTooLarge);      // length, top byte
  EXPECT_EQ(decode_error_with(147, 0xFF), ErrorCode::kTooLarge);  // attribute bytes
}

TEST(HeaderPage, RefusesFieldsOutOfRangeAndUnusedBytesThatAreNotZero) {
  for (const std::size_t at : {10U, 11U, 12U}) {
    EXPECT_EQ(decode_error_with(at, 33), ErrorCode::kCorrupt) << at;
    EXPECT_EQ(decode_error_with(at, 3), ErrorCode::kCorrupt) << at;  // padding is not zero
    EXPECT_EQ(decode_error_with(at, 0), ErrorCode::kCorrupt) << at;
  }
  for (const std::size_t at : {149U, 151U, 152U, 176U, 191U, 192U, 503U, 528U, 1535U, 1548U, 3583U})
    EXPECT_EQ(decode_error_with(at, 1), ErrorCode::kCorrupt) << at;
}

TEST(HeaderPage, RefusesALengthOfZero) {
  Page page = encoded(full_header());
  std::memset(page.data() + 40, 0, 4);
  rehash(page);
  EXPECT_EQ(decode_error(page), ErrorCode::kCorrupt);
}

TEST(HeaderPage, SurvivesNoise) {
  const std::uint64_t seed = testing::test_seed();
  SCOPED_TRACE(::testing::Message() << "CAIRN_SEED=" << seed);
  SeededRandom random(seed);
  for (int round = 0; round < 2000; ++round) {
    Page page = encoded(full_header());
    for (std::uint64_t n = random.below(8) + 1; n > 0; --n)
      page[16 + random.below(3568)] = static_cast<std::byte>(random.next_u64());
    rehash(page);
    const auto header = decode_header(page);
    if (!header) continue;
    Page again;
    ASSERT_TRUE(encode_header(*header, again));
    ASSERT_TRUE(std::equal(again.begin(), again.begin() + 3584, page.begin()));
  }
}

TEST(HeaderLocation, IsBoundToTheHeaderItWasWrittenFor) {
  const HeaderLocation location{.segment_generation = 3, .offset = 8192};
  Page page = encoded(full_header());
  encode_location(location, page);
  ASSERT_TRUE(decode_header(page));
  ASSERT_TRUE(decode_location(page));
  EXPECT_EQ(*decode_location(page), location);

  HeaderPage other_header = full_header();
  ++other_header.epoch;
  Page other = encoded(other_header);
  std::copy(page.begin() + 3584, page.end(), other.begin() + 3584);
  EXPECT_EQ(decode_location(other).error().code, ErrorCode::kCorrupt);
}

TEST(HeaderLocation, IsAbsentUntilItIsWritten) {
  const Page page = encoded(full_header());
  EXPECT_EQ(decode_location(page).error().code, ErrorCode::kCorrupt);
}

TEST(HeaderLocation, IsCorruptWhenAnyBitDiffers) {
  Page good = encoded(full_header());
  encode_location({.segment_generation = 3, .offset = 8192}, good);
  for (std::size_t bit = kHashedBytes * 8; bit < kHeaderPageBytes * 8; ++bit) {
    Page page = good;
    page[bit / 8] ^= static_cast<std::byte>(1U << (bit % 8));
    const auto location = decode_location(page);
    ASSERT_FALSE(location) << bit;
    ASSERT_EQ(location.error().code, ErrorCode::kCorrupt);
  }
}

TEST(HeaderPage, ShowsItsRawSectionsWithoutLeavingThem) {
  Page page = encoded(full_header());
  EXPECT_EQ(header_checksum_bytes(page, full_header().length).size(), 16U);
  EXPECT_EQ(header_checksum_bytes(page, full_header().length).data(), page.data() + 512);
  EXPECT_TRUE(std::ranges::equal(header_attribute_bytes(page), full_header().attributes));
  page[147] = std::byte{0xFF};
  EXPECT_EQ(header_attribute_bytes(page).size(), kHeaderAttributesMax);
}

}  // namespace
}  // namespace cairn::storage
