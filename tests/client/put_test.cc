#include "tests/client/client_fixture.h"

#include <algorithm>

namespace cairn::client {
namespace {

using wire::MessageType;

class PutTest : public ClientTest {
 protected:
  PutTest() { connect(); }
  std::vector<BlockStatus> put(Blocks& blocks) {
    EXPECT_TRUE(client_->put(blocks.put_request(ns_)).has_value());
    return blocks.statuses();
  }
};

TEST_F(PutTest, PublishesChainsInTheOrderOfTheirKeys) {
  Blocks blocks(1, 300, 1'000);
  EXPECT_EQ(put(blocks), all(300, BlockStatus::kOk));
  EXPECT_EQ(daemon_->published, blocks.digests);
  EXPECT_EQ(daemon_->lent_count(), 0U);
}

TEST_F(PutTest, CarriesTheNextReserveInTheCommit) {
  Blocks blocks(1, 640, 100);
  EXPECT_EQ(put(blocks), all(640, BlockStatus::kOk));
  EXPECT_EQ(daemon_->count(MessageType::kReserve), 2);
  EXPECT_EQ(daemon_->count(MessageType::kCommit), 10);
}

// A lead of 1 MiB, so that copying begins early; a tail of 512 KiB, so that the last commit is
// short.
TEST_F(PutTest, CutsALongRequestIntoALeadTheRestAndATail) {
  Blocks blocks(1, 64, 65'536);
  EXPECT_EQ(put(blocks), all(64, BlockStatus::kOk));
  EXPECT_EQ(daemon_->published, blocks.digests);
  ASSERT_EQ(daemon_->reserves.size(), 2U);
  EXPECT_EQ(daemon_->reserves[0].digests.size(), 16U);
  EXPECT_EQ(daemon_->reserves[1].digests.size(), 40U);
  std::vector<std::size_t> sizes;
  for (const wire::Commit& commit : daemon_->commits)
    sizes.push_back(commit.entries.size());
  EXPECT_EQ(sizes, (std::vector<std::size_t>{16, 40, 8}));
  EXPECT_EQ(daemon_->lent_count(), 0U);
}

TEST_F(PutTest, BlocksAboveTheLeadAreBatchesOfOne) {
  Blocks blocks(1, 3, 1'500'000);
  EXPECT_EQ(put(blocks), all(3, BlockStatus::kOk));
  ASSERT_EQ(daemon_->reserves.size(), 2U);
  EXPECT_EQ(daemon_->reserves[0].digests.size(), 1U);
  EXPECT_EQ(daemon_->reserves[1].digests.size(), 2U);
}

TEST_F(PutTest, AChainIsCutBetweenItsLeadAndTheRest) {
  daemon_->change_reserve = [](wire::ReserveReply& reply) {
    if (reply.grants.size() == 16) {
      reply.grants[15] = {.status = BlockStatus::kBusy, .reason = BusyReason::kFrames};
    }
  };
  Blocks blocks(1, 64, 65'536);
  const auto statuses = put(blocks);
  EXPECT_EQ(statuses[14], BlockStatus::kOk);
  EXPECT_EQ(statuses[15], BlockStatus::kBusy);
  EXPECT_EQ(statuses[16], BlockStatus::kCut);
  EXPECT_EQ(statuses[63], BlockStatus::kCut);
  EXPECT_EQ(daemon_->published.size(), 15U);
  run_for(Milliseconds(1));
  EXPECT_EQ(daemon_->lent_count(), 1U);  // the one that the changed grant kept to itself
}

TEST_F(PutTest, LaterBatchesNameTheirParentPositionAndBranch) {
  Blocks blocks(1, 130, 100);
  auto request = blocks.put_request(ns_);
  request.placement.position = 7;
  request.placement.parent = key(99);
  const auto branch = client_->put(request);
  ASSERT_TRUE(branch.has_value());
  EXPECT_EQ(*branch, key(1));
  ASSERT_EQ(daemon_->reserves.size(), 2U);
  EXPECT_EQ(daemon_->reserves[0].placement.parent, key(99));
  EXPECT_FALSE(daemon_->reserves[0].placement.branch.has_value());
  EXPECT_EQ(daemon_->reserves[1].placement.parent, key(64));
  EXPECT_EQ(daemon_->reserves[1].placement.position, 7U + 64);
  EXPECT_EQ(daemon_->reserves[1].placement.branch, key(1));
  ASSERT_TRUE(daemon_->commits[0].next_placement.has_value());
  EXPECT_EQ(daemon_->commits[0].next_placement->parent, key(128));
}

TEST_F(PutTest, KeysThatAreThereAnswerExists) {
  Blocks blocks(1, 3, 1'000);
  put(blocks);
  EXPECT_EQ(put(blocks), all(3, BlockStatus::kExists));
  EXPECT_EQ(daemon_->count(MessageType::kCommit), 1);
}

TEST_F(PutTest, AnEmptyBlockIsInvalidAndCutsItsChain) {
  Blocks blocks(1, 3, 1'000);
  blocks.sources[1] = {};
  daemon_->change_reserve = [](wire::ReserveReply& reply) {
    reply.grants[2] = {.status = BlockStatus::kCut};
  };
  EXPECT_EQ(put(blocks), (std::vector{BlockStatus::kOk, BlockStatus::kInvalid, BlockStatus::kCut}));
}

TEST_F(PutTest, AChainIsCutAcrossBatches) {
  daemon_->change_reserve = [](wire::ReserveReply& reply) {
    reply.grants[10] = {.status = BlockStatus::kBusy, .reason = BusyReason::kFrames};
  };
  Blocks blocks(1, 200, 100);
  const auto statuses = put(blocks);
  EXPECT_EQ(statuses[9], BlockStatus::kOk);
  EXPECT_EQ(statuses[10], BlockStatus::kBusy);
  EXPECT_EQ(blocks.results[10].reason, BusyReason::kFrames);
  EXPECT_EQ(statuses[11], BlockStatus::kCut);
  EXPECT_EQ(statuses[199], BlockStatus::kCut);
  EXPECT_EQ(daemon_->published.size(), 10U);
}

TEST_F(PutTest, AStatusOfTheWholeRequestIsEveryKeys) {
  daemon_->intercept = [&](auto& socket, const wire::FrameView& frame) {
    if (frame.type != MessageType::kReserve) return false;
    wire::ReserveReply reply;
    reply.context.status = BlockStatus::kWrongNamespace;
    daemon_->reply(socket, reply, frame.request_id);
    return true;
  };
  Blocks blocks(1, 3, 100);
  EXPECT_EQ(put(blocks), all(3, BlockStatus::kWrongNamespace));
}

TEST_F(PutTest, ReservedFramesAreFilledAndCommittedInPlace) {
  Blocks blocks(1, 2, 300'000);
  const std::vector<std::uint32_t> lengths(2, 300'000);
  std::vector<BlockReservation> reservations(2);
  const auto branch = client_->reserve({.name_space = ns_,
                                        .digests = blocks.digests,
                                        .lengths = lengths,
                                        .placement = {},
                                        .reservations = reservations,
                                        .results = blocks.results,
                                        .call = {}});
  ASSERT_TRUE(branch.has_value());
  EXPECT_EQ(*branch, key(1));
  for (std::size_t i = 0; i < 2; ++i) {
    ASSERT_EQ(reservations[i].piece_count, 1U);
    std::ranges::copy(blocks.payloads[i], reservations[i].pieces[0].begin());
  }
  ASSERT_TRUE(client_
                  ->commit({.name_space = ns_,
                            .reservations = reservations,
                            .checksums = {},
                            .results = blocks.results,
                            .call = {}})
                  .has_value());
  EXPECT_EQ(blocks.statuses(), all(2, BlockStatus::kOk));
  ASSERT_TRUE(client_->get(blocks.get_request(ns_)).has_value());
  EXPECT_EQ(blocks.right(), 2U);
}

TEST_F(PutTest, AReservationEndsWithItsCommit) {
  Blocks blocks(1, 1, 100);
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
  const CommitRequest commit{.name_space = ns_,
                             .reservations = reservations,
                             .checksums = {},
                             .results = blocks.results,
                             .call = {}};
  ASSERT_TRUE(client_->commit(commit).has_value());
  EXPECT_EQ(blocks.statuses(), all(1, BlockStatus::kOk));
  ASSERT_TRUE(client_->commit(commit).has_value());
  EXPECT_EQ(blocks.statuses(), all(1, BlockStatus::kInvalid));
}

TEST_F(PutTest, AbortGivesReservationsBack) {
  Blocks blocks(1, 2, 100);
  const std::vector<std::uint32_t> lengths(2, 100);
  std::vector<BlockReservation> reservations(2);
  ASSERT_TRUE(client_
                  ->reserve({.name_space = ns_,
                             .digests = blocks.digests,
                             .lengths = lengths,
                             .placement = {},
                             .reservations = reservations,
                             .results = blocks.results,
                             .call = {}})
                  .has_value());
  client_->abort(reservations);
  run_for(Milliseconds(1));
  EXPECT_EQ(daemon_->aborts.size(), 2U);
  EXPECT_EQ(daemon_->lent_count(), 0U);
}

TEST_F(PutTest, RemovePrefetchAndRetainAnswerEachKey) {
  Blocks blocks(1, 3, 100);
  put(blocks);
  const KeysRequest request{
      .name_space = ns_, .digests = blocks.digests, .results = blocks.results, .call = {}};
  ASSERT_TRUE(client_->prefetch(request).has_value());
  EXPECT_EQ(blocks.statuses(), all(3, BlockStatus::kOk));
  ASSERT_TRUE(client_->retain(request, Milliseconds(100)).has_value());
  EXPECT_EQ(blocks.statuses(), all(3, BlockStatus::kOk));
  ASSERT_TRUE(client_->remove(request).has_value());
  EXPECT_EQ(blocks.statuses(), all(3, BlockStatus::kOk));
  EXPECT_FALSE(daemon_->has(key(1)));
}

TEST_F(PutTest, RequestsThatBreakTheirRulesAreRefused) {
  Blocks blocks(1, 2, 100);
  auto short_results = blocks.put_request(ns_);
  short_results.results = short_results.results.first(1);
  EXPECT_EQ(client_->put(short_results).error().code, ErrorCode::kInvalid);
  auto late = blocks.put_request(ns_);
  late.call.deadline = Milliseconds(-1);
  EXPECT_EQ(client_->put(late).error().code, ErrorCode::kInvalid);
  auto no_key = blocks.put_request(ns_);
  blocks.digests[1] = BlockDigest();
  EXPECT_EQ(client_->put(no_key).error().code, ErrorCode::kInvalid);
  Blocks many(1, 20'000, 1);
  EXPECT_EQ(client_->put(many.put_request(ns_)).error().code, ErrorCode::kTooLarge);
  std::vector<std::uint8_t> tiers(3);
  LookupRequest lookup;
  lookup.name_space = ns_;
  lookup.digests = many.digests;
  lookup.tiers = tiers;
  EXPECT_EQ(client_->lookup(lookup).error().code, ErrorCode::kTooLarge);
  EXPECT_EQ(daemon_->count(MessageType::kReserve), 0);
}

}  // namespace
}  // namespace cairn::client
