// Blocks through a mapping: put, get, lookup, release, and what they answer.
#include "tests/server/node_fixture.h"

#include <algorithm>
#include <cstring>

namespace cairn::server {
namespace {

class NodeBlocks : public NodeTest {
 protected:
  static std::vector<BlockStatus> statuses(const std::vector<wire::Grant>& grants) {
    std::vector<BlockStatus> out;
    out.reserve(grants.size());
    for (const wire::Grant& grant : grants)
      out.push_back(grant.status);
    return out;
  }
};

using enum BlockStatus;

TEST_F(NodeBlocks, GivesBackTheBytesThatWerePut) {
  const auto client = join_in();
  const auto digests = keys(1, 3);
  const auto put_statuses = put(*client, digests, 300'000, 7);
  EXPECT_EQ(put_statuses, std::vector<BlockStatus>(3, kOk));
  EXPECT_EQ(lent_bytes(), 0U);
  const wire::GetReply reply = get(*client, digests);
  ASSERT_EQ(reply.grants.size(), 3U);
  for (std::size_t i = 0; i < 3; ++i) {
    const wire::Grant& grant = reply.grants[i];
    EXPECT_EQ(grant.status, kOk);
    EXPECT_NE(grant.lend, 0U);
    const auto expected = body(7 + i, 300'000);
    EXPECT_EQ(bytes_of(*client, reply, i), expected);
    const auto sums =
        std::span(reply.checksums).subspan(grant.checksum_first, grant.checksum_count);
    EXPECT_TRUE(std::ranges::equal(sums, checksums_of(expected)));
  }
  EXPECT_EQ(lent_bytes(), 3 * round_up(300'000 + 4'096, 4'096));
  release(*client, reply);
  run_for(Milliseconds(5));
  EXPECT_EQ(lent_bytes(), 0U);
}

TEST_F(NodeBlocks, ShowsABlockOnlyAfterItsCommit) {
  const auto client = join_in();
  const auto digests = keys(1, 1);
  const wire::ReserveReply reserved = reserve(*client, digests, 1'000);
  EXPECT_EQ(lookup(*client, digests).run, 0U);
  EXPECT_EQ(get(*client, digests).grants.at(0).status, kMiss);
  const std::vector<std::vector<std::byte>> payloads = {body(1, 1'000)};
  EXPECT_EQ(commit(*client, reserved, payloads).statuses, std::vector{kOk});
  EXPECT_EQ(lookup(*client, digests).run, 1U);
}

TEST_F(NodeBlocks, CutsAChainBehindItsFirstMissAndASetNot) {
  const auto client = join_in();
  const std::vector<BlockDigest> there = {key(1), key(3)};
  put(*client, there, 1'000);
  const auto digests = keys(1, 3);
  EXPECT_EQ(statuses(get(*client, digests, true).grants), (std::vector{kOk, kMiss, kCut}));
  EXPECT_EQ(statuses(get(*client, digests, false).grants), (std::vector{kOk, kMiss, kOk}));
  EXPECT_EQ(metrics().get_blocks_asked.load(), 6U);
  EXPECT_EQ(metrics().get_blocks_usable.load(), 3U);
  EXPECT_EQ(count(Operation::kGet, kCut), 1U);
}

TEST_F(NodeBlocks, LooksUpRunsAndSets) {
  const auto client = join_in();
  put(*client, std::vector{key(1), key(2), key(4)}, 1'000);
  const auto digests = keys(1, 5);
  const wire::LookupReply run = lookup(*client, digests);
  EXPECT_EQ(run.run, 2U);
  EXPECT_EQ(run.tiers, (std::vector<std::uint8_t>{2, 2}));
  EXPECT_GT(run.load_us, 0U);
  const wire::LookupReply set = lookup(*client, digests, wire::LookupKind::kSet);
  EXPECT_EQ(set.run, 2U);
  EXPECT_EQ(set.tiers, (std::vector<std::uint8_t>{2, 2, 0, 2, 0}));
  EXPECT_EQ(lent_bytes(), 0U);
  EXPECT_EQ(metrics().lookup_blocks_asked.load(), 10U);
  EXPECT_EQ(metrics().lookup_blocks_usable.load(), 5U);
}

TEST_F(NodeBlocks, AnswersAGangWithWhatAllMembersHave) {
  const auto client = join_in();
  put(*client, std::vector{key(1), key(2), key(3)}, 1'000);
  const wire::NamespaceRef first{client->context().name_space, client->context().epoch};
  client->open(R"({"model":"m","rank":1})");
  put(*client, std::vector{key(1), key(2), key(4)}, 1'000);
  wire::Lookup request;
  request.context = client->context();
  request.gang = {first};
  request.digests = keys(1, 4);
  const auto run = client->ask<wire::LookupReply>(request);
  EXPECT_EQ(run.run, 2U);
  EXPECT_EQ(run.tiers.size(), 2U);
  request.kind = wire::LookupKind::kSet;
  const auto set = client->ask<wire::LookupReply>(request);
  EXPECT_EQ(set.tiers, (std::vector<std::uint8_t>{2, 2, 0, 0}));
  request.gang.push_back({first.digest, first.epoch + 1});
  EXPECT_EQ(client->ask<wire::LookupReply>(request).context.status, kWrongNamespace);
}

TEST_F(NodeBlocks, HoldsWhatALookupFindsAndSilentlyNoMoreThanTheBudget) {
  const auto client = join_in();
  // 24 MiB; the budget of retention is a fifth of 64 MiB.
  const auto digests = keys(1, 24);
  put(*client, digests, 1'000'000);
  wire::Lookup request;
  request.context = client->context();
  request.hold_ms = 1'000;
  request.digests = digests;
  EXPECT_EQ(client->ask<wire::LookupReply>(request).run, 24U);
  const ByteCount retained = daemon().store().stats().retained_bytes;
  EXPECT_GT(retained, 10_MiB);
  EXPECT_LE(retained, 13_MiB);
}

TEST_F(NodeBlocks, AnswersExistsForAKeyThatIsThere) {
  const auto client = join_in();
  const auto digests = keys(1, 2);
  put(*client, digests, 1'000, 1);
  EXPECT_EQ(put(*client, digests, 1'000, 50), std::vector(2, kExists));
  EXPECT_EQ(bytes_of(*client, get(*client, digests), 0), body(1, 1'000));
}

TEST_F(NodeBlocks, LetsTheFirstCommitOfAKeyWin) {
  const auto one = join_in();
  const auto two = join_in();
  const auto digests = keys(1, 1);
  const wire::ReserveReply first = reserve(*one, digests, 1'000);
  const wire::ReserveReply second = reserve(*two, digests, 2'000);
  const std::vector<std::vector<std::byte>> bodies = {body(2, 2'000)};
  EXPECT_EQ(commit(*two, second, bodies).statuses, std::vector{kOk});
  const std::vector<std::vector<std::byte>> late = {body(1, 1'000)};
  EXPECT_EQ(commit(*one, first, late).statuses, std::vector{kExists});
  EXPECT_EQ(bytes_of(*one, get(*one, digests), 0), body(2, 2'000));
}

TEST_F(NodeBlocks, LendsNoMoreThanAProcessMayHold) {
  testing::SimDaemonOptions options;
  options.node.lent_max = 24_KiB;
  start(options);
  const auto client = join_in();
  put(*client, std::vector{key(1)}, 8'000);
  put(*client, std::vector{key(2)}, 8'000);
  put(*client, std::vector{key(3)}, 8'000);
  const wire::GetReply set = get(*client, keys(1, 3), false);
  EXPECT_EQ(statuses(set.grants), (std::vector{kOk, kOk, kBusy}));
  EXPECT_EQ(set.grants[2].reason, BusyReason::kLentLimit);
  EXPECT_EQ(lent_bytes(), 2 * 12'288U);
  const wire::ReserveReply reserved = reserve(*client, std::vector{key(3), key(4)}, 8'000, false);
  EXPECT_EQ(statuses(reserved.grants), (std::vector{kExists, kBusy}));
  EXPECT_EQ(reserved.grants[1].reason, BusyReason::kLentLimit);
  EXPECT_GE(metrics().busy[static_cast<std::size_t>(BusyReason::kLentLimit)].load(), 2U);
  release(*client, set);
  EXPECT_EQ(get(*client, keys(3, 1)).grants.at(0).status, kOk);
}

TEST_F(NodeBlocks, CutsAChainOfReservationsWhereTheLimitEndsIt) {
  testing::SimDaemonOptions options;
  options.node.lent_max = 24_KiB;
  start(options);
  const auto client = join_in();
  put(*client, keys(1, 1), 8'000);
  const wire::ReserveReply reserved = reserve(*client, keys(1, 5), 8'000);
  EXPECT_EQ(statuses(reserved.grants), (std::vector{kExists, kOk, kOk, kBusy, kCut}));
  EXPECT_EQ(reserved.branch, key(2));
  EXPECT_EQ(lent_bytes(), 2 * 12'288U);
}

TEST_F(NodeBlocks, RefusesLengthsThatNoBlockMayHave) {
  const auto client = join_in();
  wire::Reserve request;
  request.context = client->context();
  request.placement.is_chain = false;
  request.digests = keys(1, 3);
  request.lengths = {0, 1, static_cast<std::uint32_t>(kBlockBytesMax.value()) + 1};
  const auto reply = client->ask<wire::ReserveReply>(request);
  EXPECT_EQ(statuses(reply.grants), (std::vector{kInvalid, kOk, kTooLarge}));
}

TEST_F(NodeBlocks, ReservesTheNextBatchWithACommit) {
  const auto client = join_in();
  const wire::ReserveReply first = reserve(*client, keys(1, 1), 1'000);
  fill(*client, first, 0, body(1, 1'000));
  wire::Commit request;
  request.context = client->context();
  request.checksums = checksums_of(body(1, 1'000));
  request.entries = {{.lend = first.grants[0].lend, .checksum_count = 1}};
  request.next_placement.emplace();
  request.next_placement->parent = key(1);
  request.next_placement->branch = first.branch;
  request.next_digests = keys(2, 2);
  request.next_lengths = {500, 600};
  const auto reply = client->ask<wire::CommitReply>(request);
  EXPECT_EQ(reply.statuses, std::vector{kOk});
  ASSERT_TRUE(reply.next.has_value());
  EXPECT_EQ(statuses(reply.next->grants), std::vector(2, kOk));
  EXPECT_EQ(reply.next->branch, first.branch);
  const std::vector<std::vector<std::byte>> payloads = {body(2, 500), body(3, 600)};
  EXPECT_EQ(commit(*client, *reply.next, payloads).statuses, std::vector(2, kOk));
  EXPECT_EQ(lookup(*client, keys(1, 3)).run, 3U);
}

TEST_F(NodeBlocks, CarriesAttributes) {
  const auto client = join_in();
  const wire::ReserveReply reserved = reserve(*client, keys(1, 1), 1'000);
  fill(*client, reserved, 0, body(1, 1'000));
  wire::Commit request;
  request.context = client->context();
  request.checksums = checksums_of(body(1, 1'000));
  request.attributes = {std::byte{9}, std::byte{0}, std::byte{1}, std::byte{0}, std::byte{42}};
  request.entries = {{.lend = reserved.grants[0].lend,
                      .checksum_count = 1,
                      .attribute_bytes = static_cast<std::uint32_t>(request.attributes.size())}};
  EXPECT_EQ(client->ask<wire::CommitReply>(request).statuses, std::vector{kOk});
  wire::Get wanted;
  wanted.context = client->context();
  wanted.wants_attributes = true;
  wanted.digests = keys(1, 1);
  EXPECT_EQ(client->ask<wire::GetReply>(wanted).attributes, request.attributes);
  EXPECT_TRUE(get(*client, keys(1, 1)).attributes.empty());
}

TEST_F(NodeBlocks, RefusesACommitOfWhatIsNotItsReservation) {
  const auto owner = join_in();
  const auto stranger = join_in();
  put(*owner, keys(9, 1), 1'000);
  const wire::ReserveReply reserved = reserve(*owner, keys(1, 1), 1'000);
  const wire::GetReply read = get(*stranger, keys(9, 1));
  wire::Commit request;
  request.context = stranger->context();
  request.checksums = {0};
  request.entries = {{.lend = reserved.grants[0].lend, .checksum_count = 1},
                     {.lend = 123'456, .checksum_count = 1},
                     {.lend = read.grants[0].lend, .checksum_count = 1}};
  const auto reply = stranger->ask<wire::CommitReply>(request);
  EXPECT_EQ(reply.statuses, (std::vector{kInvalid, kCancelled, kInvalid}));
  // Both lends are what they were.
  EXPECT_EQ(bytes_of(*stranger, read, 0), body(0, 1'000));
  const std::vector<std::vector<std::byte>> payloads = {body(1, 1'000)};
  EXPECT_EQ(commit(*owner, reserved, payloads).statuses, std::vector{kOk});
}

TEST_F(NodeBlocks, EndsAReservationWhateverItsCommitAnswers) {
  const auto client = join_in();
  const wire::RequestContext own = client->context();
  wire::Commit request;
  const auto try_commit = [&](wire::RequestContext context, std::uint32_t checksums) {
    client->context() = own;
    const wire::ReserveReply reserved = reserve(*client, keys(1, 1), 1'000);
    request.context = context;
    request.checksums.assign(checksums, 0);
    request.entries = {{.lend = reserved.grants.at(0).lend, .checksum_count = checksums}};
    auto reply = client->ask<wire::CommitReply>(request);
    EXPECT_EQ(lent_bytes(), 0U);
    EXPECT_EQ(daemon().store().stats().open_reservations, 0U);
    return reply;
  };
  EXPECT_EQ(try_commit(own, 2).statuses, std::vector{kInvalid});
  wire::RequestContext stale = own;
  stale.epoch -= 1;
  EXPECT_EQ(try_commit(stale, 1).context.status, kWrongNamespace);
  wire::RequestContext late = own;
  late.remaining_ms = 0;
  EXPECT_EQ(try_commit(late, 1).context.status, kInvalid);
  client->open(R"({"model":"other"})");
  EXPECT_EQ(try_commit(client->context(), 1).statuses, std::vector{kInvalid});
  client->context() = own;
  EXPECT_EQ(lookup(*client, keys(1, 1)).run, 0U);
}

TEST_F(NodeBlocks, TakesAReservationBackWhenItIsAborted) {
  const auto client = join_in();
  const wire::ReserveReply reserved = reserve(*client, keys(1, 2), 1'000);
  client->send(wire::Abort{{reserved.grants[0].lend, reserved.grants[1].lend, 77}});
  run_for(Milliseconds(2));
  EXPECT_EQ(lent_bytes(), 0U);
  EXPECT_EQ(daemon().store().stats().open_reservations, 0U);
  EXPECT_EQ(metrics().releases_unknown.load(), 1U);
  const std::vector<std::vector<std::byte>> payloads(2, body(1, 1'000));
  EXPECT_EQ(commit(*client, reserved, payloads).statuses, std::vector(2, kCancelled));
}

TEST_F(NodeBlocks, CountsAndIgnoresReleasesOfWhatItDoesNotKnow) {
  const auto client = join_in();
  const auto other = join_in();
  put(*client, keys(1, 1), 1'000);
  const wire::GetReply reply = get(*client, keys(1, 1));
  release(*other, reply);
  run_for(Milliseconds(2));
  EXPECT_EQ(lent_bytes(), 8'192U);
  release(*client, reply);
  release(*client, reply);
  run_for(Milliseconds(2));
  EXPECT_EQ(lent_bytes(), 0U);
  EXPECT_EQ(metrics().releases_unknown.load(), 2U);
}

TEST_F(NodeBlocks, ChecksABlockThatAReaderFoundCorrupt) {
  const auto client = join_in();
  put(*client, keys(1, 2), 1'000);
  const wire::GetReply reply = get(*client, keys(1, 2));
  client->payload(std::span(reply.extents).subspan(reply.grants[0].extent_first, 1), 1'000)[0][5] ^=
      std::byte{1};
  client->send(wire::Release{{{.lend = reply.grants[0].lend, .found_corrupt = true},
                              {.lend = reply.grants[1].lend, .found_corrupt = true}}});
  run_for(Milliseconds(2));
  EXPECT_EQ(metrics().reports_corrupt.load(), 2U);
  EXPECT_EQ(metrics().blocks_corrupt.load(), 1U);
  EXPECT_EQ(statuses(get(*client, keys(1, 2), false).grants), (std::vector{kMiss, kOk}));
}

TEST_F(NodeBlocks, AnswersAMissForABlockWhoseHeaderPageIsWrong) {
  const auto client = join_in();
  put(*client, keys(1, 1), 1'000);
  const wire::GetReply reply = get(*client, keys(1, 1));
  const auto payload = client->payload(reply.extents, 1'000).at(0);
  std::memset(payload.data() - kHeaderBytes.value(), 0xFF, kHeaderBytes.value());
  release(*client, reply);
  EXPECT_EQ(get(*client, keys(1, 1)).grants.at(0).status, kMiss);
  EXPECT_EQ(lent_bytes(), 0U);
}

TEST_F(NodeBlocks, EvictsWhatIsNotLentAndAnswersBusyWhenAllIs) {
  testing::SimDaemonOptions options;
  options.node.lent_max = 64_MiB;
  start(options);
  const auto client = join_in();
  for (std::uint64_t i = 0; i < 12; ++i)
    EXPECT_EQ(put(*client, keys(i, 1), 10'000'000), std::vector{kOk});
  std::vector<wire::GetReply> held;
  for (std::uint64_t i = 0; i < 12; ++i) {
    wire::GetReply reply = get(*client, keys(i, 1));
    if (reply.grants[0].status == kOk) held.push_back(std::move(reply));
  }
  ASSERT_GE(held.size(), 5U);
  const wire::ReserveReply reserved = reserve(*client, keys(100, 1), 10'000'000);
  EXPECT_EQ(reserved.grants.at(0).status, kBusy);
  release(*client, held[0]);
  EXPECT_EQ(put(*client, keys(100, 1), 10'000'000), std::vector{kOk});
  for (std::size_t i = 1; i < held.size(); ++i)
    EXPECT_EQ(bytes_of(*client, held[i], 0), body(0, 10'000'000));
}

TEST_F(NodeBlocks, NamesWhatIsWrongWithARequestAsAWhole) {
  const auto client = join_in();
  wire::Get request;
  request.context = client->context();
  request.digests = {key(1, 8)};
  EXPECT_EQ(client->ask<wire::GetReply>(request).context.status, kInvalid);
  request.digests = {key(1)};
  request.context.remaining_ms = 0;
  EXPECT_EQ(client->ask<wire::GetReply>(request).context.status, kInvalid);
}

TEST_F(NodeBlocks, TakesShortKeysWhereTheyAreAllowed) {
  testing::SimDaemonOptions options;
  options.node.allow_weak_keys = true;
  start(options);
  const auto client = connect();
  EXPECT_TRUE(client->hello().allow_weak_keys);
  client->open();
  EXPECT_EQ(put(*client, std::vector{key(1, 8)}, 1'000), std::vector{kOk});
}

TEST_F(NodeBlocks, TurnsEverythingIntoMissesWhilePaused) {
  const auto client = join_in();
  put(*client, keys(1, 2), 1'000);
  const wire::ReserveReply reserved = reserve(*client, keys(5, 1), 1'000);
  daemon().node().set_paused(true);
  EXPECT_EQ(lookup(*client, keys(1, 2)).run, 0U);
  EXPECT_EQ(lookup(*client, keys(1, 2), wire::LookupKind::kSet).tiers,
            (std::vector<std::uint8_t>{0, 0}));
  EXPECT_EQ(statuses(get(*client, keys(1, 2)).grants), (std::vector{kMiss, kCut}));
  EXPECT_EQ(statuses(reserve(*client, keys(7, 2), 1'000).grants), std::vector(2, kDeclined));
  const std::vector<std::vector<std::byte>> payloads = {body(1, 1'000)};
  EXPECT_EQ(commit(*client, reserved, payloads).statuses, std::vector{kDeclined});
  daemon().node().set_paused(false);
  EXPECT_EQ(lookup(*client, keys(1, 2)).run, 2U);
}

TEST_F(NodeBlocks, StopsWhileLendsAreOut) {
  const auto client = join_in();
  put(*client, keys(1, 1), 1'000, 3);
  const wire::GetReply reply = get(*client, keys(1, 1));
  daemon().node().begin_stop();
  EXPECT_EQ(statuses(reserve(*client, keys(7, 1), 1'000).grants), std::vector{kDeclined});
  const auto late = std::make_unique<ScriptedClient>(host_, clock_, network_.spawn());
  run_for(Milliseconds(1));
  EXPECT_FALSE(late->connect(daemon().unix_address()));
  daemon_.reset();
  EXPECT_EQ(bytes_of(*client, reply, 0), body(3, 1'000));
}

}  // namespace
}  // namespace cairn::server
