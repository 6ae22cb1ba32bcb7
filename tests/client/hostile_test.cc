// Replies that cannot be: the socket is given up, the keys end, nothing is read or written outside
// the mapping.
#include "tests/client/client_fixture.h"

#include <algorithm>
#include <functional>

namespace cairn::client {
namespace {

using wire::MessageType;

class HostileTest : public ClientTest {
 protected:
  // Small enough for one reply.
  HostileTest() {
    connect();
    blocks_ = std::make_unique<Blocks>(1, 3, 300'000);
    EXPECT_TRUE(client_->put(blocks_->put_request(ns_)).has_value());
  }
  // Every reply to a get is changed so; the keys must end as lost, twice asked.
  void expect_refused(std::function<void(wire::GetReply&)> change) {
    daemon_->change_get = std::move(change);
    const std::size_t hellos = daemon_->hellos.size();
    ASSERT_TRUE(client_->get(blocks_->get_request(ns_)).has_value());
    EXPECT_EQ(blocks_->statuses(), all(3, BlockStatus::kPeerLost));
    daemon_->change_get = {};
    ASSERT_TRUE(client_->get(blocks_->get_request(ns_)).has_value());
    EXPECT_EQ(blocks_->statuses(), all(3, BlockStatus::kOk));
    EXPECT_EQ(daemon_->hellos.size(), hellos + 2);
    run_for(Milliseconds(1));
    EXPECT_EQ(daemon_->lent_count(), 0U);
  }

  std::unique_ptr<Blocks> blocks_;
};

TEST_F(HostileTest, ExtentsMustLieInAKnownSlab) {
  expect_refused([](wire::GetReply& reply) { reply.extents[1].slab = 5; });
  expect_refused([](wire::GetReply& reply) { reply.extents[1].slab = 1U << 31U; });
  expect_refused([](wire::GetReply& reply) { reply.extents[1].generation = 2; });
  expect_refused(
      [](wire::GetReply& reply) { reply.extents[1].offset = ScriptedDaemon::kSlabBytes - 4096; });
  expect_refused([](wire::GetReply& reply) { reply.extents[1].offset = 1ULL << 62U; });
}

TEST_F(HostileTest, ExtentsMustFitTheirBlock) {
  expect_refused([](wire::GetReply& reply) { reply.extents[1].bytes = 8192; });
  expect_refused([](wire::GetReply& reply) { reply.extents[1].bytes = 4096; });
  expect_refused([](wire::GetReply& reply) { reply.grants[1].extent_count = 0; });
  expect_refused([](wire::GetReply& reply) { reply.grants[0].extent_count = 2; });
}

TEST_F(HostileTest, GrantsMustAgreeWithThemselves) {
  expect_refused([](wire::GetReply& reply) { reply.grants.pop_back(); });
  expect_refused([](wire::GetReply& reply) { reply.grants[2].lend = reply.grants[0].lend; });
  expect_refused([](wire::GetReply& reply) { reply.grants[2].lend = 0; });
  expect_refused([](wire::GetReply& reply) { reply.grants[2].status = BlockStatus::kMiss; });
  expect_refused([](wire::GetReply& reply) { reply.grants[2].checksum_count = 1; });
  expect_refused([](wire::GetReply& reply) { reply.grants[2].length = 0; });
}

TEST_F(HostileTest, ReservationsMustLieInAKnownSlab) {
  daemon_->change_reserve = [](wire::ReserveReply& reply) { reply.extents[0].slab = 9; };
  Blocks blocks(100, 2, 1'000);
  ASSERT_TRUE(client_->put(blocks.put_request(ns_)).has_value());
  EXPECT_EQ(blocks.statuses(), all(2, BlockStatus::kPeerLost));
}

TEST_F(HostileTest, CommitsAnswerEveryEntry) {
  daemon_->change_commit = [](wire::CommitReply& reply) { reply.statuses.pop_back(); };
  Blocks blocks(100, 2, 1'000);
  ASSERT_TRUE(client_->put(blocks.put_request(ns_)).has_value());
  EXPECT_EQ(blocks.statuses(), all(2, BlockStatus::kPeerLost));
}

TEST_F(HostileTest, ARepliesTypeAndIdMustBeAsked) {
  for (const bool is_known : {false, true}) {
    daemon_->intercept = [&](auto& socket, const wire::FrameView& frame) {
      if (frame.type != MessageType::kGet) return false;
      daemon_->reply(socket, wire::PurgeReply{}, is_known ? frame.request_id : 999'999);
      return true;
    };
    ASSERT_TRUE(client_->get(blocks_->get_request(ns_)).has_value());
    EXPECT_EQ(blocks_->statuses(), all(3, BlockStatus::kPeerLost));
  }
}

TEST_F(HostileTest, BytesThatAreNoFrameEndTheSocket) {
  int gets = 0;
  daemon_->intercept = [&](auto&, const wire::FrameView& frame) {
    return frame.type == MessageType::kGet && ++gets == 1;
  };
  auto queue = client_->make_queue();
  const auto ticket = (*queue)->submit(blocks_->get_request(ns_));
  ASSERT_TRUE(ticket.has_value());
  run_for(Milliseconds(1));
  // A frame whose type is not one of ours.
  wire::FrameWriter writer;
  wire::encode(wire::Ping{}, 1, writer);
  const auto frame = writer.finish();
  std::vector<std::byte> garbage(frame.begin(), frame.end());
  garbage[0] ^= std::byte{1};
  ASSERT_TRUE(daemon_->sockets().back()->channel->send(garbage).has_value());
  finish(**queue, *ticket);
  EXPECT_EQ(blocks_->statuses(), all(3, BlockStatus::kOk));
  EXPECT_EQ(gets, 2);
  EXPECT_EQ(daemon_->hellos.size(), 2U);
}

TEST_F(HostileTest, ASlabThatCannotBeMappedCostsItsKeysOnly) {
  client_.reset();
  slabs_.refuses = true;
  connect();
  ASSERT_TRUE(client_->get(blocks_->get_request(ns_)).has_value());
  EXPECT_EQ(blocks_->statuses(),
            (std::vector{BlockStatus::kPeerLost, BlockStatus::kPeerLost, BlockStatus::kPeerLost}));
  ASSERT_TRUE(client_->ping().has_value());
  run_for(Milliseconds(1));
  EXPECT_EQ(daemon_->lent_count(), 0U);
  EXPECT_EQ(daemon_->hellos.size(), 2U);
}

}  // namespace
}  // namespace cairn::client
