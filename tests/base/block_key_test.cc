#include "base/block_key.h"

#include <gtest/gtest.h>

#include <string>
#include <unordered_set>
#include <vector>

namespace cairn {
namespace {

std::vector<std::byte> counted(std::size_t count) {
  std::vector<std::byte> bytes(count);
  for (std::size_t i = 0; i < count; ++i)
    bytes[i] = static_cast<std::byte>(i + 1);
  return bytes;
}

TEST(BlockDigest, TakesOneToThirtyTwoBytesAndNoOthers) {
  EXPECT_FALSE(BlockDigest::from({}).has_value());
  EXPECT_FALSE(BlockDigest::from(counted(33)).has_value());
  for (std::size_t size = 1; size <= kBlockDigestBytesMax; ++size) {
    const auto digest = BlockDigest::from(counted(size));
    ASSERT_TRUE(digest.has_value()) << size;
    EXPECT_EQ(digest->size(), size);
    EXPECT_EQ(digest->is_weak(), size < 16) << size;
  }
}

TEST(BlockDigest, GivesItsBytesBackAndPadsThemWithZeros) {
  const auto bytes = counted(20);
  const auto digest = BlockDigest::from(bytes);
  ASSERT_TRUE(digest.has_value());
  EXPECT_TRUE(std::equal(bytes.begin(), bytes.end(), digest->bytes().begin()));
  EXPECT_EQ(digest->bytes().size(), 20U);
  for (std::size_t i = 20; i < digest->padded().size(); ++i)
    EXPECT_EQ(digest->padded()[i], std::byte{0});
}

TEST(BlockDigest, WithTrailingZerosDiffersFromTheShorterOne) {
  std::vector<std::byte> bytes = counted(16);
  const auto shorter = BlockDigest::from(bytes);
  bytes.push_back(std::byte{0});
  const auto longer = BlockDigest::from(bytes);
  EXPECT_EQ(shorter->padded(), longer->padded());
  EXPECT_NE(*shorter, *longer);
  const std::hash<BlockDigest> hash;
  EXPECT_NE(hash(*shorter), hash(*longer));
}

TEST(BlockDigest, IsAKeyOfAHashTable) {
  std::unordered_set<BlockDigest> digests;
  for (std::size_t size = 1; size <= kBlockDigestBytesMax; ++size)
    digests.insert(*BlockDigest::from(counted(size)));
  digests.insert(*BlockDigest::from(counted(5)));
  EXPECT_EQ(digests.size(), kBlockDigestBytesMax);
}

TEST(BlockKey, DiffersWhenNamespaceOrDigestDiffers) {
  const BlockKey key{.name_space = {}, .digest = *BlockDigest::from(counted(16))};
  BlockKey other_space = key;
  other_space.name_space.bytes[15] = std::byte{1};
  BlockKey other_digest = key;
  other_digest.digest = *BlockDigest::from(counted(17));
  EXPECT_EQ(key, BlockKey(key));
  EXPECT_NE(key, other_space);
  EXPECT_NE(key, other_digest);
}

TEST(Hex, WritesLowerCaseAndReadsBoth) {
  const auto bytes = bytes_from_hex("00fFa5");
  ASSERT_TRUE(bytes.has_value());
  EXPECT_EQ(*bytes, std::string("\x00\xff\xa5", 3));
  EXPECT_EQ(to_hex(std::as_bytes(std::span(*bytes))), "00ffa5");
  EXPECT_EQ(to_hex({}), "");
}

TEST(Hex, RefusesOddLengthsAndOtherCharacters) {
  EXPECT_EQ(bytes_from_hex(""), "");
  for (const char* const text : {"0", "abc", "0g", "0x", " 0", "G0", "0/", "0:", "@0", "`0"})
    EXPECT_FALSE(bytes_from_hex(text).has_value()) << text;
}

TEST(Hex, EveryByteComesBack) {
  std::vector<std::byte> all(256);
  for (std::size_t i = 0; i < all.size(); ++i)
    all[i] = static_cast<std::byte>(i);
  const auto back = bytes_from_hex(to_hex(all));
  ASSERT_TRUE(back.has_value());
  EXPECT_EQ(to_hex(std::as_bytes(std::span(*back))), to_hex(all));
}

TEST(Hex, BlockDigestObeysItsLimits) {
  EXPECT_FALSE(block_digest_from_hex("").has_value());
  EXPECT_FALSE(block_digest_from_hex("zz").has_value());
  EXPECT_FALSE(block_digest_from_hex(std::string(66, 'a')).has_value());
  const auto digest = block_digest_from_hex(std::string(64, 'a'));
  ASSERT_TRUE(digest.has_value());
  EXPECT_EQ(to_hex(digest->bytes()), std::string(64, 'a'));
}

TEST(Hex, NamespaceDigestIsSixteenBytes) {
  EXPECT_FALSE(namespace_digest_from_hex(std::string(30, '1')).has_value());
  EXPECT_FALSE(namespace_digest_from_hex(std::string(34, '1')).has_value());
  EXPECT_FALSE(namespace_digest_from_hex(std::string(32, 'x')).has_value());
  const auto digest = namespace_digest_from_hex("000102030405060708090a0b0c0d0e0f");
  ASSERT_TRUE(digest.has_value());
  EXPECT_EQ(digest->bytes[15], std::byte{15});
  EXPECT_NE(std::hash<NamespaceDigest>{}(*digest), std::hash<NamespaceDigest>{}({}));
}

}  // namespace
}  // namespace cairn
