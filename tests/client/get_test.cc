#include "tests/client/client_fixture.h"

#include <algorithm>

namespace cairn::client {
namespace {

using wire::MessageType;

class GetTest : public ClientTest {
 protected:
  GetTest() { connect(); }
  void put(Blocks& blocks) {
    ASSERT_TRUE(client_->put(blocks.put_request(ns_)).has_value());
    ASSERT_EQ(blocks.statuses(), all(blocks.digests.size(), BlockStatus::kOk));
    blocks.results.assign(blocks.results.size(), KeyResult{});
  }
};

TEST_F(GetTest, CopiesWhatWasPut) {
  Blocks blocks(1, 3, 700'000);
  put(blocks);
  ASSERT_TRUE(client_->get(blocks.get_request(ns_)).has_value());
  EXPECT_EQ(blocks.statuses(), all(3, BlockStatus::kOk));
  EXPECT_EQ(blocks.right(), 3U);
  EXPECT_EQ(blocks.results[2].length, 700'000U);
  run_for(Milliseconds(1));
  EXPECT_EQ(daemon_->lent_count(), 0U);
}

TEST_F(GetTest, ReadsFramesOfSeveralExtents) {
  daemon_->fragment_chunks = 1;
  Blocks blocks(1, 2, 1'500'000);
  put(blocks);
  ASSERT_TRUE(client_->get(blocks.get_request(ns_)).has_value());
  EXPECT_EQ(blocks.right(), 2U);
  ASSERT_EQ(daemon_->block(key(1)).extents.size(), kExtentsMax);
}

TEST_F(GetTest, AsksInBatchesOfSixtyFour) {
  Blocks blocks(1, 200, 100);
  put(blocks);
  ASSERT_TRUE(client_->get(blocks.get_request(ns_)).has_value());
  EXPECT_EQ(blocks.right(), 200U);
  std::vector<std::size_t> sizes;
  for (const wire::Get& get : daemon_->gets)
    sizes.push_back(get.digests.size());
  EXPECT_EQ(sizes, (std::vector<std::size_t>{64, 64, 64, 8}));
}

// The daemon finds the rest while the lead of 1 MiB is copied.
TEST_F(GetTest, AsksForALeadAndTheRestAtOnce) {
  Blocks blocks(1, 64, 65'536);
  put(blocks);
  ASSERT_TRUE(client_->get(blocks.get_request(ns_)).has_value());
  EXPECT_EQ(blocks.right(), 64U);
  ASSERT_EQ(daemon_->gets.size(), 2U);
  EXPECT_EQ(daemon_->gets[0].digests.size(), 16U);
  EXPECT_EQ(daemon_->gets[1].digests.size(), 48U);
  run_for(Milliseconds(1));
  EXPECT_EQ(daemon_->lent_count(), 0U);
}

TEST_F(GetTest, CutsAChainInItsLeadAndKeepsNothingOfTheRest) {
  Blocks blocks(1, 64, 65'536);
  put(blocks);
  daemon_->forget(key(3));
  ASSERT_TRUE(client_->get(blocks.get_request(ns_)).has_value());
  auto expected = all(64, BlockStatus::kCut);
  std::fill_n(expected.begin(), 2, BlockStatus::kOk);
  expected[2] = BlockStatus::kMiss;
  EXPECT_EQ(blocks.statuses(), expected);
  run_for(Milliseconds(1));
  EXPECT_EQ(daemon_->lent_count(), 0U);
}

TEST_F(GetTest, CutsAChainAcrossBatches) {
  Blocks blocks(1, 200, 100);
  put(blocks);
  daemon_->forget(key(71));
  ASSERT_TRUE(client_->get(blocks.get_request(ns_)).has_value());
  auto expected = all(200, BlockStatus::kCut);
  std::fill_n(expected.begin(), 70, BlockStatus::kOk);
  expected[70] = BlockStatus::kMiss;
  EXPECT_EQ(blocks.statuses(), expected);
  run_for(Milliseconds(1));
  EXPECT_EQ(daemon_->lent_count(), 0U);
}

TEST_F(GetTest, ReadsASetPastItsMisses) {
  Blocks blocks(1, 3, 100);
  put(blocks);
  daemon_->forget(key(2));
  auto request = blocks.get_request(ns_);
  request.is_chain = false;
  ASSERT_TRUE(client_->get(request).has_value());
  EXPECT_EQ(blocks.statuses(),
            (std::vector{BlockStatus::kOk, BlockStatus::kMiss, BlockStatus::kOk}));
}

TEST_F(GetTest, WritesNothingIntoATargetThatIsTooShort) {
  Blocks blocks(1, 1, 1'000);
  put(blocks);
  blocks.targets[0] = blocks.targets[0].first(999);
  ASSERT_TRUE(client_->get(blocks.get_request(ns_)).has_value());
  EXPECT_EQ(blocks.statuses(), all(1, BlockStatus::kTooLarge));
  EXPECT_EQ(blocks.results[0].length, 1'000U);
  EXPECT_EQ(blocks.buffers[0], std::vector<std::byte>(1'000));
}

TEST_F(GetTest, FindsAWrongByteAndTellsTheDaemon) {
  Blocks blocks(1, 3, 600'000);
  put(blocks);
  daemon_->byte_of(key(2), 599'999) ^= std::byte{1};
  ASSERT_TRUE(client_->get(blocks.get_request(ns_)).has_value());
  EXPECT_EQ(blocks.statuses(),
            (std::vector{BlockStatus::kOk, BlockStatus::kCorrupt, BlockStatus::kCut}));
  run_for(Milliseconds(1));
  const auto reported =
      std::ranges::count(daemon_->releases, true, &wire::ReleaseEntry::found_corrupt);
  EXPECT_EQ(reported, 1);
  EXPECT_EQ(daemon_->lent_count(), 0U);
}

TEST_F(GetTest, DeliversUncheckedBytesWhenToldTo) {
  Blocks blocks(1, 1, 1'000);
  put(blocks);
  daemon_->byte_of(key(1), 0) ^= std::byte{1};
  auto request = blocks.get_request(ns_);
  request.verify = Verify::kNever;
  ASSERT_TRUE(client_->get(request).has_value());
  EXPECT_EQ(blocks.statuses(), all(1, BlockStatus::kOk));
}

TEST_F(GetTest, ChecksOneBlockInSixtyFourOfASample) {
  Blocks blocks(1, 64, 100);
  put(blocks);
  for (const BlockDigest& digest : blocks.digests)
    daemon_->byte_of(digest, 0) ^= std::byte{1};
  auto request = blocks.get_request(ns_);
  request.verify = Verify::kSample;
  request.is_chain = false;
  ASSERT_TRUE(client_->get(request).has_value());
  const auto statuses = blocks.statuses();
  EXPECT_EQ(std::ranges::count(statuses, BlockStatus::kCorrupt), 1);
  EXPECT_EQ(std::ranges::count(statuses, BlockStatus::kOk), 63);
}

TEST_F(GetTest, LendsViewsUntilTheyAreReleased) {
  Blocks blocks(1, 2, 300'000);
  put(blocks);
  std::vector<BlockView> views(2);
  const GetViewsRequest request{.name_space = ns_,
                                .digests = blocks.digests,
                                .is_chain = true,
                                .verify = {},
                                .views = views,
                                .results = blocks.results,
                                .call = {}};
  ASSERT_TRUE(client_->get_views(request).has_value());
  ASSERT_EQ(blocks.statuses(), all(2, BlockStatus::kOk));
  EXPECT_TRUE(std::ranges::equal(views[1].pieces[0], blocks.payloads[1]));
  run_for(Milliseconds(1));
  EXPECT_EQ(daemon_->lent_count(), 2U);
  client_->release(views);
  client_->release(views);
  run_for(Milliseconds(1));
  EXPECT_EQ(daemon_->lent_count(), 0U);
  EXPECT_EQ(daemon_->releases.size(), 2U);
}

TEST_F(GetTest, ViewsAreCheckedInPlace) {
  Blocks blocks(1, 2, 300'000);
  put(blocks);
  daemon_->byte_of(key(1), 299'000) ^= std::byte{1};
  std::vector<BlockView> views(2);
  ASSERT_TRUE(client_
                  ->get_views({.name_space = ns_,
                               .digests = blocks.digests,
                               .is_chain = true,
                               .verify = {},
                               .views = views,
                               .results = blocks.results,
                               .call = {}})
                  .has_value());
  EXPECT_EQ(blocks.statuses(), (std::vector{BlockStatus::kCorrupt, BlockStatus::kCut}));
  EXPECT_EQ(views[0].lend, 0U);
  EXPECT_EQ(views[1].lend, 0U);
  run_for(Milliseconds(1));
  EXPECT_EQ(daemon_->lent_count(), 0U);
}

TEST_F(GetTest, KeepsTwoBatchesLentAtMost) {
  Blocks blocks(1, 400, 64);
  put(blocks);
  auto queue = client_->make_queue();
  ASSERT_TRUE(queue.has_value());
  std::size_t most = 0;
  daemon_->change_get = [&](wire::GetReply&) { most = std::max(most, daemon_->lent_count()); };
  Blocks other(1, 400, 64);
  const auto first = (*queue)->submit(blocks.get_request(ns_));
  const auto second = (*queue)->submit(other.get_request(ns_));
  ASSERT_TRUE(first.has_value() && second.has_value());
  finish(**queue, *first);
  finish(**queue, *second);
  EXPECT_EQ(blocks.right() + other.right(), 800U);
  EXPECT_LE(most, 128U);
}

TEST_F(GetTest, LookupsAnswerARunAndASet) {
  Blocks blocks(1, 4, 100);
  put(blocks);
  daemon_->forget(key(3));
  std::vector<std::uint8_t> tiers(4, 9);
  LookupRequest request;
  request.name_space = ns_;
  request.digests = blocks.digests;
  request.tiers = tiers;
  const auto run = client_->lookup(request);
  ASSERT_TRUE(run.has_value());
  EXPECT_EQ(run->run, 2U);
  EXPECT_EQ(tiers, (std::vector<std::uint8_t>{2, 2, 0, 0}));
  request.is_run = false;
  const auto set = client_->lookup(request);
  ASSERT_TRUE(set.has_value());
  EXPECT_EQ(tiers, (std::vector<std::uint8_t>{2, 2, 0, 2}));
}

TEST_F(GetTest, AnEmptyRequestEndsAtOnce) {
  Blocks blocks(1, 0, 0);
  ASSERT_TRUE(client_->get(blocks.get_request(ns_)).has_value());
  EXPECT_EQ(daemon_->count(MessageType::kGet), 0);
}

}  // namespace
}  // namespace cairn::client
