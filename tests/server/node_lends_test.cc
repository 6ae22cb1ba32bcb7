// What happens to lent frames when sockets break, clients come back and processes die.
#include "tests/server/node_fixture.h"

namespace cairn::server {
namespace {

using enum BlockStatus;

class NodeLends : public NodeTest {
 protected:
  // The same process, connected anew.
  std::unique_ptr<ScriptedClient> reconnect(ScriptedClient& old) {
    auto client = connect(old.process());
    EXPECT_TRUE(client->hello().is_mapping_allowed);
    client->context() = old.context();
    wire::Bind bind;
    bind.context = old.context();
    EXPECT_EQ(client->ask<wire::BindReply>(bind).context.status, kOk);
    return client;
  }
  static wire::ResumeReply resume(ScriptedClient& client,
                                  const wire::HelloReply& old,
                                  std::vector<wire::HeldLend> held) {
    return client.ask<wire::ResumeReply>(
        wire::Resume{.session = old.session, .secret = old.secret, .held = std::move(held)});
  }
  std::pair<std::unique_ptr<ScriptedClient>, wire::HelloReply> begin() {
    auto client = connect();
    const wire::HelloReply session = client->hello();
    client->open();
    return {std::move(client), session};
  }
};

TEST_F(NodeLends, StayLentWhenTheSocketIsLost) {
  auto [client, session] = begin();
  put(*client, keys(1, 2), 1'000, 5);
  const wire::GetReply reply = get(*client, keys(1, 2));
  client->disconnect();
  run_for(std::chrono::hours(3));
  EXPECT_EQ(quarantined_bytes(), 2 * 8'192U);
  EXPECT_EQ(lent_bytes(), 2 * 8'192U);
  EXPECT_EQ(metrics().sessions.load(), 1U);
  // The frames are not used for anything else, however much is put.
  const auto writer = join_in();
  for (std::uint64_t i = 100; i < 130; ++i)
    put(*writer, keys(i, 1), 4'000'000, i);
  EXPECT_EQ(bytes_of(*client, reply, 0), body(5, 1'000));
  EXPECT_EQ(bytes_of(*client, reply, 1), body(6, 1'000));
}

TEST_F(NodeLends, MoveToTheSessionThatResumesThem) {
  auto [client, session] = begin();
  put(*client, keys(1, 3), 1'000);
  const wire::GetReply reply = get(*client, keys(1, 3));
  client->disconnect();
  const auto heir = reconnect(*client);
  wire::HeldLend misplaced = held(reply.grants[1], reply.extents);
  misplaced.offset += 4'096;
  wire::HeldLend unknown = held(reply.grants[0], reply.extents);
  unknown.lend = 42;
  const wire::ResumeReply resumed =
      resume(*heir, session, {held(reply.grants[0], reply.extents), unknown, misplaced});
  EXPECT_EQ(resumed.context.status, kOk);
  EXPECT_EQ(resumed.kept, (std::vector<std::uint8_t>{1, 0, 0}));
  EXPECT_EQ(lent_bytes(), 8'192U);
  EXPECT_EQ(quarantined_bytes(), 0U);
  EXPECT_EQ(metrics().sessions.load(), 1U);
  release(*heir, reply);
  run_for(Milliseconds(2));
  EXPECT_EQ(lent_bytes(), 0U);
}

TEST_F(NodeLends, CanBeCommittedAfterAResumeAndNotWithout) {
  auto [client, session] = begin();
  const wire::ReserveReply reserved = reserve(*client, keys(1, 2), 1'000);
  fill(*client, reserved, 0, body(1, 1'000));
  client->disconnect();
  const auto heir = reconnect(*client);
  resume(*heir, session, {held(reserved.grants[0], reserved.extents)});
  wire::Commit request;
  request.context = heir->context();
  request.checksums = checksums_of(body(1, 1'000));
  request.entries = {{.lend = reserved.grants[0].lend, .checksum_count = 1},
                     {.lend = reserved.grants[1].lend, .checksum_count = 1}};
  EXPECT_EQ(heir->ask<wire::CommitReply>(request).statuses, (std::vector{kOk, kCancelled}));
  EXPECT_EQ(lent_bytes(), 0U);
  EXPECT_EQ(daemon().store().stats().open_reservations, 0U);
}

TEST_F(NodeLends, MoveAlsoWhenTheOldSocketIsNotKnownToBeLost) {
  auto [client, session] = begin();
  put(*client, keys(1, 1), 1'000);
  const wire::GetReply reply = get(*client, keys(1, 1));
  const auto heir = reconnect(*client);
  EXPECT_EQ(resume(*heir, session, {held(reply.grants[0], reply.extents)}).kept,
            std::vector<std::uint8_t>{1});
  EXPECT_TRUE(client->is_closed());
  EXPECT_EQ(metrics().sessions.load(), 1U);
  EXPECT_EQ(lent_bytes(), 8'192U);
}

TEST_F(NodeLends, AreNotGivenToWhoeverCannotProveTheSession) {
  auto [client, session] = begin();
  put(*client, keys(1, 1), 1'000);
  const wire::GetReply reply = get(*client, keys(1, 1));
  client->disconnect();
  const auto place = held(reply.grants[0], reply.extents);
  const auto heir = reconnect(*client);
  wire::HelloReply wrong = session;
  wrong.secret.bytes[0] ^= std::byte{1};
  EXPECT_EQ(resume(*heir, wrong, {place}).context.status, kForbidden);
  // The right secret in another process: that process's death says nothing of the first one.
  const auto other = join_in();
  EXPECT_EQ(resume(*other, session, {place}).context.status, kForbidden);
  const auto unmapped = connect(client->process());
  unmapped->hello(false);
  EXPECT_EQ(resume(*unmapped, session, {place}).context.status, kForbidden);
  EXPECT_EQ(quarantined_bytes(), 8'192U);
  EXPECT_EQ(resume(*heir, session, {place}).kept, std::vector<std::uint8_t>{1});
}

TEST_F(NodeLends, AreUnknownToADaemonThatStartedSince) {
  auto [client, session] = begin();
  put(*client, keys(1, 1), 1'000);
  const wire::GetReply reply = get(*client, keys(1, 1));
  daemon_->kill();
  start();
  const auto heir = connect(client->process());
  heir->hello();
  const wire::ResumeReply resumed = resume(*heir, session, {held(reply.grants[0], reply.extents)});
  EXPECT_EQ(resumed.context.status, kOk);
  EXPECT_EQ(resumed.kept, std::vector<std::uint8_t>{0});
  EXPECT_EQ(bytes_of(*client, reply, 0), body(0, 1'000));
}

TEST_F(NodeLends, ReturnWhenTheirProcessIsGone) {
  auto [client, session] = begin();
  put(*client, keys(1, 2), 1'000);
  get(*client, keys(1, 2));
  reserve(*client, keys(10, 3), 1'000);
  EXPECT_EQ(lent_bytes(), 5 * 8'192U);
  network_.kill(client->process());
  run_for(Milliseconds(5));
  EXPECT_EQ(lent_bytes(), 0U);
  EXPECT_EQ(quarantined_bytes(), 0U);
  EXPECT_EQ(metrics().sessions.load(), 0U);
  EXPECT_EQ(daemon().store().stats().open_reservations, 0U);
  EXPECT_FALSE(network_.is_held({testing::SimDescriptorKind::kPidfd, client->process().value()}));
}

TEST_F(NodeLends, ReturnWhenAnOrphansProcessIsGone) {
  auto [client, session] = begin();
  put(*client, keys(1, 2), 1'000);
  get(*client, keys(1, 2));
  client->disconnect();
  run_for(std::chrono::minutes(1));
  EXPECT_EQ(quarantined_bytes(), 2 * 8'192U);
  network_.kill(client->process());
  run_for(Milliseconds(5));
  EXPECT_EQ(quarantined_bytes(), 0U);
  EXPECT_EQ(lent_bytes(), 0U);
}

TEST_F(NodeLends, ReturnAlthoughAForkedChildHoldsTheSocket) {
  auto [client, session] = begin();
  put(*client, keys(1, 1), 1'000);
  get(*client, keys(1, 1));
  network_.fork(client->process());
  network_.kill(client->process());
  run_for(Milliseconds(5));
  EXPECT_EQ(lent_bytes(), 0U);
  EXPECT_EQ(metrics().sessions.load(), 0U);
}

TEST_F(NodeLends, StayWithAStoppedProcess) {
  auto [client, session] = begin();
  put(*client, keys(1, 1), 1'000);
  const wire::GetReply reply = get(*client, keys(1, 1));
  network_.stop(client->process());
  run_for(std::chrono::hours(1));
  EXPECT_EQ(lent_bytes(), 8'192U);
  network_.resume(client->process());
  EXPECT_EQ(bytes_of(*client, reply, 0), body(0, 1'000));
  EXPECT_EQ(lookup(*client, keys(1, 1)).run, 1U);
}

TEST_F(NodeLends, OfAllSessionsOfAProcessShareOneLimit) {
  testing::SimDaemonOptions options;
  options.node.lent_max = 16_KiB;
  start(options);
  const auto one = join_in();
  put(*one, std::vector{key(1)}, 1'000);
  put(*one, std::vector{key(2)}, 1'000);
  put(*one, std::vector{key(3)}, 1'000);
  const auto two = connect(one->process());
  two->hello();
  two->open();
  get(*one, keys(1, 1));
  get(*two, keys(2, 1));
  EXPECT_EQ(get(*two, keys(3, 1)).grants.at(0).reason, BusyReason::kLentLimit);
  EXPECT_EQ(get(*one, keys(3, 1)).grants.at(0).reason, BusyReason::kLentLimit);
  const auto other = join_in();
  EXPECT_EQ(get(*other, keys(3, 1)).grants.at(0).status, kOk);
}

TEST_F(NodeLends, KeepABlockThatIsPurgedOrRemoved) {
  auto [client, session] = begin();
  put(*client, keys(1, 2), 1'000, 8);
  const wire::GetReply reply = get(*client, keys(1, 2));
  const wire::ReserveReply reserved = reserve(*client, keys(5, 1), 1'000);
  wire::Remove remove;
  remove.context = client->context();
  remove.digests = keys(1, 1);
  EXPECT_EQ(client->ask<wire::StatusesReply>(remove).statuses, std::vector{kOk});
  wire::Purge purge;
  purge.context = client->context();
  EXPECT_TRUE(client->ask<wire::PurgeReply>(purge).is_complete);
  const auto writer = join_in();
  for (std::uint64_t i = 100; i < 120; ++i)
    put(*writer, keys(i, 1), 4'000'000, i);
  EXPECT_EQ(bytes_of(*client, reply, 0), body(8, 1'000));
  EXPECT_EQ(bytes_of(*client, reply, 1), body(9, 1'000));
  const std::vector<std::vector<std::byte>> payloads = {body(1, 1'000)};
  EXPECT_EQ(commit(*client, reserved, payloads).context.status, kWrongNamespace);
  release(*client, reply);
  run_for(Milliseconds(2));
  EXPECT_EQ(lent_bytes(), 0U);
}

TEST_F(NodeLends, HaveIdsThatNoLaterDaemonGivesAgain) {
  auto [client, session] = begin();
  const wire::ReserveReply before = reserve(*client, keys(1, 1), 1'000);
  daemon_->kill();
  network_.kill(client->process());
  clock_.advance(Milliseconds(1));
  start();
  run_for(std::chrono::seconds(1));
  const wire::ReserveReply after = reserve(*join_in(), keys(1, 1), 1'000);
  EXPECT_GT(after.grants.at(0).lend, before.grants.at(0).lend + 1'000'000);
}

}  // namespace
}  // namespace cairn::server
