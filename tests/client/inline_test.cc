// Sessions that do not map the pool: bytes in the socket.
#include "tests/client/client_fixture.h"

#include <algorithm>

namespace cairn::client {
namespace {

using wire::MessageType;

class InlineTest : public ClientTest {
 protected:
  InlineTest() {
    ClientOptions options;
    options.map_pool = false;
    connect(options);
  }
  void put(Blocks& blocks) {
    ASSERT_TRUE(client_->put(blocks.put_request(ns_)).has_value());
    ASSERT_EQ(blocks.statuses(), all(blocks.digests.size(), BlockStatus::kOk));
  }
};

TEST_F(InlineTest, SaysThatNothingIsMapped) {
  EXPECT_FALSE(daemon_->hellos.back().wants_mapping);
  EXPECT_FALSE(client_->server_info().is_mapped);
}

TEST_F(InlineTest, PutsAndGetsThroughTheSocket) {
  Blocks blocks(1, 70, 300'000);
  put(blocks);
  EXPECT_EQ(daemon_->published, blocks.digests);
  ASSERT_TRUE(client_->get(blocks.get_request(ns_)).has_value());
  EXPECT_EQ(blocks.right(), 70U);
  EXPECT_EQ(slabs_.mapped, 0);
}

TEST_F(InlineTest, FindsAWrongByte) {
  Blocks blocks(1, 2, 600'000);
  put(blocks);
  daemon_->byte_of(key(1), 300'000) ^= std::byte{1};
  ASSERT_TRUE(client_->get(blocks.get_request(ns_)).has_value());
  EXPECT_EQ(blocks.statuses(), (std::vector{BlockStatus::kCorrupt, BlockStatus::kCut}));
}

TEST_F(InlineTest, AShortTargetIsTooLargeAndOthersArrive) {
  Blocks blocks(1, 2, 1'000);
  put(blocks);
  blocks.targets[0] = blocks.targets[0].first(10);
  auto request = blocks.get_request(ns_);
  request.is_chain = false;
  ASSERT_TRUE(client_->get(request).has_value());
  EXPECT_EQ(blocks.statuses(), (std::vector{BlockStatus::kTooLarge, BlockStatus::kOk}));
  EXPECT_EQ(blocks.buffers[1], blocks.payloads[1]);
}

TEST_F(InlineTest, InPlaceCallsAreForbidden) {
  Blocks blocks(1, 1, 100);
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
  EXPECT_EQ(blocks.statuses(), all(1, BlockStatus::kForbidden));
  const std::vector<std::uint32_t> lengths(1, 100);
  std::vector<BlockReservation> reservations(1);
  ASSERT_TRUE(client_
                  ->reserve({.name_space = ns_,
                             .digests = blocks.digests,
                             .lengths = lengths,
                             .placement = {},
                             .reservations = reservations,
                             .results = blocks.results,
                             .call = {}})
                  .has_value());
  EXPECT_EQ(blocks.statuses(), all(1, BlockStatus::kForbidden));
}

TEST_F(InlineTest, DataOutOfOrderEndsTheSocket) {
  Blocks blocks(1, 1, 1'000);
  put(blocks);
  daemon_->intercept = [&](auto& socket, const wire::FrameView& frame) {
    if (frame.type != MessageType::kGet) return false;
    wire::GetReply reply;
    reply.grants.push_back({.status = BlockStatus::kOk, .checksum_count = 1, .length = 1'000});
    reply.checksums.push_back(0);
    daemon_->reply(socket, reply, frame.request_id);
    const std::vector<std::byte> bytes(10);
    daemon_->reply(
        socket, wire::InlineData{.item = 0, .offset = 5, .bytes = bytes}, frame.request_id);
    return true;
  };
  ASSERT_TRUE(client_->get(blocks.get_request(ns_)).has_value());
  EXPECT_EQ(blocks.statuses(), all(1, BlockStatus::kPeerLost));
}

TEST_F(InlineTest, DataThatComesLateIsIgnored) {
  Blocks blocks(1, 2, 900'000);
  put(blocks);
  auto queue = client_->make_queue();
  const auto ticket = (*queue)->submit(blocks.get_request(ns_));
  ASSERT_TRUE(ticket.has_value());
  run_for(Milliseconds(1));
  (*queue)->poll({});
  (*queue)->cancel(*ticket);
  finish(**queue, *ticket);
  blocks.buffers = {};
  run_for(Milliseconds(50));
  (*queue)->poll({});
  Blocks again(1, 2, 900'000);
  finish(**queue, *(*queue)->submit(again.get_request(ns_)));
  EXPECT_EQ(again.right(), 2U);
  EXPECT_EQ(daemon_->hellos.size(), 1U);
}

}  // namespace
}  // namespace cairn::client
