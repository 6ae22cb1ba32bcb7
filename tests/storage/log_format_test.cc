#include "storage/nvme/log_format.h"

#include "tests/support/seed.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

namespace cairn::storage {
namespace {

using Bytes = std::vector<std::byte>;

DeviceUuid uuid(std::uint8_t first) {
  DeviceUuid id{};
  for (std::size_t i = 0; i < id.size(); ++i)
    id[i] = static_cast<std::byte>(first + i);
  return id;
}

NamespaceEpoch row(std::uint8_t first, std::uint64_t epoch) {
  NamespaceEpoch out{.digest = {}, .epoch = epoch};
  out.digest.bytes.fill(static_cast<std::byte>(first));
  return out;
}

Superblock some_superblock() {
  return {.sequence = 7,
          .device = uuid(0x10),
          .owner = uuid(0x40),
          .segment_bytes = 128_MiB,
          .segments = 80,
          .namespaces = {row(0x01, 1'700'000'000'000), row(0x02, 1'700'000'000'001)}};
}

SegmentFooter some_footer() {
  return {.of = {.device = uuid(0x10), .segment = 3, .generation = 0x0102030405060708},
          .sealed_unix_ms = 1'700'000'000'123,
          .namespaces = {row(0x01, 5), row(0x02, 6)},
          .frames = {{.key_hash = 0x1111'2222'3333'4444,
                      .branch_hash = 0x5555'6666'7777'8888,
                      .page = 1,
                      .pages = 257,
                      .name_space = 0},
                     {.key_hash = 0x9999'AAAA'BBBB'CCCC,
                      .branch_hash = 0x5555'6666'7777'8888,
                      .page = 300,
                      .pages = 2,
                      .name_space = 1}}};
}

Bytes encoded(const Superblock& superblock) {
  Bytes bytes(superblock_bytes(superblock.namespaces.size()).value(), std::byte{0xEE});
  EXPECT_TRUE(encode_superblock(superblock, bytes));
  return bytes;
}

Bytes encoded(const SegmentFooter& footer) {
  Bytes bytes(footer_bytes(footer.namespaces.size(), footer.frames.size()).value(),
              std::byte{0xEE});
  EXPECT_TRUE(encode_footer(footer, bytes));
  return bytes;
}

Bytes encoded(const SegmentHeader& header) {
  std::array<std::byte, 4'096> page{};
  EXPECT_TRUE(encode_segment_header(header, page));
  return {page.begin(), page.end()};
}

ErrorCode footer_error(const SegmentFooter& footer) {
  Bytes bytes(footer_bytes(footer.namespaces.size(), footer.frames.size()).value());
  const Status done = encode_footer(footer, bytes);
  return done ? ErrorCode::kExists : done.error().code;
}

// The zero bytes at the end of a line's worth are left out, so that a file is short enough to read.
std::string to_hex_lines(const Bytes& bytes) {
  constexpr std::size_t kLine = 32;
  std::string text;
  for (std::size_t at = 0; at < bytes.size(); at += kLine) {
    const auto line = std::span(bytes).subspan(at, kLine);
    if (std::ranges::all_of(line, [](std::byte b) { return b == std::byte{0}; })) continue;
    text += std::to_string(at) + ": " + to_hex(line) + "\n";
  }
  return text;
}

void expect_golden(const std::string& name, const Bytes& bytes) {
  const std::string path = CAIRN_GOLDEN_DIR "/nvme_v1/" + name;
  if (testing::test_variable("CAIRN_WRITE_GOLDEN")) std::ofstream(path) << to_hex_lines(bytes);
  std::ifstream file(path);
  ASSERT_TRUE(file) << path;
  const std::string golden((std::istreambuf_iterator<char>(file)),
                           std::istreambuf_iterator<char>());
  EXPECT_EQ(to_hex_lines(bytes), golden) << path;
}

TEST(LogFormat, HasTheGoldenBytesOfVersion1) {
  expect_golden("superblock.hex", encoded(some_superblock()));
  expect_golden("segment_header.hex", encoded(some_footer().of));
  expect_golden("footer.hex", encoded(some_footer()));
}

TEST(LogFormat, SuperblockComesBackAsItWas) {
  const Superblock before = some_superblock();
  Bytes area = encoded(before);
  area.resize(kSuperblockAreaBytes.value(), std::byte{0xAB});  // what an older, longer one left
  const auto after = decode_superblock(area);
  ASSERT_TRUE(after.has_value());
  EXPECT_EQ(after->sequence, before.sequence);
  EXPECT_EQ(after->device, before.device);
  EXPECT_EQ(after->owner, before.owner);
  EXPECT_EQ(after->segment_bytes, before.segment_bytes);
  EXPECT_EQ(after->segments, before.segments);
  EXPECT_EQ(after->namespaces, before.namespaces);
}

TEST(LogFormat, SuperblockHoldsAsManyNamespacesAsItsAreaDoes) {
  Superblock full = some_superblock();
  full.namespaces.clear();
  for (std::size_t i = 0; i < kSuperblockNamespacesMax; ++i) {
    NamespaceEpoch next{.digest = {}, .epoch = i};
    next.digest.bytes[0] = static_cast<std::byte>(i >> 8U);
    next.digest.bytes[1] = static_cast<std::byte>(i);
    full.namespaces.push_back(next);
  }
  EXPECT_LE(superblock_bytes(full.namespaces.size()), kSuperblockAreaBytes);
  EXPECT_EQ(decode_superblock(encoded(full))->namespaces, full.namespaces);
  full.namespaces.push_back(row(0xFF, 1));
  Bytes area(superblock_bytes(full.namespaces.size()).value());
  EXPECT_EQ(encode_superblock(full, area).error().code, ErrorCode::kInvalid);
}

TEST(LogFormat, SegmentHeaderAndFooterComeBackAsTheyWere) {
  const SegmentFooter before = some_footer();
  const Bytes page = encoded(before.of);
  const auto header = decode_segment_header(std::span(page).first<4'096>());
  ASSERT_TRUE(header.has_value());
  EXPECT_EQ(header->segment, 3U);
  EXPECT_EQ(header->generation, before.of.generation);
  EXPECT_EQ(header->device, before.of.device);

  const Bytes pages = encoded(before);
  EXPECT_EQ(footer_bytes_of(std::span(pages).last<4'096>()).value(), ByteCount(pages.size()));
  const auto after = decode_footer(pages, 128_MiB);
  ASSERT_TRUE(after.has_value());
  EXPECT_EQ(after->of.generation, before.of.generation);
  EXPECT_EQ(after->sealed_unix_ms, before.sealed_unix_ms);
  EXPECT_EQ(after->namespaces, before.namespaces);
  EXPECT_EQ(after->frames, before.frames);
}

TEST(LogFormat, CallsEveryFlippedBitCorruptOrForeign) {
  const auto expect_refused = [](const Bytes& good, auto decode) {
    for (std::size_t bit = 0; bit < good.size() * 8; ++bit) {
      Bytes bytes = good;
      bytes[bit / 8] ^= static_cast<std::byte>(1U << (bit % 8));
      const auto code = decode(bytes);
      ASSERT_TRUE(code == ErrorCode::kCorrupt || code == ErrorCode::kVersion) << bit;
    }
  };
  const auto code_of = [](const auto& decoded) {
    return decoded ? ErrorCode::kExists : decoded.error().code;
  };
  expect_refused(encoded(some_superblock()),
                 [&](const Bytes& bytes) { return code_of(decode_superblock(bytes)); });
  expect_refused(encoded(some_footer().of), [&](const Bytes& bytes) {
    return code_of(decode_segment_header(std::span(bytes).first<4'096>()));
  });
  expect_refused(encoded(some_footer()),
                 [&](const Bytes& bytes) { return code_of(decode_footer(bytes, 128_MiB)); });
}

TEST(LogFormat, RefusesWhatIsCutShort) {
  const Bytes area = encoded(some_superblock());
  for (const std::size_t bytes : {0UL, 1UL, 4'095UL, 4'096UL, area.size() - 1})
    EXPECT_EQ(decode_superblock(std::span(area).first(bytes)).error().code, ErrorCode::kCorrupt);
  const Bytes pages = encoded(some_footer());
  EXPECT_FALSE(decode_footer(std::span(pages).last(4'096), 128_MiB).has_value());
  EXPECT_FALSE(decode_footer(std::span(pages).first(100), 128_MiB).has_value());
}

TEST(LogFormat, RefusesFramesThatOverlapOrLeaveTheSegment) {
  SegmentFooter footer = some_footer();
  footer.frames[1].page = 257;
  EXPECT_EQ(footer_error(footer), ErrorCode::kInvalid);
  footer = some_footer();
  footer.frames[0].page = 0;
  EXPECT_EQ(footer_error(footer), ErrorCode::kInvalid);
  footer = some_footer();
  footer.frames[1].pages = 1;
  EXPECT_EQ(footer_error(footer), ErrorCode::kInvalid);
  footer = some_footer();
  footer.frames[1].name_space = 2;
  EXPECT_EQ(footer_error(footer), ErrorCode::kInvalid);
  // It would fit a longer segment, so that only the reader knows.
  footer = some_footer();
  footer.frames[1].page = 64 * 256 - 2;
  EXPECT_EQ(decode_footer(encoded(footer), 64_MiB).error().code, ErrorCode::kCorrupt);
  EXPECT_TRUE(decode_footer(encoded(footer), 128_MiB).has_value());
}

TEST(LogFormat, RefusesToEncodeWhatItCouldNotDecode) {
  Bytes area(superblock_bytes(2).value());
  const auto error = [&](auto change) {
    Superblock superblock = some_superblock();
    change(superblock);
    const Status done = encode_superblock(superblock, area);
    return done ? ErrorCode::kExists : done.error().code;
  };
  EXPECT_EQ(error([](Superblock&) {}), ErrorCode::kExists);
  EXPECT_EQ(error([](Superblock& s) { s.sequence = 0; }), ErrorCode::kInvalid);
  EXPECT_EQ(error([](Superblock& s) { s.segments = 0; }), ErrorCode::kInvalid);
  EXPECT_EQ(error([](Superblock& s) { s.segment_bytes = 1_MiB; }), ErrorCode::kInvalid);
  EXPECT_EQ(error([](Superblock& s) { s.segment_bytes = 64_MiB + 1_B; }), ErrorCode::kInvalid);
  EXPECT_EQ(error([](Superblock& s) { s.namespaces[1] = s.namespaces[0]; }), ErrorCode::kInvalid);
  EXPECT_EQ(error([](Superblock& s) { s.namespaces.clear(); }), ErrorCode::kInvalid);
  std::array<std::byte, 4'096> page{};
  EXPECT_EQ(encode_segment_header({}, page).error().code, ErrorCode::kInvalid);
}

TEST(LogFormat, KeysOfDifferentLengthsHaveDifferentHashes) {
  const std::array<std::byte, 32> zeros{};
  const auto digest = [&](std::size_t bytes) {
    return *BlockDigest::from(std::span(zeros).first(bytes));
  };
  const NamespaceDigest name_space{};
  EXPECT_NE(frame_key_hash(name_space, digest(16)), frame_key_hash(name_space, digest(32)));
  EXPECT_EQ(frame_key_hash(name_space, digest(16)), frame_key_hash(name_space, digest(16)));
  NamespaceDigest other{};
  other.bytes[0] = std::byte{1};
  EXPECT_NE(frame_key_hash(name_space, digest(16)), frame_key_hash(other, digest(16)));
}

}  // namespace
}  // namespace cairn::storage
