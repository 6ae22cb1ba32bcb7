#include "transport/wire/frame.h"

#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <cstring>
#include <string>
#include <vector>

namespace cairn::wire {
namespace {

constexpr std::size_t kMagicAt = 0;
constexpr std::size_t kBodyBytesAt = 4;
constexpr std::size_t kFlagsAt = 10;
constexpr std::size_t kTlvBytesAt = 24;
constexpr std::size_t kReservedAt = 28;

std::vector<std::byte> frame_of(MessageType type, std::size_t body_bytes) {
  FrameWriter writer;
  writer.begin(type, 7);
  for (std::size_t i = 0; i < body_bytes; ++i)
    writer.u8(static_cast<std::uint8_t>(i));
  const auto frame = writer.finish();
  return {frame.begin(), frame.end()};
}

template <typename T>
void overwrite(std::vector<std::byte>& frame, std::size_t at, T value) {
  std::memcpy(frame.data() + at, &value, sizeof(value));
}

ErrorCode error_of(const std::vector<std::byte>& frame) {
  const auto view = decode_frame(frame);
  EXPECT_FALSE(view.has_value());
  return view.has_value() ? ErrorCode::kInvalid : view.error().code;
}

TEST(Frame, ComesBackAsItWasWritten) {
  FrameWriter writer;
  writer.begin(MessageType::kStats, 0x1122334455667788);
  writer.u8(1);
  writer.u16(2);
  writer.u32(3);
  writer.u64(4);
  const auto view = decode_frame(writer.finish());
  ASSERT_TRUE(view.has_value()) << view.error().what;
  EXPECT_EQ(view->type, MessageType::kStats);
  EXPECT_EQ(view->request_id, 0x1122334455667788U);
  const std::array<unsigned char, 15> expected = {1, 2, 0, 3, 0, 0, 0, 4};
  ASSERT_EQ(view->body.size(), expected.size());
  EXPECT_EQ(std::memcmp(view->body.data(), expected.data(), expected.size()), 0);
  EXPECT_TRUE(view->tlvs.empty());
}

TEST(Frame, SplitsTheTlvsFromTheBody) {
  const std::array<std::byte, 3> value = {std::byte{1}, std::byte{2}, std::byte{3}};
  FrameWriter writer;
  writer.begin(MessageType::kHello, 1);
  writer.u32(9);
  writer.tlv(5, value);
  writer.tlv(6, {});
  const auto view = decode_frame(writer.finish());
  ASSERT_TRUE(view.has_value());
  EXPECT_EQ(view->body.size(), 4U);
  auto tlvs = view->tlvs;
  const auto first = take_tlv(tlvs);
  ASSERT_TRUE(first.has_value());
  EXPECT_EQ(first->type, 5);
  EXPECT_EQ(first->value.size(), 3U);
  EXPECT_EQ(first->value[2], std::byte{3});
  const auto second = take_tlv(tlvs);
  ASSERT_TRUE(second.has_value());
  EXPECT_EQ(second->type, 6);
  EXPECT_TRUE(second->value.empty());
  EXPECT_TRUE(tlvs.empty());
}

TEST(Frame, RefusesTlvsThatAreNoWholeRun) {
  const std::array<std::byte, 4> value{};
  for (std::size_t cut = 1; cut < kTlvHeaderBytes + value.size(); ++cut) {
    FrameWriter writer;
    writer.begin(MessageType::kPing, 1);
    writer.tlv(5, value);
    std::vector<std::byte> tlv(writer.finish().begin() + kFrameHeaderBytes, writer.finish().end());
    auto rest = std::span<const std::byte>(tlv).first(tlv.size() - cut);
    EXPECT_EQ(take_tlv(rest).error().code, ErrorCode::kCorrupt) << cut;
  }
  std::array<std::byte, kTlvHeaderBytes> reserved{};
  reserved[2] = std::byte{1};
  std::span<const std::byte> rest = reserved;
  EXPECT_EQ(take_tlv(rest).error().code, ErrorCode::kCorrupt);

  // As above inside a frame whose checksum is right.
  FrameWriter writer;
  writer.begin(MessageType::kPing, 1);
  writer.tlv(5, value);
  writer.u8(0);
  const auto view = decode_frame(writer.finish());
  ASSERT_FALSE(view.has_value());
  EXPECT_EQ(view.error().code, ErrorCode::kCorrupt);
}

TEST(Frame, OfAnotherVersionIsNamedSo) {
  auto frame = frame_of(MessageType::kPing, 0);
  overwrite(frame, kMagicAt + 3, '2');
  EXPECT_EQ(error_of(frame), ErrorCode::kVersion);
  overwrite(frame, kMagicAt + 3, 'x');
  EXPECT_EQ(error_of(frame), ErrorCode::kCorrupt);
  overwrite(frame, kMagicAt, std::uint32_t{0x20544547});  // "GET "
  EXPECT_EQ(error_of(frame), ErrorCode::kCorrupt);
}

TEST(Frame, RefusesReservedFieldsThatAreSet) {
  auto flags = frame_of(MessageType::kPing, 0);
  overwrite(flags, kFlagsAt, std::uint16_t{1});
  EXPECT_EQ(error_of(flags), ErrorCode::kCorrupt);
  auto reserved = frame_of(MessageType::kPing, 0);
  overwrite(reserved, kReservedAt, std::uint32_t{1});
  EXPECT_EQ(error_of(reserved), ErrorCode::kCorrupt);
}

TEST(Frame, RefusesLengthsThatDoNotAgree) {
  auto tlvs = frame_of(MessageType::kPing, 4);
  overwrite(tlvs, kTlvBytesAt, std::uint32_t{5});
  EXPECT_EQ(error_of(tlvs), ErrorCode::kCorrupt);
  auto longer = frame_of(MessageType::kPing, 4);
  longer.push_back(std::byte{0});
  EXPECT_EQ(error_of(longer), ErrorCode::kCorrupt);
  auto shorter = frame_of(MessageType::kPing, 4);
  shorter.pop_back();
  EXPECT_EQ(error_of(shorter), ErrorCode::kCorrupt);
  EXPECT_EQ(error_of(std::vector<std::byte>(kFrameHeaderBytes - 1)), ErrorCode::kCorrupt);
  EXPECT_EQ(error_of({}), ErrorCode::kCorrupt);
}

TEST(Frame, IsAtMostAMebibyte) {
  const std::size_t body_max = kMessageBytesMax.value() - kFrameHeaderBytes;
  auto frame = frame_of(MessageType::kStatsReply, body_max);
  EXPECT_EQ(frame.size(), kMessageBytesMax.value());
  EXPECT_TRUE(decode_frame(frame).has_value());
  overwrite(frame, kBodyBytesAt, static_cast<std::uint32_t>(body_max + 1));
  EXPECT_EQ(error_of(frame), ErrorCode::kTooLarge);
  overwrite(frame, kBodyBytesAt, std::uint32_t{0xFFFFFFFF});
  EXPECT_EQ(error_of(frame), ErrorCode::kTooLarge);
  EXPECT_DEATH(frame_of(MessageType::kStatsReply, body_max + 1), "kMessageBytesMax");
}

TEST(Frame, WithAnyBitFlippedIsRefused) {
  const auto frame = frame_of(MessageType::kStats, 100);
  for (std::size_t bit = 0; bit < frame.size() * 8; ++bit) {
    auto flipped = frame;
    flipped[bit / 8] ^= std::byte{1} << (bit % 8);
    EXPECT_FALSE(decode_frame(flipped).has_value()) << "bit " << bit;
  }
}

TEST(Frame, WithAnUnknownTypePassesForTheCallerToDecide) {
  const auto view = decode_frame(frame_of(static_cast<MessageType>(999), 3));
  ASSERT_TRUE(view.has_value());
  EXPECT_FALSE(is_known(static_cast<std::uint16_t>(view->type)));
}

TEST(InlineFrame, ChecksItsHeadAndLeavesThePayloadToTheChunkChecksums) {
  const auto frame = frame_of(MessageType::kInlineData, kInlineHeadBytes + 10);
  for (std::size_t at = 0; at < frame.size(); ++at) {
    auto changed = frame;
    changed[at] ^= std::byte{0x10};
    const bool is_payload = at >= kFrameHeaderBytes + kInlineHeadBytes;
    EXPECT_EQ(decode_frame(changed).has_value(), is_payload) << "byte " << at;
  }
}

TEST(InlineFrame, HasAWholeHeadAndNoTlvs) {
  EXPECT_EQ(error_of(frame_of(MessageType::kInlineData, kInlineHeadBytes - 1)),
            ErrorCode::kCorrupt);
  auto frame = frame_of(MessageType::kInlineData, kInlineHeadBytes + 8);
  overwrite(frame, kTlvBytesAt, std::uint32_t{8});
  EXPECT_EQ(error_of(frame), ErrorCode::kCorrupt);
  FrameWriter writer;
  writer.begin(MessageType::kInlineData, 1);
  EXPECT_DEATH(writer.tlv(1, {}), "kInlineData");
}

TEST(FrameWriter, UsesItsBufferAgain) {
  FrameWriter writer;
  writer.begin(MessageType::kStats, 1);
  writer.append(100'000);
  const auto* const first = writer.finish().data();
  for (std::uint64_t id = 2; id < 5; ++id) {
    writer.begin(MessageType::kStats, id);
    writer.append(100'000);
    EXPECT_EQ(writer.finish().data(), first);
  }
}

TEST(FrameWriter, ForgetsTheTlvsOfTheFrameBefore) {
  FrameWriter writer;
  writer.begin(MessageType::kHello, 1);
  writer.tlv(1, {});
  ASSERT_TRUE(decode_frame(writer.finish()).has_value());
  writer.begin(MessageType::kStats, 2);
  writer.u64(1);
  const auto view = decode_frame(writer.finish());
  ASSERT_TRUE(view.has_value());
  EXPECT_TRUE(view->tlvs.empty());
  EXPECT_EQ(view->body.size(), 8U);
}

TEST(FrameWriter, RefusesToFinishWhatWasNotBegun) {
  FrameWriter writer;
  EXPECT_DEATH(writer.finish(), "kFrameHeaderBytes");
}

TEST(MessageTypes, AreKnownByTheirNumbers) {
  std::size_t known = 0;
  for (std::uint32_t type = 0; type <= 0xFFFF; ++type) {
    known += is_known(static_cast<std::uint16_t>(type)) ? 1 : 0;
  }
  constexpr std::size_t kRequests = 27;
  constexpr std::size_t kReplies = 19;
  EXPECT_EQ(known, kRequests + kReplies);
  EXPECT_TRUE(is_known(static_cast<std::uint16_t>(MessageType::kStatsReply)));
  EXPECT_TRUE(is_known(static_cast<std::uint16_t>(MessageType::kPull)));
  EXPECT_FALSE(is_known(0));
  EXPECT_FALSE(is_known(0x8000));
  EXPECT_FALSE(is_known(0x800C));  // an abort has no reply
  EXPECT_FALSE(is_known(28));
}

}  // namespace
}  // namespace cairn::wire
