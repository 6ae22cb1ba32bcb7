#include "base/random.h"
#include "tests/support/seed.h"
#include "tests/transport/wire_samples.h"

#include <gtest/gtest.h>

#include <set>

namespace cairn::wire::testing {
namespace {

constexpr int kRounds = 200;

TEST(Messages, ComeBackAsTheyWereWritten) {
  const std::uint64_t seed = cairn::testing::test_seed();
  SCOPED_TRACE("CAIRN_SEED=" + std::to_string(seed));
  SeededRandom random(seed);
  FrameWriter writer;
  for_each_message([&](auto message_case) {
    SCOPED_TRACE(message_case.name);
    typename decltype(message_case)::Message decoded;  // used again, with what it held before
    for (int round = 0; round < kRounds; ++round) {
      auto fields = Fields::random(random);
      typename decltype(message_case)::Message message;
      fill(fields, message);
      const std::uint64_t id = random.next_u64();
      const auto view = decode_frame(message_case.encode(message, id, writer));
      ASSERT_TRUE(view.has_value()) << view.error().what;
      EXPECT_EQ(view->type, message_case.type);
      EXPECT_EQ(view->request_id, id);
      const Status status = decode(*view, decoded);
      ASSERT_TRUE(status.has_value()) << status.error().what;
      ASSERT_TRUE(is_same(decoded, message)) << "round " << round;
    }
  });
}

TEST(Messages, AreOneForEachKnownTypeButThoseBetweenDaemons) {
  std::set<std::uint16_t> types;
  for_each_message([&](auto message_case) {
    EXPECT_TRUE(types.insert(static_cast<std::uint16_t>(message_case.type)).second);
    EXPECT_TRUE(is_known(static_cast<std::uint16_t>(message_case.type)));
  });
  for (std::uint32_t type = 0; type <= 0xFFFF; ++type) {
    const auto number = static_cast<std::uint16_t>(type);
    const auto as_type = static_cast<MessageType>(type);
    const bool is_reserved = as_type == MessageType::kPull || as_type == MessageType::kPullRelease;
    EXPECT_EQ(types.contains(number), is_known(number) && !is_reserved) << type;
  }
}

TEST(Messages, OfAnotherTypeAreRefused) {
  FrameWriter writer;
  for_each_message([&](auto message_case) {
    auto fields = Fields::counting();
    typename decltype(message_case)::Message message;
    fill(fields, message);
    auto view = decode_frame(message_case.encode(message, 1, writer));
    ASSERT_TRUE(view.has_value());
    view->type = MessageType::kPull;
    const Status status = decode(*view, message);
    ASSERT_FALSE(status.has_value()) << message_case.name;
    EXPECT_EQ(status.error().code, ErrorCode::kCorrupt);
  });
}

TEST(Messages, SkipTlvsTheyDoNotKnow) {
  FrameWriter writer;
  const std::array<std::byte, 3> value{};
  for_each_message([&](auto message_case) {
    if (message_case.type == MessageType::kInlineData) return;  // carries none
    auto fields = Fields::counting();
    typename decltype(message_case)::Message message;
    fill(fields, message);
    message_case.encode(message, 1, writer);
    writer.tlv(0xBEEF, value);
    const auto view = decode_frame(writer.finish());
    ASSERT_TRUE(view.has_value()) << message_case.name;
    typename decltype(message_case)::Message decoded;
    ASSERT_TRUE(decode(*view, decoded).has_value()) << message_case.name;
    EXPECT_TRUE(is_same(decoded, message)) << message_case.name;
  });
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
