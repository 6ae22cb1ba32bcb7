// Objects over 16 MiB: parts, their order, and what makes one a miss.
#include "client/object_format.h"
#include "tests/client/client_fixture.h"

#include <algorithm>
#include <string>

namespace cairn::client {
namespace {

constexpr std::size_t kObjectBytes = (std::size_t{33} << 20U) + 5;

class ObjectTest : public ClientTest {
 protected:
  void put(Blocks& blocks) {
    ASSERT_TRUE(client_->put(blocks.put_request(ns_)).has_value());
    ASSERT_EQ(blocks.statuses(), all(blocks.digests.size(), BlockStatus::kOk));
    ASSERT_EQ(blocks.results[0].length, blocks.payloads[0].size());
  }
  ObjectInfo object() { return find_object(daemon_->block(key(1)).attributes); }
};

TEST_F(ObjectTest, PartsAreCommittedLastToFirstAndPartZeroLast) {
  connect();
  Blocks blocks(1, 1, kObjectBytes);
  put(blocks);
  const ObjectInfo info = object();
  EXPECT_EQ(info.length, kObjectBytes);
  EXPECT_EQ(info.parts, 3U);
  EXPECT_EQ(
      daemon_->published,
      (std::vector{part_digest(key(1), info.body, 2), part_digest(key(1), info.body, 1), key(1)}));
  ASSERT_TRUE(client_->get(blocks.get_request(ns_)).has_value());
  EXPECT_EQ(blocks.statuses(), all(1, BlockStatus::kOk));
  EXPECT_EQ(blocks.results[0].length, kObjectBytes);
  EXPECT_EQ(blocks.right(), 1U);
}

TEST_F(ObjectTest, InlineObjectsAreTheSame) {
  ClientOptions options;
  options.server = "127.0.0.1:7000";
  connect(options);
  Blocks blocks(1, 1, kObjectBytes);
  put(blocks);
  ASSERT_TRUE(client_->get(blocks.get_request(ns_)).has_value());
  EXPECT_EQ(blocks.right(), 1U);
}

TEST_F(ObjectTest, AMissingPartMakesAMissAndTheObjectIsRemoved) {
  connect();
  Blocks blocks(1, 1, kObjectBytes);
  put(blocks);
  daemon_->forget(part_digest(key(1), object().body, 2));
  ASSERT_TRUE(client_->get(blocks.get_request(ns_)).has_value());
  EXPECT_EQ(blocks.statuses(), all(1, BlockStatus::kMiss));
  EXPECT_EQ(daemon_->removed, std::vector{key(1)});
  put(blocks);
}

TEST_F(ObjectTest, PartsOfAnotherBodyAreNotMixedIn) {
  connect();
  Blocks blocks(1, 1, kObjectBytes);
  put(blocks);
  const ObjectInfo other = make_object(kObjectBytes, object().body + 1);
  const auto attributes = encode_object(other);
  daemon_->block(key(1)).attributes.assign(attributes.begin(), attributes.end());
  ASSERT_TRUE(client_->get(blocks.get_request(ns_)).has_value());
  EXPECT_EQ(blocks.statuses(), all(1, BlockStatus::kMiss));
}

TEST_F(ObjectTest, APartThatFailsItsCheckIsCorrupt) {
  connect();
  Blocks blocks(1, 1, kObjectBytes);
  put(blocks);
  daemon_->byte_of(part_digest(key(1), object().body, 1), 77) ^= std::byte{1};
  ASSERT_TRUE(client_->get(blocks.get_request(ns_)).has_value());
  EXPECT_EQ(blocks.statuses(), all(1, BlockStatus::kCorrupt));
  EXPECT_TRUE(daemon_->removed.empty());
}

TEST_F(ObjectTest, AnObjectThatIsThereIsNotSentAgain) {
  connect();
  Blocks blocks(1, 1, kObjectBytes);
  put(blocks);
  const std::size_t before = daemon_->published.size();
  ASSERT_TRUE(client_->put(blocks.put_request(ns_)).has_value());
  EXPECT_EQ(blocks.statuses(), all(1, BlockStatus::kExists));
  EXPECT_EQ(daemon_->published.size(), before);
}

TEST_F(ObjectTest, PartZeroAloneIsNeverPublished) {
  connect();
  daemon_->change_reserve = [](wire::ReserveReply& reply) {
    reply.grants[0] = {.status = BlockStatus::kBusy, .reason = BusyReason::kFrames};
  };
  Blocks blocks(1, 1, kObjectBytes);
  ASSERT_TRUE(client_->put(blocks.put_request(ns_)).has_value());
  EXPECT_EQ(blocks.statuses(), all(1, BlockStatus::kBusy));
  EXPECT_EQ(blocks.results[0].reason, BusyReason::kFrames);
  EXPECT_FALSE(daemon_->has(key(1)));
}

TEST_F(ObjectTest, ATargetShorterThanTheObjectIsTooLarge) {
  connect();
  Blocks blocks(1, 1, kObjectBytes);
  put(blocks);
  blocks.targets[0] = blocks.targets[0].first(kObjectBytes - 1);
  ASSERT_TRUE(client_->get(blocks.get_request(ns_)).has_value());
  EXPECT_EQ(blocks.statuses(), all(1, BlockStatus::kTooLarge));
  EXPECT_EQ(blocks.results[0].length, kObjectBytes);
  EXPECT_EQ(blocks.buffers[0], std::vector<std::byte>(kObjectBytes));
}

TEST_F(ObjectTest, AViewOfAnObjectIsTooLarge) {
  connect();
  Blocks blocks(1, 1, kObjectBytes);
  put(blocks);
  std::vector<BlockView> views(1);
  ASSERT_TRUE(client_
                  ->get_views({.name_space = ns_,
                               .digests = blocks.digests,
                               .is_chain = true,
                               .verify = {},
                               .views = views,
                               .results = blocks.results,
                               .call = {}})
                  .has_value());
  EXPECT_EQ(blocks.statuses(), all(1, BlockStatus::kTooLarge));
  run_for(Milliseconds(1));
  EXPECT_EQ(daemon_->lent_count(), 0U);
}

TEST_F(ObjectTest, EndsByTheDeadlineBetweenItsParts) {
  connect();
  Blocks blocks(1, 1, kObjectBytes);
  daemon_->intercept = [&](auto&, const wire::FrameView& frame) {
    return frame.type == wire::MessageType::kCommit;
  };
  auto request = blocks.put_request(ns_);
  request.call.deadline = Milliseconds(500);
  const MonotonicTime begin = clock_.now();
  ASSERT_TRUE(client_->put(request).has_value());
  EXPECT_EQ(blocks.statuses(), all(1, BlockStatus::kTimeout));
  EXPECT_LE(clock_.now() - begin, Milliseconds(510));
}

TEST(ObjectFormat, PartDigestsAreThoseOfTheDocuments) {
  const auto digest = block_digest_from_hex("000102030405060708090a0b0c0d0e0f");
  ASSERT_TRUE(digest.has_value());
  // printf the bytes of "digest || cairn.part || LE64 body || LE32 part" to sha256sum.
  const BlockDigest part = part_digest(*digest, 0x1122334455667788, 3);
  EXPECT_EQ(part.size(), 16U);
  EXPECT_EQ(to_hex(part.bytes()), "20f13260f0aadea675a869af9586e96e");
}

TEST(ObjectFormat, AttributesSurviveTheirTrip) {
  const ObjectInfo object = make_object(kObjectBytes, 0xFEDCBA9876543210);
  EXPECT_EQ(find_object(encode_object(object)), object);
  std::vector<std::byte> run(4 + 3);
  run[0] = std::byte{9};
  run[2] = std::byte{3};
  const auto bytes = encode_object(object);
  run.insert(run.end(), bytes.begin(), bytes.end());
  EXPECT_EQ(find_object(run), object);
  run.pop_back();
  EXPECT_EQ(find_object(run), ObjectInfo{});
}

TEST(ObjectFormat, AttributesThatContradictThemselvesAreNone) {
  ObjectInfo object = make_object(kObjectBytes, 1);
  object.parts = 2;
  EXPECT_EQ(find_object(encode_object(object)), ObjectInfo{});
  object = make_object(kObjectBytes, 1);
  object.length = 1;
  EXPECT_EQ(find_object(encode_object(object)), ObjectInfo{});
}

}  // namespace
}  // namespace cairn::client
