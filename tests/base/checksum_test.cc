#include "base/checksum.h"

#include "base/random.h"
#include "tests/support/seed.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

namespace cairn {
namespace {

std::vector<std::byte> random_bytes(SeededRandom& random, std::size_t count) {
  std::vector<std::byte> bytes(count);
  for (std::byte& byte : bytes)
    byte = static_cast<std::byte>(random.next_u64());
  return bytes;
}

// CRC-32C as its definition reads, one bit a step: the reference for the fast one.
std::uint32_t slow_crc32c(std::span<const std::byte> bytes) {
  constexpr std::uint32_t kReversedCastagnoli = 0x82F63B78U;
  std::uint32_t crc = ~0U;
  for (const std::byte byte : bytes) {
    crc ^= std::to_integer<std::uint32_t>(byte);
    for (int bit = 0; bit < 8; ++bit)
      crc = (crc & 1U) != 0 ? crc >> 1U ^ kReversedCastagnoli : crc >> 1U;
  }
  return ~crc;
}

// RFC 3720, appendix B.4, read as big-endian numbers of the bytes shown there in wire order.
TEST(Crc32c, GivesTheVectorsOfRfc3720) {
  std::array<std::byte, 32> bytes{};
  EXPECT_EQ(crc32c(bytes), 0x8A9136AAU);
  bytes.fill(std::byte{0xFF});
  EXPECT_EQ(crc32c(bytes), 0x62A8AB43U);
  for (std::size_t i = 0; i < bytes.size(); ++i)
    bytes[i] = static_cast<std::byte>(i);
  EXPECT_EQ(crc32c(bytes), 0x46DD794EU);
  std::reverse(bytes.begin(), bytes.end());
  EXPECT_EQ(crc32c(bytes), 0x113FDB5CU);
}

TEST(Crc32c, GivesTheScsiReadCommandVectorOfRfc3720) {
  constexpr std::array<unsigned char, 48> kRead10 = {
      0x01, 0xc0, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
      0x00, 0x00, 0x00, 0x00, 0x14, 0x00, 0x00, 0x00, 0x00, 0x00, 0x04, 0x00,
      0x00, 0x00, 0x00, 0x14, 0x00, 0x00, 0x00, 0x18, 0x28, 0x00, 0x00, 0x00,
      0x00, 0x00, 0x00, 0x00, 0x02, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00};
  EXPECT_EQ(crc32c(std::as_bytes(std::span(kRead10))), 0xD9963A56U);
}

TEST(Crc32c, GivesTheCommonCheckValueAndZeroForNothing) {
  constexpr std::string_view kDigits = "123456789";
  EXPECT_EQ(crc32c(std::as_bytes(std::span(kDigits))), 0xE3069283U);
  EXPECT_EQ(crc32c({}), 0U);
}

TEST(Crc32c, AgreesWithItsDefinitionAtEveryLengthAndAlignment) {
  const std::uint64_t seed = testing::test_seed();
  SCOPED_TRACE("CAIRN_SEED=" + std::to_string(seed));
  SeededRandom random(seed);
  const auto bytes = random_bytes(random, 1200);
  for (std::size_t length = 0; length < 1100; length += 1 + length / 40) {
    for (std::size_t start = 0; start < 16; start += 3) {
      const auto part = std::span(bytes).subspan(start, length);
      ASSERT_EQ(crc32c(part), slow_crc32c(part)) << start << '+' << length;
    }
  }
}

TEST(ExtendCrc32c, ContinuesAtAnyCut) {
  SeededRandom random(7);
  const auto bytes = random_bytes(random, 300);
  const std::uint32_t whole = crc32c(bytes);
  for (std::size_t cut = 0; cut <= bytes.size(); ++cut) {
    const auto front = std::span(bytes).first(cut);
    ASSERT_EQ(extend_crc32c(crc32c(front), std::span(bytes).subspan(cut)), whole) << cut;
  }
}

TEST(CopyWithCrc32c, CopiesAndChecksumsAcrossItsSteps) {
  SeededRandom random(8);
  for (const std::size_t size : {0U, 1U, 4095U, 32767U, 32768U, 32769U, 262144U, 300001U}) {
    const auto source = random_bytes(random, size);
    std::vector<std::byte> target(size + 2, std::byte{0xEE});
    const std::uint32_t crc = copy_with_crc32c(std::span(target).subspan(1, size), source);
    EXPECT_EQ(crc, crc32c(source)) << size;
    EXPECT_TRUE(std::equal(source.begin(), source.end(), target.begin() + 1)) << size;
    EXPECT_EQ(target.front(), std::byte{0xEE});
    EXPECT_EQ(target.back(), std::byte{0xEE});
  }
}

TEST(CopyWithCrc32c, ContinuesAcrossExtents) {
  SeededRandom random(9);
  const auto source = random_bytes(random, 100'000);
  std::vector<std::byte> target(source.size());
  const std::size_t cut = 40'001;
  const std::uint32_t front =
      copy_with_crc32c(std::span(target).first(cut), std::span(source).first(cut));
  const std::uint32_t whole = extend_copy_with_crc32c(
      front, std::span(target).subspan(cut), std::span(source).subspan(cut));
  EXPECT_EQ(whole, crc32c(source));
  EXPECT_EQ(target, source);
}

TEST(CopyWithCrc32cDeathTest, OfUnequalSizesIsABug) {
  std::array<std::byte, 4> target{};
  const std::array<std::byte, 5> source{};
  EXPECT_DEATH(copy_with_crc32c(target, source), "check_failed");
}

TEST(CopyBytes, GivesTheSameBytesForEveryLengthAroundItsWords) {
  std::vector<std::byte> source(20'000);
  for (std::size_t i = 0; i < source.size(); ++i)
    source[i] = static_cast<std::byte>(i * 31 >> 3U);
  for (const std::size_t bytes : {0, 1, 7, 8, 9, 4'095, 4'096, 4'097, 19'999}) {
    std::vector<std::byte> target(bytes);
    copy_bytes(target, std::span(source).first(bytes));
    EXPECT_TRUE(std::equal(target.begin(), target.end(), source.begin())) << bytes;
  }
}

TEST(Xxh3, GivesItsPublishedValueForNothingAndDiffersByOneBit) {
  EXPECT_EQ(xxh3_64({}), 0x2D06800538D394C2ULL);
  std::array<std::byte, 64> bytes{};
  const std::uint64_t before = xxh3_64(bytes);
  bytes[63] = std::byte{1};
  EXPECT_NE(xxh3_64(bytes), before);
}

TEST(ChunkCount, CountsTheLastPartAndNeverWrapsForLengthsFromOutside) {
  EXPECT_EQ(chunk_count(0), 0U);
  EXPECT_EQ(chunk_count(1), 1U);
  EXPECT_EQ(chunk_count(262'144), 1U);
  EXPECT_EQ(chunk_count(262'145), 2U);
  EXPECT_EQ(chunk_count(kBlockBytesMax.value()), kChunksMax);
  EXPECT_GT(chunk_count(1ULL << 50U), kChunksMax);
  EXPECT_GT(chunk_count(std::numeric_limits<std::uint64_t>::max()), kChunksMax);
}

}  // namespace
}  // namespace cairn
