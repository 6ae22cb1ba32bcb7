#include "base/random.h"
#include "tests/support/seed.h"
#include "tests/transport/wire_cases.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace cairn::wire::testing {
namespace {

using Bytes = std::vector<std::byte>;

Bytes body_of(const Bytes& frame) {
  const auto view = decode_frame(frame);
  EXPECT_TRUE(view.has_value());
  return {view->body.begin(), view->body.end()};
}

FrameView view_of(const MessageCase& message, const Bytes& body) {
  return {.type = message.type, .request_id = 1, .body = body, .tlvs = {}};
}

// What decodes has one encoding: its own. So nothing is read that is not also checked or kept.
void expect_error_or_same_bytes(const MessageCase& message, const Bytes& body) {
  const auto difference = message.difference_when_encoded_again(view_of(message, body));
  if (difference.has_value()) {
    EXPECT_EQ(*difference, "");
  } else {
    const ErrorCode code = difference.error().code;
    EXPECT_TRUE(code == ErrorCode::kCorrupt || code == ErrorCode::kTooLarge);
  }
}

TEST(HostileFrames, CutAnywhereAreErrors) {
  for (const MessageCase& message : all_messages()) {
    const Bytes frame = message.sample_frame(1);
    for (std::size_t bytes = 0; bytes < frame.size(); ++bytes) {
      EXPECT_FALSE(decode_frame(std::span(frame).first(bytes)).has_value())
          << message.name << " cut to " << bytes;
    }
  }
}

TEST(HostileFrames, WithAByteChangedAreErrorsOrPayload) {
  for (const MessageCase& message : all_messages()) {
    const Bytes frame = message.sample_frame(1);
    for (std::size_t at = 0; at < frame.size(); ++at) {
      Bytes changed = frame;
      changed[at] ^= std::byte{0x5A};
      const bool is_payload =
          message.type == MessageType::kInlineData && at >= kFrameHeaderBytes + kInlineHeadBytes;
      EXPECT_EQ(decode_frame(changed).has_value(), is_payload) << message.name << " at " << at;
    }
  }
}

// The checksum finds accidents; a hostile peer can compute it. From here on it is right.
TEST(HostileBodies, CutAnywhereAreCorrupt) {
  for (const MessageCase& message : all_messages()) {
    const Bytes body = body_of(message.sample_frame(1));
    for (std::size_t bytes = 0; bytes < body.size(); ++bytes) {
      // A copy of its own size lets the address sanitizer see a read past the end.
      const Bytes cut(body.begin(), body.begin() + static_cast<std::ptrdiff_t>(bytes));
      const auto decoded = message.is_sample(view_of(message, cut));
      ASSERT_FALSE(decoded.has_value()) << message.name << " cut to " << bytes;
      EXPECT_EQ(decoded.error().code, ErrorCode::kCorrupt) << message.name;
    }
  }
}

TEST(HostileBodies, WithMoreAtTheEndAreCorrupt) {
  for (const MessageCase& message : all_messages()) {
    Bytes body = body_of(message.sample_frame(1));
    body.push_back(std::byte{0});
    const auto decoded = message.is_sample(view_of(message, body));
    ASSERT_FALSE(decoded.has_value()) << message.name;
    EXPECT_EQ(decoded.error().code, ErrorCode::kCorrupt) << message.name;
  }
}

TEST(HostileBodies, WithAnyByteOfAnyValueAreErrorsOrOtherMessages) {
  constexpr unsigned kValues = 256;
  for (const MessageCase& message : all_messages()) {
    Bytes body = body_of(message.sample_frame(1));
    for (std::size_t at = 0; at < body.size(); ++at) {
      SCOPED_TRACE(std::string(message.name) + " at " + std::to_string(at));
      const std::byte kept = body[at];
      for (unsigned value = 0; value < kValues; ++value) {
        body[at] = static_cast<std::byte>(value);
        expect_error_or_same_bytes(message, body);
      }
      body[at] = kept;
    }
  }
}

TEST(HostileBodies, OfRandomBytesAreErrorsOrOtherMessages) {
  constexpr int kRounds = 2'000;
  constexpr std::uint64_t kChangesMax = 8;
  const std::uint64_t seed = cairn::testing::test_seed();
  SCOPED_TRACE("CAIRN_SEED=" + std::to_string(seed));
  SeededRandom random(seed);
  for (const MessageCase& message : all_messages()) {
    SCOPED_TRACE(message.name);
    const Bytes body = body_of(message.sample_frame(1));
    for (int round = 0; round < kRounds; ++round) {
      Bytes changed = body;
      const std::uint64_t changes = body.empty() ? 0 : 1 + random.below(kChangesMax);
      for (std::uint64_t i = 0; i < changes; ++i) {
        changed[random.below(changed.size())] = static_cast<std::byte>(random.next_u64());
      }
      expect_error_or_same_bytes(message, changed);
    }
  }
}

}  // namespace
}  // namespace cairn::wire::testing
