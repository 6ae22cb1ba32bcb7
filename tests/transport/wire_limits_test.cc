#include "base/checksum.h"
#include "tests/transport/wire_samples.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <string>

namespace cairn::wire::testing {
namespace {

constexpr std::size_t kContextBytes = 40;
constexpr std::size_t kReplyContextBytes = 4;

BlockDigest digest(std::size_t width) {
  const std::vector<std::byte> bytes(width, std::byte{0xD1});
  return BlockDigest::from(bytes).value_or(BlockDigest{});
}

template <typename M>
bool is_same(const M& left, const M& right) {
  return left == right;
}
bool is_same(const InlineData& left, const InlineData& right) {
  return left.item == right.item && left.offset == right.offset &&
         std::ranges::equal(left.bytes, right.bytes);
}

template <typename M>
M sample() {
  auto fields = Fields::counting();
  M message;
  fill(fields, message);
  return message;
}
// Its bytes would end with the fields.
template <>
InlineData sample<InlineData>() {
  static constexpr std::array<std::byte, 3> kPayload = {std::byte{1}, std::byte{2}, std::byte{3}};
  return {.item = 1, .offset = 2, .bytes = kPayload};
}

template <typename M>
std::size_t frame_bytes(const M& message) {
  FrameWriter writer;
  encode(message, 1, writer);
  return writer.finish().size();
}

template <typename M>
void expect_round_trip(const M& message) {
  FrameWriter writer;
  encode(message, 1, writer);
  const auto view = decode_frame(writer.finish());
  ASSERT_TRUE(view.has_value());
  M decoded;
  const Status status = decode(*view, decoded);
  ASSERT_TRUE(status.has_value()) << status.error().what;
  EXPECT_TRUE(is_same(decoded, message));
}

// decode() of `message` with a number of its body overwritten. kInvalid stands for no error.
template <typename M, typename T>
ErrorCode error_with(const M& message, std::size_t at, T value) {
  FrameWriter writer;
  encode(message, 1, writer);
  auto view = decode_frame(writer.finish());
  EXPECT_TRUE(view.has_value());
  std::vector<std::byte> body(view->body.begin(), view->body.end());
  EXPECT_LE(at + sizeof(value), body.size());
  std::memcpy(body.data() + at, &value, sizeof(value));
  view->body = body;
  M decoded;
  const Status status = decode(*view, decoded);
  return status.has_value() ? ErrorCode::kInvalid : status.error().code;
}

TEST(Limits, TheLongestLookupFitsAFrame) {
  auto lookup = sample<Lookup>();
  lookup.gang.resize(kGangMax);
  lookup.digests.assign(kLookupKeysMax, digest(32));
  expect_round_trip(lookup);
}

TEST(Limits, TheLongestGetReplyFitsAFrameAndItsLengthIsForetold) {
  GetReply reply;
  reply.extents.assign(kBatchExtentsMax, {.slab = 1, .generation = 2, .offset = 3, .bytes = 4});
  reply.checksums.assign(kBatchChecksumsMax, 5);
  reply.attributes.assign(kBatchAttributeBytesMax, std::byte{6});
  for (std::uint32_t i = 0; i < kBatchKeysMax; ++i) {
    const bool has_attributes = i < kAttributeKeysMax;
    reply.grants.push_back({.status = BlockStatus::kOk,
                            .extent_count = kExtentsMax,
                            .checksum_count = kChunksMax,
                            .length = static_cast<std::uint32_t>(kBlockBytesMax.value()),
                            .extent_first = i * kExtentsMax,
                            .checksum_first = i * kChunksMax,
                            .attribute_first = has_attributes ? i * kAttributeBytesMax : 0,
                            .attribute_bytes = has_attributes ? kAttributeBytesMax : 0});
  }
  expect_round_trip(reply);
  EXPECT_EQ(frame_bytes(reply),
            get_reply_bytes(
                kBatchKeysMax, kBatchExtentsMax, kBatchChecksumsMax, kBatchAttributeBytesMax));
}

TEST(Limits, TheLongestCommitAndPutInlineFitAFrame) {
  auto commit = sample<Commit>();
  commit.entries.resize(kBatchKeysMax);
  commit.checksums.resize(kBatchChecksumsMax);
  commit.attributes.resize(kBatchAttributeBytesMax);
  commit.next_digests.assign(kBatchKeysMax, digest(32));
  commit.next_lengths.resize(kBatchKeysMax);
  expect_round_trip(commit);

  auto put = sample<PutInline>();
  put.digests.assign(kBatchKeysMax, digest(32));
  put.lengths.assign(kBatchKeysMax, static_cast<std::uint32_t>(kBlockBytesMax.value()));
  put.checksums.resize(kBatchChecksumsMax);
  put.attribute_bytes.assign(kBatchKeysMax, kBatchAttributeBytesMax / kBatchKeysMax);
  put.attributes.resize(kBatchAttributeBytesMax);
  expect_round_trip(put);
}

TEST(Limits, TheLongestOfTheOthersFitAFrame) {
  auto list = sample<ListReply>();
  list.digests.assign(kListKeysMax, digest(32));
  expect_round_trip(list);
  auto resume = sample<Resume>();
  resume.held.resize(kSessionLendsMax);
  expect_round_trip(resume);
  auto release = sample<Release>();
  release.entries.resize(kLendsPerMessageMax);
  expect_round_trip(release);
  auto open = sample<NamespaceOpen>();
  open.fingerprint.assign(kFingerprintBytesMax, 'x');
  expect_round_trip(open);
  auto data = sample<InlineData>();
  const std::vector<std::byte> bytes(kInlineBytesMax.value());
  data.bytes = bytes;
  expect_round_trip(data);

  JsonReply json;
  json.json.assign(kJsonBytesMax, 'x');
  FrameWriter writer;
  encode(json, MessageType::kStatsReply, 1, writer);
  EXPECT_EQ(writer.finish().size(), kMessageBytesMax.value());
}

TEST(Limits, ACountBeyondItsLimitIsTooLarge) {
  EXPECT_EQ(error_with(sample<Lookup>(), kContextBytes + 12, kLookupKeysMax + 1),
            ErrorCode::kTooLarge);
  EXPECT_EQ(error_with(sample<Lookup>(), kContextBytes + 8, kGangMax + 1), ErrorCode::kTooLarge);
  EXPECT_EQ(error_with(sample<Get>(), kContextBytes + 4, kAttributeKeysMax + 1),
            ErrorCode::kTooLarge);
  EXPECT_EQ(error_with(sample<GetReply>(), kReplyContextBytes, kBatchKeysMax + 1),
            ErrorCode::kTooLarge);
  EXPECT_EQ(error_with(sample<GetReply>(), kReplyContextBytes + 4, kBatchExtentsMax + 1),
            ErrorCode::kTooLarge);
  EXPECT_EQ(error_with(sample<GetReply>(), kReplyContextBytes + 8, kBatchChecksumsMax + 1),
            ErrorCode::kTooLarge);
  EXPECT_EQ(error_with(sample<Resume>(), 24, kSessionLendsMax + 1), ErrorCode::kTooLarge);
  EXPECT_EQ(error_with(sample<Release>(), 0, kLendsPerMessageMax + 1), ErrorCode::kTooLarge);
  EXPECT_EQ(error_with(sample<Abort>(), 0, std::uint32_t{0xFFFFFFFF}), ErrorCode::kTooLarge);
  EXPECT_EQ(error_with(sample<NamespaceOpen>(), kContextBytes, std::uint32_t{65'537}),
            ErrorCode::kTooLarge);
  EXPECT_EQ(error_with(sample<InlineData>(), 8, std::uint32_t{256 * 1'024 + 1}),
            ErrorCode::kTooLarge);
}

TEST(Limits, ACountWithinItsLimitButBeyondTheBodyIsCorrupt) {
  EXPECT_EQ(error_with(sample<Lookup>(), kContextBytes + 12, kLookupKeysMax), ErrorCode::kCorrupt);
  EXPECT_EQ(error_with(sample<GetReply>(), kReplyContextBytes, kBatchKeysMax), ErrorCode::kCorrupt);
  EXPECT_EQ(error_with(sample<Release>(), 0, kLendsPerMessageMax), ErrorCode::kCorrupt);
  EXPECT_EQ(error_with(sample<ListReply>(), kReplyContextBytes, kListKeysMax), ErrorCode::kCorrupt);
}

TEST(Limits, EncodeChecksWhatDecodeRefuses) {
  FrameWriter writer;
  auto lookup = sample<Lookup>();
  lookup.digests.assign(kLookupKeysMax + 1, digest(32));
  EXPECT_DEATH(encode(lookup, 1, writer), "lookup keys");
  auto get = sample<Get>();
  get.digests.assign(kAttributeKeysMax + 1, digest(32));
  EXPECT_DEATH(encode(get, 1, writer), "get keys");
  auto reply = sample<GetReply>();
  reply.grants[0].extent_first = 3;
  EXPECT_DEATH(encode(reply, 1, writer), "grant");
  auto data = sample<InlineData>();
  data.bytes = {};
  EXPECT_DEATH(encode(data, 1, writer), "inline bytes");
  auto hello = sample<Hello>();
  hello.token.assign(kTokenBytesMax + 1, 'x');
  EXPECT_DEATH(encode(hello, 1, writer), "kTokenBytesMax");
  auto commit = sample<Commit>();
  commit.next_placement.reset();
  EXPECT_DEATH(encode(commit, 1, writer), "must be empty");
  EXPECT_DEATH(encode(JsonReply{}, MessageType::kGetReply, 1, writer), "carries_json");
  EXPECT_DEATH(encode(StatusesReply{}, MessageType::kStatReply, 1, writer), "carries_statuses");
}

TEST(Digests, OfOneMessageHaveOneLength) {
  FrameWriter writer;
  auto lookup = sample<Lookup>();
  lookup.digests = {digest(32), digest(16)};
  EXPECT_DEATH(encode(lookup, 1, writer), "digests of one length");
  lookup.digests = {BlockDigest{}};
  EXPECT_DEATH(encode(lookup, 1, writer), "digests of one length");
}

TEST(Digests, OfAnyLengthComeBack) {
  for (std::size_t width = 1; width <= kBlockDigestBytesMax; ++width) {
    auto lookup = sample<Lookup>();
    lookup.digests = {digest(width), digest(width), digest(width)};
    expect_round_trip(lookup);
  }
}

TEST(Digests, HaveALengthExactlyWhenThereAreAny) {
  constexpr std::size_t kWidthAt = kContextBytes + 4;
  Remove none;
  expect_round_trip(none);
  EXPECT_EQ(error_with(none, kWidthAt, std::uint8_t{16}), ErrorCode::kCorrupt);
  EXPECT_EQ(error_with(sample<Remove>(), kWidthAt, std::uint8_t{0}), ErrorCode::kCorrupt);
  EXPECT_EQ(error_with(sample<Remove>(), kWidthAt, std::uint8_t{33}), ErrorCode::kCorrupt);
  EXPECT_EQ(error_with(sample<Stat>(), kContextBytes, std::uint8_t{0}), ErrorCode::kCorrupt);
}

TEST(Numbers, ThatNameNothingAreCorrupt) {
  constexpr std::size_t kPriorityAt = 36;
  EXPECT_EQ(error_with(sample<Usage>(), kPriorityAt, std::uint8_t{3}), ErrorCode::kCorrupt);
  EXPECT_EQ(error_with(sample<JoinReply>(), 0, std::uint8_t{kBlockStatusCount}),
            ErrorCode::kCorrupt);
  EXPECT_EQ(error_with(sample<JoinReply>(), 1, std::uint8_t{kBusyReasonCount}),
            ErrorCode::kCorrupt);
  EXPECT_EQ(error_with(sample<JoinReply>(), 2, std::uint8_t{1}), ErrorCode::kCorrupt);
  EXPECT_EQ(error_with(sample<Lookup>(), kContextBytes, std::uint8_t{2}), ErrorCode::kCorrupt);
  EXPECT_EQ(error_with(sample<Get>(), kContextBytes, std::uint8_t{2}), ErrorCode::kCorrupt);
  EXPECT_EQ(error_with(sample<Get>(), kContextBytes + 1, std::uint8_t{2}), ErrorCode::kCorrupt);
  EXPECT_EQ(error_with(sample<Hint>(), kContextBytes, std::uint8_t{3}), ErrorCode::kCorrupt);
  EXPECT_EQ(error_with(sample<SlabNotice>(), 16, std::uint8_t{3}), ErrorCode::kCorrupt);
  EXPECT_EQ(error_with(sample<ResumeReply>(), kReplyContextBytes + 4, std::uint8_t{2}),
            ErrorCode::kCorrupt);
  EXPECT_EQ(error_with(sample<LookupReply>(), kReplyContextBytes, kLookupKeysMax + 1),
            ErrorCode::kCorrupt);
  EXPECT_EQ(error_with(sample<Hello>(), 2, std::uint16_t{0}), ErrorCode::kCorrupt);
  CommitReply committed;
  committed.statuses = {BlockStatus::kOk};
  EXPECT_EQ(error_with(committed, kReplyContextBytes + 4, std::uint8_t{kBlockStatusCount}),
            ErrorCode::kCorrupt);
}

// Byte offsets in a Grant and in a WireExtent of a reply that has one of each.
TEST(Grants, PointInsideTheArraysOfTheirReply) {
  GetReply reply;
  reply.grants = {{.status = BlockStatus::kOk, .extent_count = 1, .length = 9}};
  reply.extents = {{.slab = 1, .generation = 1, .offset = 4'096, .bytes = 8'192}};
  constexpr std::size_t kGrantAt = kReplyContextBytes + 16;
  constexpr std::size_t kExtentAt = kGrantAt + sizeof(Grant);
  expect_round_trip(reply);
  const auto error_at = [&](std::size_t at, auto value) { return error_with(reply, at, value); };
  EXPECT_EQ(error_at(kGrantAt, std::uint8_t{kBlockStatusCount}), ErrorCode::kCorrupt);
  EXPECT_EQ(error_at(kGrantAt + 1, std::uint8_t{kBusyReasonCount}), ErrorCode::kCorrupt);
  EXPECT_EQ(error_at(kGrantAt + 2, std::uint8_t{2}), ErrorCode::kCorrupt);
  EXPECT_EQ(error_at(kGrantAt + 3, std::uint8_t{1}), ErrorCode::kCorrupt);
  EXPECT_EQ(error_at(kGrantAt + 4, std::uint32_t{(1U << 24U) + 1}), ErrorCode::kCorrupt);
  EXPECT_EQ(error_at(kGrantAt + 16, std::uint32_t{0xFFFFFFFF}), ErrorCode::kCorrupt);
  EXPECT_EQ(error_at(kGrantAt + 20, std::uint32_t{1}), ErrorCode::kCorrupt);
  EXPECT_EQ(error_at(kGrantAt + 28, std::uint32_t{1}), ErrorCode::kCorrupt);
  EXPECT_EQ(error_at(kExtentAt + 16, std::uint64_t{0}), ErrorCode::kCorrupt);
  EXPECT_EQ(error_at(kExtentAt + 16, ~std::uint64_t{0}), ErrorCode::kCorrupt);
  EXPECT_EQ(error_at(kExtentAt + 8, ~std::uint64_t{0}), ErrorCode::kCorrupt);
}

TEST(Grants, HaveAtMostFourExtentsAndSixtyFourChecksums) {
  FrameWriter writer;
  GetReply reply;
  reply.extents.assign(5, {.slab = 1, .generation = 1, .offset = 0, .bytes = 1});
  reply.checksums.assign(65, 0);
  reply.attributes.assign(kAttributeBytesMax + 1, std::byte{0});
  reply.grants = {{.extent_count = 5}};
  EXPECT_DEATH(encode(reply, 1, writer), "grant");
  reply.grants = {{.checksum_count = 65}};
  EXPECT_DEATH(encode(reply, 1, writer), "grant");
  reply.grants = {{.attribute_bytes = kAttributeBytesMax + 1}};
  EXPECT_DEATH(encode(reply, 1, writer), "grant");
}

TEST(Grants, OfAReserveHaveNoChecksums) {
  FrameWriter writer;
  ReserveReply reply;
  reply.grants = {{.checksum_count = 1}};
  EXPECT_DEATH(encode(reply, 1, writer), "grant");
}

TEST(CommitEntries, PointInsideTheArraysOfTheirCommit) {
  Commit commit;
  commit.entries = {{.lend = 1, .checksum_count = 1, .attribute_bytes = 2}};
  commit.checksums = {5};
  commit.attributes = {std::byte{1}, std::byte{2}};
  constexpr std::size_t kEntryAt = kContextBytes + 12;
  expect_round_trip(commit);
  for (const std::size_t field : {8U, 12U, 16U, 20U}) {
    EXPECT_EQ(error_with(commit, kEntryAt + field, std::uint32_t{3}), ErrorCode::kCorrupt);
    EXPECT_EQ(error_with(commit, kEntryAt + field, std::uint32_t{0xFFFFFFFF}), ErrorCode::kCorrupt);
  }
}

TEST(PutInline, HasTheChecksumsOfItsLengthsAndTheAttributesOfItsKeys) {
  FrameWriter writer;
  PutInline put;
  put.digests = {digest(32)};
  put.lengths = {static_cast<std::uint32_t>(kChunkBytes.value()) + 1};
  put.checksums = {1, 2};
  expect_round_trip(put);
  put.checksums = {1};
  EXPECT_DEATH(encode(put, 1, writer), "checksums of lengths");
  put.checksums = {1, 2};
  put.attribute_bytes = {1, 1};
  put.attributes.resize(2);
  EXPECT_DEATH(encode(put, 1, writer), "attribute runs");
  put.attribute_bytes = {1};
  EXPECT_DEATH(encode(put, 1, writer), "attribute bytes");
  put.attribute_bytes = {kAttributeBytesMax + 1};
  put.attributes.resize(kAttributeBytesMax + 1);
  EXPECT_DEATH(encode(put, 1, writer), "attribute bytes");
}

TEST(Lengths, BeyondABlockAreCarriedForTheDaemonToAnswer) {
  auto reserve = sample<Reserve>();
  reserve.lengths = {0, 0xFFFFFFFF};
  expect_round_trip(reserve);
}

TEST(InlineData, EndsInsideABlock) {
  EXPECT_EQ(error_with(sample<InlineData>(), 0, kBatchKeysMax), ErrorCode::kCorrupt);
  EXPECT_EQ(error_with(sample<InlineData>(), 4, std::uint32_t{1U << 24U}), ErrorCode::kCorrupt);
  EXPECT_EQ(error_with(sample<InlineData>(), 4, std::uint32_t{0xFFFFFFFF}), ErrorCode::kCorrupt);
  EXPECT_EQ(error_with(sample<InlineData>(), 8, std::uint32_t{0}), ErrorCode::kCorrupt);
}

TEST(Texts, ForPeopleAreCutBetweenCharacters) {
  NamespaceOpenReply reply;
  reply.message = std::string(kTextBytesMax - 1, 'x') + "\u00e9";
  FrameWriter writer;
  encode(reply, 1, writer);
  auto view = decode_frame(writer.finish());
  ASSERT_TRUE(view.has_value());
  NamespaceOpenReply decoded;
  ASSERT_TRUE(decode(*view, decoded).has_value());
  EXPECT_EQ(decoded.message, std::string(kTextBytesMax - 1, 'x'));

  Hello hello;
  hello.client_name.assign(kClientNameBytesMax + 5, 'n');
  encode(hello, 1, writer);
  view = decode_frame(writer.finish());
  ASSERT_TRUE(view.has_value());
  ASSERT_TRUE(decode(*view, hello).has_value());
  EXPECT_EQ(hello.client_name, std::string(kClientNameBytesMax, 'n'));
}

TEST(HelloTlvs, ComeOnceAndWithinTheirLimits) {
  const auto error_with_tlv = [](std::uint16_t type, std::size_t bytes) {
    FrameWriter writer;
    Hello hello;
    hello.client_name = "name";
    encode(hello, 1, writer);
    writer.tlv(type, std::vector<std::byte>(bytes));
    const auto view = decode_frame(writer.finish());
    EXPECT_TRUE(view.has_value());
    const Status status = decode(*view, hello);
    return status.has_value() ? ErrorCode::kInvalid : status.error().code;
  };
  EXPECT_EQ(error_with_tlv(kTlvClientName, 1), ErrorCode::kCorrupt);
  EXPECT_EQ(error_with_tlv(kTlvToken, kTokenBytesMax + 1), ErrorCode::kTooLarge);
  EXPECT_EQ(error_with_tlv(kTlvToken, kTokenBytesMax), ErrorCode::kInvalid);
}

TEST(HelloTlvs, ThatAreNoWholeRunAreCorrupt) {
  Hello hello;
  FrameWriter writer;
  encode(hello, 1, writer);
  auto view = decode_frame(writer.finish());
  ASSERT_TRUE(view.has_value());
  const std::array<std::byte, 3> broken{};
  view->tlvs = broken;
  EXPECT_EQ(decode(*view, hello).error().code, ErrorCode::kCorrupt);
}

TEST(Statuses, AndReasonsThatNameNothingAreCorrupt) {
  constexpr std::size_t kStatusAt = kReplyContextBytes + 4;
  StatusesReply reply;
  reply.statuses = {BlockStatus::kOk};
  FrameWriter writer;
  encode(reply, MessageType::kRemoveReply, 1, writer);
  auto view = decode_frame(writer.finish());
  ASSERT_TRUE(view.has_value());
  for (const std::size_t at : {kStatusAt, kStatusAt + 1}) {
    std::vector<std::byte> body(view->body.begin(), view->body.end());
    body[at] = std::byte{0xFF};
    FrameView changed = *view;
    changed.body = body;
    EXPECT_EQ(decode(changed, reply).error().code, ErrorCode::kCorrupt) << at;
  }
}

TEST(Statuses, WithoutReasonsHaveNone) {
  StatusesReply reply;
  reply.statuses = {BlockStatus::kOk, BlockStatus::kMiss};
  FrameWriter writer;
  encode(reply, MessageType::kRemoveReply, 1, writer);
  const auto view = decode_frame(writer.finish());
  ASSERT_TRUE(view.has_value());
  StatusesReply decoded;
  ASSERT_TRUE(decode(*view, decoded).has_value());
  EXPECT_EQ(decoded.statuses, reply.statuses);
  EXPECT_EQ(decoded.reasons, std::vector<BusyReason>(2, BusyReason::kNone));
}

}  // namespace
}  // namespace cairn::wire::testing
