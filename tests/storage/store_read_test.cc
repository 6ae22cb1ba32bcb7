#include "storage/header_page.h"
#include "tests/storage/store_fixture.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>

namespace cairn::storage {
namespace {

using Chain = std::vector<std::uint64_t>;

std::vector<LookupHit> lookup(StoreFixture& f, std::span<const std::uint64_t> numbers) {
  const std::vector<BlockDigest> keys = StoreFixture::digests(numbers);
  std::vector<LookupHit> hits(keys.size(), LookupHit{TierKind::kHbm, 99});
  f.store().lookup(f.scope(), keys, hits);
  return hits;
}

TEST(StoreLookup, AnswersEachKeyWithItsTierAndLength) {
  StoreFixture f;
  ASSERT_EQ(f.put_one(1, 100), BlockStatus::kOk);
  ASSERT_EQ(f.put_one(3, 4000), BlockStatus::kOk);
  const std::vector<LookupHit> hits = lookup(f, Chain{1, 2, 3});
  EXPECT_EQ(hits[0].tier, TierKind::kDram);
  EXPECT_EQ(hits[0].length, 100U);
  EXPECT_EQ(hits[1].tier, TierKind::kNone);
  EXPECT_EQ(hits[1].length, 0U);
  EXPECT_EQ(hits[2].length, 4000U);
}

TEST(StoreLookup, ARunEndsAtTheFirstKeyThatIsNotThere) {
  StoreFixture f({.frames = 200});
  Chain chain;
  for (std::uint64_t i = 1; i <= 150; ++i)
    chain.push_back(i);
  f.put(chain);
  f.store().remove(f.scope(), StoreFixture::digest(100));
  const std::vector<BlockDigest> keys = StoreFixture::digests(chain);
  std::vector<LookupHit> hits(keys.size());
  EXPECT_EQ(f.store().lookup_run(f.scope(), keys, hits), 99U);
  EXPECT_EQ(f.store().lookup_run(f.scope(), std::span(keys).first(99), hits), 99U);
  EXPECT_EQ(f.store().lookup_run(f.scope(), std::span(keys).subspan(99, 1), hits), 0U);
  EXPECT_EQ(f.store().lookup_run(f.scope(), {}, {}), 0U);
}

TEST(StoreLookup, TheSameDigestInAnotherNamespaceIsAnotherKey) {
  StoreFixture f;
  ASSERT_EQ(f.put_one(1), BlockStatus::kOk);
  Scope other = f.scope();
  other.slot = NamespaceSlot(4);
  f.store().set_epoch(other.slot, other.epoch);
  const std::array<BlockDigest, 1> keys = {StoreFixture::digest(1)};
  std::array<LookupHit, 1> hits;
  f.store().lookup(other, keys, hits);
  EXPECT_EQ(hits[0].tier, TierKind::kNone);
  EXPECT_FALSE(f.store().pin(other, keys[0]).has_value());
  EXPECT_EQ(f.store().remove(other, keys[0]), BlockStatus::kMiss);
}

TEST(StoreLookup, AShorterDigestWithTheSameBytesIsAnotherKey) {
  StoreFixture f;
  const std::vector<std::byte> bytes(20, std::byte{0});
  const auto digest = [&](std::size_t size) {
    return *BlockDigest::from(std::span(bytes).first(size));
  };
  const std::array<ReserveItem, 1> items = {ReserveItem{digest(20), 100}};
  std::array<ReserveOutcome, 1> reserved;
  f.store().reserve({.scope = f.scope(), .items = items}, reserved);
  ASSERT_EQ(f.commit_one(reserved[0], 1, 100), BlockStatus::kOk);
  const std::array<BlockDigest, 2> keys = {digest(20), digest(16)};
  std::array<LookupHit, 2> hits;
  f.store().lookup(f.scope(), keys, hits);
  EXPECT_EQ(hits[0].tier, TierKind::kDram);
  EXPECT_EQ(hits[1].tier, TierKind::kNone);
}

TEST(StoreLookup, QuestionsNeverRefresh) {
  StoreFixture f;
  for (std::uint64_t i = 1; i <= 8; ++i)
    ASSERT_EQ(f.put_one(i), BlockStatus::kOk);
  lookup(f, Chain{1, 2, 3});
  f.store().stat(f.scope(), StoreFixture::digest(1));
  f.store().list(f.scope(), 0, 100);
  const std::vector<BlockDigest> keys = StoreFixture::digests(Chain{1, 2});
  std::vector<LookupHit> hits(2);
  f.store().lookup_run(f.scope(), keys, hits);
  EXPECT_EQ(f.victims(Chain{1, 2, 3, 4, 5, 6, 7, 8}), (Chain{1, 2, 3, 4, 5, 6, 7, 8}));
}

TEST(StoreRead, ARemovedBlockStaysReadableUntilItsLastUnpin) {
  StoreFixture f({.frames = 2});
  ASSERT_EQ(f.put_one(1), BlockStatus::kOk);
  const auto first = f.pin(1);
  const auto second = f.pin(1);
  ASSERT_TRUE(first && second);
  EXPECT_EQ(f.store().remove(f.scope(), StoreFixture::digest(1)), BlockStatus::kOk);
  EXPECT_FALSE(f.has(1));
  EXPECT_EQ(f.store().remove(f.scope(), StoreFixture::digest(1)), BlockStatus::kMiss);
  ASSERT_EQ(f.put_one(1), BlockStatus::kOk);
  EXPECT_EQ(f.read(first->extents, first->length), StoreFixture::body(1));
  EXPECT_EQ(f.tier().free_granules(), 0U);
  f.store().unpin(first->ref);
  EXPECT_EQ(f.tier().free_granules(), 0U);
  f.store().unpin(second->ref);
  EXPECT_EQ(f.tier().free_granules(), 2U);
  f.store().unpin(second->ref);
  EXPECT_TRUE(f.has(1));
  EXPECT_EQ(f.tier().bad_releases(), 0U);
}

TEST(StoreRead, ChecksumsComeBackAsTheyWereCommitted) {
  StoreFixture f({.frames = 200});
  constexpr std::uint32_t kLarge = 600'000;
  ASSERT_EQ(f.put_one(1, kLarge), BlockStatus::kOk);
  const auto pinned = f.pin(1);
  ASSERT_TRUE(pinned.has_value());
  std::vector<std::uint32_t> out(3);
  ASSERT_TRUE(f.store().checksums(*pinned, out).has_value());
  EXPECT_EQ(out, checksums_of(StoreFixture::body(1, kLarge)));
  EXPECT_EQ(f.store().checksums(*pinned, std::span(out).first(2)).error().code,
            ErrorCode::kInvalid);
}

TEST(StoreRead, AHeaderPageThatWasWrittenToIsFoundAndItsBlockDropped) {
  StoreFixture f;
  ASSERT_EQ(f.put_one(1), BlockStatus::kOk);
  const auto pinned = f.pin(1);
  ASSERT_TRUE(pinned.has_value());
  f.tier().header_page(pinned->extents)[512] ^= std::byte{1};
  std::array<std::uint32_t, 1> out{};
  EXPECT_EQ(f.store().checksums(*pinned, out).error().code, ErrorCode::kCorrupt);
  EXPECT_FALSE(f.has(1));
  EXPECT_FALSE(f.store().verify(*pinned));
  EXPECT_EQ(f.store().stats().corrupt_headers, 1U);
  f.store().unpin(pinned->ref);
  EXPECT_EQ(f.store().stats().dram.allocated, ByteCount(0));
}

TEST(StoreRead, VerifyDropsABlockWhoseBytesAreWrong) {
  StoreFixture f({.frames = 200});
  ASSERT_EQ(f.put_one(1, 600'000), BlockStatus::kOk);
  const auto pinned = f.pin(1);
  ASSERT_TRUE(pinned.has_value());
  EXPECT_TRUE(f.store().verify(*pinned));
  f.tier().payload(pinned->extents, ByteCount(600'000)).items[0].host()[599'999] ^= std::byte{4};
  EXPECT_FALSE(f.store().verify(*pinned));
  EXPECT_FALSE(f.has(1));
  f.store().unpin(pinned->ref);
  EXPECT_EQ(f.store().stats().dram.allocated, ByteCount(0));
}

TEST(StoreRead, AttributesComeBackAndAreProvedByTheRecord) {
  StoreFixture f;
  const ReserveOutcome reserved = f.reserve_one(1);
  const std::array<std::uint32_t, 1> checksums = {7};
  const std::vector<std::byte> attributes(100, std::byte{0x5A});
  const std::array<CommitItem, 1> items = {
      CommitItem{.ref = reserved.ref, .checksums = checksums, .attributes = attributes}};
  std::array<BlockStatus, 1> out{};
  f.store().commit(f.scope(), items, out);
  ASSERT_EQ(out[0], BlockStatus::kOk);
  const auto pinned = f.pin(1);
  ASSERT_TRUE(pinned.has_value());
  std::vector<std::byte> read(2048);
  const auto size = f.store().attributes(*pinned, read);
  ASSERT_TRUE(size.has_value());
  read.resize(*size);
  EXPECT_EQ(read, attributes);
  EXPECT_EQ(f.store().attributes(*pinned, std::span(read).first(10)).error().code,
            ErrorCode::kTooLarge);
  const auto page = f.tier().header_page(pinned->extents);
  std::find(page.begin(), page.end(), std::byte{0x5A})[0] = std::byte{0};
  read.resize(2048);
  EXPECT_EQ(f.store().attributes(*pinned, read).error().code, ErrorCode::kCorrupt);
  EXPECT_FALSE(f.has(1));
}

TEST(StoreRead, TheHeaderPageSaysWhatThePayloadIs) {
  StoreFixture f;
  f.put(Chain{1, 2, 3});
  const auto pinned = f.pin(2);
  ASSERT_TRUE(pinned.has_value());
  const auto page = f.tier().header_page(pinned->extents).first<kHeaderPageBytes>();
  const auto header = decode_header(page);
  ASSERT_TRUE(header.has_value());
  const HeaderPage& decoded = *header;
  EXPECT_EQ(decoded.digest, StoreFixture::digest(2));
  EXPECT_EQ(decoded.parent, StoreFixture::digest(1));
  EXPECT_EQ(decoded.branch, StoreFixture::digest(1));
  EXPECT_EQ(decoded.epoch, StoreFixture::kEpoch);
  EXPECT_EQ(decoded.position, 1U);
  EXPECT_EQ(decoded.length, StoreFixture::kLength);
  EXPECT_EQ(decoded.checksums[0], checksums_of(StoreFixture::body(2))[0]);
}

TEST(StoreStat, TellsPinsRetentionAndLength) {
  StoreFixture f;
  EXPECT_FALSE(f.store().stat(f.scope(), StoreFixture::digest(1)).has_value());
  ASSERT_EQ(f.put_one(1, 100), BlockStatus::kOk);
  const auto pinned = f.pin(1);
  f.store().retain(f.scope(), StoreFixture::digest(1), Milliseconds(10));
  const auto info = f.store().stat(f.scope(), StoreFixture::digest(1));
  ASSERT_TRUE(info.has_value());
  EXPECT_EQ(info->tier, TierKind::kDram);
  EXPECT_EQ(info->length, 100U);
  EXPECT_EQ(info->pins, 1U);
  EXPECT_TRUE(info->is_retained);
  f.clock().advance(Milliseconds(10));
  EXPECT_FALSE(f.store().stat(f.scope(), StoreFixture::digest(1))->is_retained);
  f.store().unpin(pinned->ref);
}

TEST(StoreList, WalksANamespaceInPages) {
  StoreFixture f({.frames = 100});
  Chain chain;
  for (std::uint64_t i = 1; i <= 50; ++i)
    chain.push_back(i);
  f.put(chain);
  f.reserve_one(60);
  std::vector<BlockDigest> seen;
  std::uint64_t cursor = 0;
  int pages = 0;
  do {
    const Store::Listing page = f.store().list(f.scope(), cursor, 7);
    EXPECT_LE(page.digests.size(), 7U);
    seen.insert(seen.end(), page.digests.begin(), page.digests.end());
    cursor = page.next_cursor;
    ++pages;
  } while (cursor != 0 && pages < 100);
  std::vector<BlockDigest> expected = StoreFixture::digests(chain);
  std::sort(seen.begin(), seen.end());
  std::sort(expected.begin(), expected.end());
  EXPECT_EQ(seen, expected);
  Scope other = f.scope();
  other.epoch += 1;
  EXPECT_TRUE(f.store().list(other, 0, 7).digests.empty());
}

}  // namespace
}  // namespace cairn::storage
