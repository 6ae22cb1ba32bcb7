#include "storage/record.h"

#include "base/checksum.h"
#include "storage/lazy_memory.h"
#include "storage/record_table.h"

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <utility>

namespace cairn::storage {
namespace {

BlockDigest digest_of(std::size_t size) {
  std::array<std::byte, kBlockDigestBytesMax> bytes{};
  for (std::size_t i = 0; i < bytes.size(); ++i)
    bytes[i] = static_cast<std::byte>(i + 1);
  return *BlockDigest::from(std::span(bytes).first(size));
}

TEST(Record, GivesBackEveryFieldAsItWasSet) {
  Record record;
  record.set_key(32'767, digest_words(digest_of(20)));
  record.set_epoch(1'700'000'000'123);
  record.set_length(16U << 20U);
  record.set_parent({5, 6});
  ExtentList extents;
  extents.push({1, 2});
  extents.push({0xFFFFFFFF, 3});
  record.set_extents(extents);
  record.set_checksums_hash(11);
  record.set_attributes_hash(12);
  record.set_branch_hash(13);
  record.set_nvme({.segment = 14, .segment_generation = 15, .offset_granules = 16});
  EXPECT_EQ(record.slot(), 32'767U);
  EXPECT_EQ(block_digest(record.digest()), digest_of(20));
  EXPECT_EQ(record.epoch(), 1'700'000'000'123U);
  EXPECT_EQ(record.length(), 16U << 20U);
  EXPECT_EQ(record.parent(), (ParentLink{5, 6}));
  EXPECT_EQ(record.extents(), extents);
  EXPECT_EQ(record.checksums_hash(), 11U);
  EXPECT_EQ(record.attributes_hash(), 12U);
  EXPECT_EQ(record.branch_hash(), 13U);
  EXPECT_EQ(record.nvme().segment, 14U);
  EXPECT_EQ(record.nvme().segment_generation, 15U);
  EXPECT_EQ(record.nvme().offset_granules, 16U);
}

TEST(Record, AKeyIsItsNamespaceItsBytesAndTheirNumber) {
  Record record;
  record.set_key(1, digest_words(digest_of(20)));
  EXPECT_TRUE(record.has_key(1, digest_words(digest_of(20))));
  EXPECT_FALSE(record.has_key(2, digest_words(digest_of(20))));
  EXPECT_FALSE(record.has_key(1, digest_words(digest_of(21))));
  EXPECT_FALSE(record.has_key(1, digest_words(digest_of(32))));
}

// docs/formats.md, "Record": the bytes of version 1.
TEST(Record, LiesInMemoryAsTheFormatSays) {
  Record record;
  record.pin_word().reserve();
  record.pin_word().publish();
  record.pin_word().pin(1);
  record.set_key(0x0102, digest_words(digest_of(32)));
  record.set_epoch(0x1112131415161718);
  record.set_length(0x212223);
  record.set_parent({0x31323334, 0x35363738});
  ExtentList extents;
  extents.push({0x41424344, 0x45464748});
  record.set_extents(extents);
  record.set_checksums_hash(0x5152535455565758);
  record.set_branch_hash(0x6162636465666768);
  record.set_nvme(
      {.segment = 0x71727374, .segment_generation = 0x75767778, .offset_granules = 0x797A7B7C});
  record.set_attributes_hash(0x81828384);
  const auto bytes = std::as_bytes(std::span(&record, 1));
  EXPECT_EQ(to_hex(bytes),
            "0102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f20"
            "0100000201000000"
            "1817161514131211"
            "2322210002012001"
            "3433323138373635"
            "4443424148474645"
            "000000000000000000000000000000000000000000000000"
            "5857565554535251"
            "6867666564636261"
            "7473727178777675"
            "7c7b7a7984838281");
}

TEST(RecordTable, GivesEachNumberOnceAndTheLastReturnedFirst) {
  auto memory = LazyMemory::map(RecordTable::bytes_for(3));
  ASSERT_TRUE(memory.has_value());
  auto table = RecordTable::create({(*memory).bytes()}, 3);
  ASSERT_TRUE(table.has_value());
  EXPECT_EQ(table->capacity(), 3U);
  EXPECT_EQ(table->take(), 0U);
  EXPECT_EQ(table->take(), 1U);
  table->give_back(0);
  EXPECT_EQ(table->take(), 0U);
  EXPECT_EQ(table->take(), 2U);
  EXPECT_EQ(table->take(), std::nullopt);
  EXPECT_EQ(table->used(), 3U);
  EXPECT_EQ(table->memory(), ByteCount(4096 + 3 * 128));
}

class CountedRecords final : public RecordsOwner {
 public:
  Status populate_records(ByteCount offset, ByteCount bytes) noexcept override {
    EXPECT_EQ(offset, resident);
    if (is_full) return Error{ErrorCode::kNoSpace, 0, "full"};
    resident += bytes;
    return {};
  }
  ByteCount resident;
  bool is_full = false;
};

TEST(RecordTable, GrowsOnlyWhereItsMemoryCanBeTouched) {
  constexpr std::uint32_t kRecords = 700;
  auto memory = LazyMemory::map(RecordTable::bytes_for(kRecords));
  ASSERT_TRUE(memory.has_value());
  CountedRecords owner;
  auto table = RecordTable::create({(*memory).bytes(), &owner}, kRecords);
  ASSERT_TRUE(table.has_value());
  for (std::uint32_t i = 0; i < 512; ++i)
    ASSERT_EQ(table->take(), i);
  owner.is_full = true;
  EXPECT_EQ(table->take(), std::nullopt);
  table->give_back(7);
  EXPECT_EQ(table->take(), 7U);
  EXPECT_EQ(table->take(), std::nullopt);
  owner.is_full = false;
  for (std::uint32_t i = 512; i < kRecords; ++i)
    ASSERT_EQ(table->take(), i);
  EXPECT_EQ(table->take(), std::nullopt);
  EXPECT_EQ(owner.resident, RecordTable::bytes_for(kRecords));
}

TEST(RecordTable, RefusesMemoryWhoseFirstPageCannotBeHad) {
  auto memory = LazyMemory::map(RecordTable::bytes_for(3));
  ASSERT_TRUE(memory.has_value());
  CountedRecords owner;
  owner.is_full = true;
  EXPECT_EQ(RecordTable::create({(*memory).bytes(), &owner}, 3).error().code, ErrorCode::kNoSpace);
}

TEST(RecordTable, RefusesWhatItCannotHold) {
  auto memory = LazyMemory::map(RecordTable::bytes_for(3));
  ASSERT_TRUE(memory.has_value());
  const auto bytes = (*memory).bytes();
  EXPECT_EQ(RecordTable::create({bytes}, 0).error().code, ErrorCode::kInvalid);
  EXPECT_EQ(RecordTable::create({bytes}, kRecordsMax + 1).error().code, ErrorCode::kInvalid);
  EXPECT_EQ(RecordTable::create({bytes.first(4096 + 2 * 128)}, 3).error().code,
            ErrorCode::kNoSpace);
  EXPECT_EQ(RecordTable::create({bytes.subspan(8)}, 2).error().code, ErrorCode::kInvalid);
}

TEST(RecordTable, TheFileBeginsWithWhatItIs) {
  auto memory = LazyMemory::map(RecordTable::bytes_for(3));
  ASSERT_TRUE(memory.has_value());
  ASSERT_TRUE(RecordTable::create({(*memory).bytes()}, 3).has_value());
  const auto bytes = (*memory).bytes();
  EXPECT_EQ(to_hex(bytes.first(24)),
            "434149524e5245430100000080000000"
            "0300000000000000");
  std::uint64_t hash = 0;
  std::memcpy(&hash, bytes.data() + 24, sizeof(hash));
  EXPECT_EQ(hash, xxh3_64(bytes.first(24)));
}

TEST(LazyMemory, IsZeroAndMoves) {
  auto made = LazyMemory::map(1_MiB);
  ASSERT_TRUE(made.has_value());
  LazyMemory memory = std::move(*made);
  EXPECT_EQ(memory.bytes().size(), (1_MiB).value());
  EXPECT_EQ(memory.bytes()[12'345], std::byte{0});
  EXPECT_EQ(memory.as<std::uint64_t>().size(), (1_MiB).value() / 8);
  EXPECT_EQ(LazyMemory::map(ByteCount(std::uint64_t{1} << 62U)).error().code, ErrorCode::kNoSpace);
}

}  // namespace
}  // namespace cairn::storage
