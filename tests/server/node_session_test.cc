// Who gets a session, what it is told, and what closes a connection.
#include "base/random.h"
#include "tests/server/node_fixture.h"
#include "tests/support/seed.h"

namespace cairn::server {
namespace {

using enum BlockStatus;

class NodeSession : public NodeTest {
 protected:
  wire::Hello usual_hello() {
    wire::Hello hello;
    hello.client_name = "scripted";
    return hello;
  }
};

TEST_F(NodeSession, TellsTheClientWhatItMayDo) {
  const auto client = connect();
  const wire::HelloReply reply = client->hello();
  EXPECT_EQ(reply.context.status, kOk);
  EXPECT_EQ(reply.version, wire::kProtocolVersion);
  EXPECT_NE(reply.session, 0U);
  EXPECT_NE(reply.secret, wire::SessionSecret{});
  EXPECT_EQ(reply.limits, wire::Limits{});
  EXPECT_EQ(reply.pool_bytes, (64_MiB).value());
  EXPECT_TRUE(reply.is_mapping_allowed);
  EXPECT_TRUE(client->lock().has_value());
  EXPECT_EQ(client->slab_count(), 1U);
  EXPECT_EQ(metrics().sessions.load(), 1U);
}

TEST_F(NodeSession, RefusesAVersionByName) {
  const auto client = connect();
  wire::Hello hello = usual_hello();
  hello.version_min = 2;
  hello.version_max = 3;
  const wire::HelloReply reply = client->hello(hello, -1);
  EXPECT_EQ(reply.context.status, kInvalid);
  EXPECT_EQ(reply.version, wire::kProtocolVersion);
  EXPECT_EQ(reply.message, "this daemon speaks protocol version 1, the client 2 to 3");
  EXPECT_TRUE(client->is_closed());
  EXPECT_EQ(metrics().hello_rejected_version.load(), 1U);
}

TEST_F(NodeSession, LetsNobodyMapWithoutALivingProcess) {
  const auto client = connect();
  EXPECT_FALSE(client->hello(usual_hello(), -1).is_mapping_allowed);
  const auto liar = connect();
  const int no_pidfd =
      network_.open_descriptor(liar->process(), {testing::SimDescriptorKind::kSlab, 99});
  EXPECT_FALSE(liar->hello(usual_hello(), no_pidfd).is_mapping_allowed);
  const auto other = connect();
  const int of_another = network_.open_descriptor(
      other->process(), {testing::SimDescriptorKind::kPidfd, liar->process().value()});
  EXPECT_FALSE(other->hello(usual_hello(), of_another).is_mapping_allowed);
  EXPECT_EQ(liar->slab_count(), 0U);
  liar->open();
  EXPECT_EQ(get(*liar, keys(1, 1)).context.status, kForbidden);
  EXPECT_EQ(reserve(*liar, keys(1, 1), 1'000).context.status, kForbidden);
}

TEST_F(NodeSession, MapsNothingForAClientThatDoesNotAsk) {
  const auto client = connect();
  EXPECT_FALSE(client->hello(false).is_mapping_allowed);
  EXPECT_EQ(client->slab_count(), 0U);
  EXPECT_FALSE(client->lock().has_value());
}

TEST_F(NodeSession, ClosesWhoeverDoesNotBeginWithHello) {
  const auto client = connect();
  client->send(wire::Ping{});
  EXPECT_TRUE(client->is_closed());
  const auto twice = connect();
  twice->hello();
  twice->send(usual_hello());
  EXPECT_TRUE(twice->is_closed());
  EXPECT_EQ(metrics().frames_malformed.load(), 2U);
}

TEST_F(NodeSession, ClosesWhoeverSaysNothing) {
  const auto client = connect();
  run_for(std::chrono::seconds(11));
  EXPECT_TRUE(client->is_closed());
}

TEST_F(NodeSession, ClosesForMessagesThatAreNotAClients) {
  for (const std::uint64_t kind : {0, 1, 2}) {
    const auto client = connect();
    client->hello();
    if (kind == 0) client->send(wire::SlabNotice{});
    if (kind == 1) client->send(wire::LookupReply{});
    if (kind == 2) {
      wire::FrameWriter writer;
      writer.begin(static_cast<wire::MessageType>(24), 5);
      static_cast<void>(client->channel().send(writer.finish()));
    }
    EXPECT_TRUE(client->is_closed()) << kind;
  }
  EXPECT_EQ(metrics().frames_malformed.load(), 3U);
}

TEST_F(NodeSession, SurvivesRandomBytes) {
  SeededRandom random(testing::test_seed());
  for (int round = 0; round < 50; ++round) {
    const auto client = connect();
    if (random.below(2) == 0) client->hello();
    const auto bytes = body(random.next_u64(), 1 + random.below(500));
    static_cast<void>(client->channel().send(
        bytes.size() < wire::kFrameHeaderBytes ? body(1, wire::kFrameHeaderBytes) : bytes));
    EXPECT_TRUE(client->is_closed());
  }
  EXPECT_EQ(metrics().frames_malformed.load(), 50U);
  EXPECT_EQ(metrics().sessions.load(), 0U);
  EXPECT_EQ(put(*join_in(), keys(1, 1), 1'000), std::vector{kOk});
}

TEST_F(NodeSession, SurvivesRandomBodiesOfEveryMessage) {
  SeededRandom random(testing::test_seed());
  for (std::uint16_t type = 0; type < 32; ++type) {
    for (int round = 0; round < 8; ++round) {
      const auto client = connect();
      client->hello();
      wire::FrameWriter writer;
      writer.begin(static_cast<wire::MessageType>(type), 7);
      writer.bytes(body(random.next_u64(), 40 + random.below(200)));
      static_cast<void>(client->channel().send(writer.finish()));
      client->listen_for(Milliseconds(2));
    }
  }
  EXPECT_EQ(lent_bytes(), 0U);
  EXPECT_EQ(put(*join_in(), keys(1, 1), 1'000), std::vector{kOk});
}

TEST_F(NodeSession, AnswersPings) {
  const auto client = connect();
  client->hello();
  const std::uint64_t id = client->send(wire::Ping{});
  const auto frame = client->wait_for(id);
  ASSERT_TRUE(frame.has_value());
  EXPECT_EQ(frame->type, wire::MessageType::kPong);
}

TEST_F(NodeSession, JoinsASessionByIdAndSecret) {
  const auto client = connect();
  const wire::HelloReply session = client->hello();
  client->open();
  put(*client, keys(1, 1), 1'000);
  const auto second = connect(client->process());
  EXPECT_EQ(second->join(session).context.status, kOk);
  second->context() = client->context();
  EXPECT_EQ(lookup(*second, keys(1, 1)).run, 1U);
  EXPECT_EQ(metrics().sessions.load(), 1U);
  // Lends belong to the session: either socket may give them back.
  release(*second, get(*client, keys(1, 1)));
  run_for(Milliseconds(2));
  EXPECT_EQ(lent_bytes(), 0U);
}

TEST_F(NodeSession, LetsNobodyJoinWithAnotherSecret) {
  const auto client = connect();
  wire::HelloReply session = client->hello();
  session.secret.bytes[15] ^= std::byte{1};
  const auto thief = connect();
  EXPECT_EQ(thief->join(session).context.status, kForbidden);
  EXPECT_TRUE(thief->is_closed());
  session.secret.bytes[15] ^= std::byte{1};
  session.session += 1;
  const auto guesser = connect();
  EXPECT_EQ(guesser->join(session).context.status, kForbidden);
}

TEST_F(NodeSession, LetsNobodyJoinAMappingSessionOverTcp) {
  const auto client = connect();
  const wire::HelloReply session = client->hello();
  const auto far = connect_tcp();
  EXPECT_EQ(far->join(session).context.status, kForbidden);
}

TEST_F(NodeSession, LetsASessionHaveSoManySockets) {
  const auto client = connect();
  const wire::HelloReply session = client->hello();
  std::vector<std::unique_ptr<ScriptedClient>> sockets;
  for (int i = 1; i < 64; ++i) {
    sockets.push_back(connect(client->process()));
    EXPECT_EQ(sockets.back()->join(session).context.status, kOk);
  }
  EXPECT_EQ(connect(client->process())->join(session).context.status, kQuota);
  sockets.clear();
  run_for(Milliseconds(2));
  EXPECT_EQ(connect(client->process())->join(session).context.status, kOk);
}

TEST_F(NodeSession, HasRoomForSoManySessions) {
  testing::SimDaemonOptions options;
  options.node.sessions_max = 2;
  start(options);
  const auto one = join_in();
  const auto two = join_in();
  const auto three = connect();
  const wire::HelloReply refused = three->hello();
  EXPECT_EQ(refused.context.status, kQuota);
  EXPECT_FALSE(refused.message.empty());
  EXPECT_TRUE(three->is_closed());
  EXPECT_EQ(metrics().hello_rejected_other.load(), 1U);
  one->disconnect();
  run_for(Milliseconds(2));
  EXPECT_EQ(connect()->hello().context.status, kOk);
}

TEST_F(NodeSession, HasRoomForSoManyConnections) {
  testing::SimDaemonOptions options;
  options.node.sessions_max = 1;
  start(options);
  std::vector<std::unique_ptr<ScriptedClient>> mute;
  mute.reserve(17);
  for (int i = 0; i < 17; ++i)
    mute.push_back(connect());
  run_for(Milliseconds(5));
  EXPECT_EQ(metrics().hello_rejected_other.load(), 1U);
  EXPECT_TRUE(mute.back()->is_closed());
}

TEST_F(NodeSession, SpreadsTheSocketsOfASessionOverLoops) {
  testing::SimDaemonOptions options;
  options.loops = 3;
  start(options);
  const auto client = connect();
  const wire::HelloReply session = client->hello();
  client->open();
  std::vector<std::unique_ptr<ScriptedClient>> sockets;
  for (std::uint64_t i = 0; i < 5; ++i) {
    sockets.push_back(connect(client->process()));
    EXPECT_EQ(sockets.back()->join(session).context.status, kOk);
    sockets.back()->context() = client->context();
    const std::vector<std::vector<std::byte>> payloads = {body(i, 1'000)};
    const wire::ReserveReply reserved = reserve(*sockets.back(), keys(i, 1), 1'000);
    fill(*client, reserved, 0, payloads[0]);
    wire::Commit request;
    request.context = client->context();
    request.checksums = checksums_of(payloads[0]);
    request.entries = {{.lend = reserved.grants[0].lend, .checksum_count = 1}};
    EXPECT_EQ(client->ask<wire::CommitReply>(request).statuses, std::vector{kOk});
  }
  EXPECT_EQ(lookup(*client, keys(0, 5)).run, 5U);
  // The process is gone: every socket of the session, on whatever loop, is closed.
  network_.kill(client->process());
  run_for(Milliseconds(5));
  EXPECT_EQ(metrics().sessions.load(), 0U);
}

TEST_F(NodeSession, TellsEverySocketOfTheSlabsThatAreReadyAndOfThoseThatBecomeSo) {
  daemon_.reset();
  const std::uint64_t old = host_.machine().add_predecessor(64_MiB, "an old client");
  testing::SimDaemonOptions options;
  options.pool = 128_MiB;
  start(options);
  const auto client = connect();
  const wire::HelloReply session = client->hello();
  EXPECT_EQ(client->slab_count(), 1U);
  EXPECT_EQ(metrics().predecessor_bytes.load(), (64_MiB).value());
  const auto second = connect(client->process());
  second->join(session);
  host_.machine().release_predecessor(old);
  client->listen_for(std::chrono::seconds(1));
  second->listen_for(Milliseconds(1));
  EXPECT_EQ(client->slab_count(), 2U);
  EXPECT_EQ(second->slab_count(), 2U);
  EXPECT_EQ(metrics().predecessor_bytes.load(), 0U);
}

TEST_F(NodeSession, PingsATcpClientAndClosesItWhenItIsSilent) {
  const auto client = join_in_tcp();
  client->listen_for(std::chrono::seconds(6));
  ASSERT_FALSE(client->frames().empty());
  EXPECT_EQ(client->frames().back().type, wire::MessageType::kPing);
  client->send_as(wire::Pong{}, client->frames().back().request_id);
  client->listen_for(std::chrono::seconds(14));
  EXPECT_EQ(metrics().sessions.load(), 1U);
  client->listen_for(std::chrono::seconds(2));
  EXPECT_TRUE(client->is_closed());
  EXPECT_EQ(metrics().sessions.load(), 0U);
}

TEST_F(NodeSession, LeavesASilentUnixClientAlone) {
  const auto client = join_in();
  client->listen_for(std::chrono::hours(2));
  EXPECT_EQ(metrics().sessions.load(), 1U);
  EXPECT_EQ(lookup(*client, keys(1, 1)).context.status, kOk);
}

TEST_F(NodeSession, KeepsTheLockOfAClientAcrossARestart) {
  const auto client = join_in();
  daemon_->kill();
  start();
  EXPECT_EQ(metrics().predecessor_bytes.load(), (64_MiB).value());
  network_.kill(client->process());
  run_for(std::chrono::seconds(1));
  EXPECT_EQ(metrics().predecessor_bytes.load(), 0U);
  EXPECT_EQ(daemon().pool().ready_slabs().size(), 1U);
}

TEST_F(NodeSession, RefusesOptionsThatAreOutOfRange) {
  testing::SimDaemonOptions defaults;
  auto poller = network_.make_poller(network_.spawn());
  transport::Poller* const pollers[] = {poller.get()};
  const auto bad = [&](const NodeOptions& options) {
    NodeMetrics metrics;
    SeededRandom random(1);
    class NoProcesses final : public ClientProcess {
     public:
      bool is_process_of(int /*fd*/,
                         const transport::Channel::Peer& /*peer*/) const noexcept override {
        return false;
      }
      bool has_exited(int /*fd*/) const noexcept override { return true; }
      void close(int /*fd*/) noexcept override {}
    } processes;
    testing::SimMachine machine;
    auto memory = machine.start_daemon();
    const auto node = Node::create(options,
                                   {.store = &daemon().store(),
                                    .dram = &daemon().tier(),
                                    .pool = &daemon().pool(),
                                    .pool_memory = memory->get(),
                                    .namespaces = &daemon().namespaces(),
                                    .processes = &processes,
                                    .metrics = &metrics,
                                    .clock = &clock_,
                                    .random = &random},
                                   pollers);
    return node.has_value() ? "" : node.error().what;
  };
  NodeOptions options = defaults.node;
  options.lent_max = ByteCount(0);
  EXPECT_STREQ(bad(options), "lent_max");
  options = defaults.node;
  options.sessions_max = 0;
  EXPECT_STREQ(bad(options), "sessions_max");
  options = defaults.node;
  options.tcp_timeout = options.tcp_ping;
  EXPECT_STREQ(bad(options), "tcp_timeout");
}

}  // namespace
}  // namespace cairn::server
