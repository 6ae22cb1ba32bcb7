#include "base/random.h"
#include "tests/support/seed.h"
#include "tests/transport/wire_cases.h"
#include "tests/transport/wire_samples.h"

#include <gtest/gtest.h>

#include <array>
#include <set>
#include <string>

namespace cairn::wire::testing {
namespace {

constexpr int kRounds = 200;

TEST(Messages, ComeBackAsTheyWereWritten) {
  const std::uint64_t seed = cairn::testing::test_seed();
  SCOPED_TRACE("CAIRN_SEED=" + std::to_string(seed));
  SeededRandom random(seed);
  for (const MessageCase& message : all_messages()) {
    EXPECT_EQ(message.difference_in_round_trips(random, kRounds), "") << message.name;
  }
}

TEST(Messages, AreOneForEachKnownTypeButThoseBetweenDaemons) {
  std::set<MessageType> types;
  for (const MessageCase& message : all_messages()) {
    EXPECT_TRUE(types.insert(message.type).second) << message.name;
  }
  for (std::uint32_t number = 0; number <= 0xFFFF; ++number) {
    const auto type = static_cast<MessageType>(number);
    const bool is_reserved = type == MessageType::kPull || type == MessageType::kPullRelease;
    EXPECT_EQ(types.contains(type), is_known(static_cast<std::uint16_t>(number)) && !is_reserved)
        << number;
  }
}

TEST(Messages, OfAnotherTypeAreRefused) {
  for (const MessageCase& message : all_messages()) {
    const auto frame = message.sample_frame(1);
    auto view = decode_frame(frame);
    ASSERT_TRUE(view.has_value());
    view->type = MessageType::kPull;
    const auto decoded = message.is_sample(*view);
    ASSERT_FALSE(decoded.has_value()) << message.name;
    EXPECT_EQ(decoded.error().code, ErrorCode::kCorrupt) << message.name;
  }
}

TEST(Messages, SkipTlvsTheyDoNotKnow) {
  const std::array<std::byte, 3> value{};
  for (const MessageCase& message : all_messages()) {
    if (message.type == MessageType::kInlineData) continue;  // carries none
    const auto frame = message.sample_frame(1);
    const auto view = decode_frame(frame);
    ASSERT_TRUE(view.has_value());
    FrameWriter writer;
    writer.begin(message.type, 1);
    writer.bytes(view->body);
    writer.tlv(0xBEEF, value);
    for (auto tlvs = view->tlvs; !tlvs.empty();) {
      const auto tlv = take_tlv(tlvs);
      ASSERT_TRUE(tlv.has_value());
      writer.tlv(tlv->type, tlv->value);
    }
    const auto with_unknown = decode_frame(writer.finish());
    ASSERT_TRUE(with_unknown.has_value()) << message.name;
    const auto is_sample = message.is_sample(*with_unknown);
    ASSERT_TRUE(is_sample.has_value()) << message.name;
    EXPECT_TRUE(*is_sample) << message.name;
  }
}

TEST(Messages, DecodeIntoMemoryThatIsThere) {
  auto fields = Fields::counting();
  Lookup message;
  fill(fields, message);
  message.digests.assign(512, message.digests.front());
  FrameWriter writer;
  encode(message, 1, writer);
  const auto view = decode_frame(writer.finish());
  ASSERT_TRUE(view.has_value());
  Lookup decoded;
  ASSERT_TRUE(decode(*view, decoded).has_value());
  const auto* const digests = decoded.digests.data();
  const auto* const gang = decoded.gang.data();
  ASSERT_TRUE(decode(*view, decoded).has_value());
  EXPECT_EQ(decoded.digests.data(), digests);
  EXPECT_EQ(decoded.gang.data(), gang);
}

}  // namespace
}  // namespace cairn::wire::testing
