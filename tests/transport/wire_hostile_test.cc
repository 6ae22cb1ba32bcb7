#include "base/random.h"
#include "tests/support/seed.h"
#include "tests/transport/wire_samples.h"

#include <gtest/gtest.h>

#include <string>

namespace cairn::wire::testing {
namespace {

template <typename M>
std::vector<std::byte> sample_frame(const MessageCase<M>& message_case) {
  auto fields = Fields::counting();
  M message;
  fill(fields, message);
  FrameWriter writer;
  const auto frame = message_case.encode(message, 1, writer);
  return {frame.begin(), frame.end()};
}

// What decodes has one encoding: its own. So nothing is read that is not also checked or kept.
template <typename M>
void expect_error_or_same_bytes(const MessageCase<M>& message_case, const FrameView& view) {
  M message;
  const Status status = decode(view, message);
  if (!status.has_value()) {
    EXPECT_TRUE(status.error().code == ErrorCode::kCorrupt ||
                status.error().code == ErrorCode::kTooLarge);
    return;
  }
  FrameWriter writer;
  const auto again = decode_frame(message_case.encode(message, view.request_id, writer));
  ASSERT_TRUE(again.has_value());
  EXPECT_TRUE(std::ranges::equal(again->body, view.body));
}

TEST(HostileFrames, CutAnywhereAreErrors) {
  for_each_message([](auto message_case) {
    const auto frame = sample_frame(message_case);
    for (std::size_t bytes = 0; bytes < frame.size(); ++bytes) {
      EXPECT_FALSE(decode_frame(std::span(frame).first(bytes)).has_value())
          << message_case.name << " cut to " << bytes;
    }
  });
}

TEST(HostileFrames, WithAByteChangedAreErrorsOrPayload) {
  for_each_message([](auto message_case) {
    const auto frame = sample_frame(message_case);
    for (std::size_t at = 0; at < frame.size(); ++at) {
      auto changed = frame;
      changed[at] ^= std::byte{0x5A};
      const bool is_payload = message_case.type == MessageType::kInlineData &&
                              at >= kFrameHeaderBytes + kInlineHeadBytes;
      EXPECT_EQ(decode_frame(changed).has_value(), is_payload) << message_case.name << " at " << at;
    }
  });
}

// The checksum finds accidents; a hostile peer can compute it. From here on it is right.
TEST(HostileBodies, CutAnywhereAreCorrupt) {
  for_each_message([](auto message_case) {
    const auto frame = sample_frame(message_case);
    const auto view = decode_frame(frame);
    ASSERT_TRUE(view.has_value());
    for (std::size_t bytes = 0; bytes < view->body.size(); ++bytes) {
      // A copy of its own size lets the address sanitizer see a read past the end.
      const std::vector<std::byte> body(view->body.begin(),
                                        view->body.begin() + static_cast<std::ptrdiff_t>(bytes));
      FrameView cut = *view;
      cut.body = body;
      typename decltype(message_case)::Message message;
      const Status status = decode(cut, message);
      ASSERT_FALSE(status.has_value()) << message_case.name << " cut to " << bytes;
      EXPECT_EQ(status.error().code, ErrorCode::kCorrupt) << message_case.name;
    }
  });
}

TEST(HostileBodies, WithMoreAtTheEndAreCorrupt) {
  for_each_message([](auto message_case) {
    const auto frame = sample_frame(message_case);
    const auto view = decode_frame(frame);
    ASSERT_TRUE(view.has_value());
    std::vector<std::byte> body(view->body.begin(), view->body.end());
    body.push_back(std::byte{0});
    FrameView longer = *view;
    longer.body = body;
    typename decltype(message_case)::Message message;
    const Status status = decode(longer, message);
    ASSERT_FALSE(status.has_value()) << message_case.name;
    EXPECT_EQ(status.error().code, ErrorCode::kCorrupt) << message_case.name;
  });
}

TEST(HostileBodies, WithAnyByteOfAnyValueAreErrorsOrOtherMessages) {
  for_each_message([](auto message_case) {
    const auto frame = sample_frame(message_case);
    const auto view = decode_frame(frame);
    ASSERT_TRUE(view.has_value());
    std::vector<std::byte> body(view->body.begin(), view->body.end());
    FrameView changed = *view;
    changed.body = body;
    for (std::size_t at = 0; at < body.size(); ++at) {
      SCOPED_TRACE(std::string(message_case.name) + " at " + std::to_string(at));
      const std::byte kept = body[at];
      for (const unsigned value : {0x00U, 0x01U, 0x02U, 0x03U, 0x20U, 0x21U, 0x7FU, 0x80U, 0xFFU}) {
        body[at] = static_cast<std::byte>(value);
        expect_error_or_same_bytes(message_case, changed);
      }
      body[at] = kept;
    }
  });
}

TEST(HostileBodies, OfRandomBytesAreErrorsOrOtherMessages) {
  constexpr int kRounds = 2'000;
  const std::uint64_t seed = cairn::testing::test_seed();
  SCOPED_TRACE("CAIRN_SEED=" + std::to_string(seed));
  SeededRandom random(seed);
  for_each_message([&](auto message_case) {
    SCOPED_TRACE(message_case.name);
    const auto frame = sample_frame(message_case);
    const auto view = decode_frame(frame);
    ASSERT_TRUE(view.has_value());
    for (int round = 0; round < kRounds; ++round) {
      std::vector<std::byte> body(view->body.begin(), view->body.end());
      const std::uint64_t changes = body.empty() ? 0 : 1 + random.below(8);
      for (std::uint64_t i = 0; i < changes; ++i) {
        body[random.below(body.size())] = static_cast<std::byte>(random.next_u64());
      }
      FrameView changed = *view;
      changed.body = body;
      expect_error_or_same_bytes(message_case, changed);
    }
  });
}

}  // namespace
}  // namespace cairn::wire::testing
