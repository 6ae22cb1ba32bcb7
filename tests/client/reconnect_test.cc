#include "tests/client/client_fixture.h"

#include <algorithm>

namespace cairn::client {
namespace {

using wire::MessageType;

class ReconnectTest : public ClientTest {
 protected:
  ReconnectTest() {
    connect();
    blocks_ = std::make_unique<Blocks>(1, 3, 1'000);
    EXPECT_TRUE(client_->put(blocks_->put_request(ns_)).has_value());
  }
  std::vector<BlockView> hold_views() {
    std::vector<BlockView> views(3);
    EXPECT_TRUE(client_
                    ->get_views({.name_space = ns_,
                                 .digests = blocks_->digests,
                                 .is_chain = true,
                                 .verify = {},
                                 .views = views,
                                 .results = blocks_->results,
                                 .call = {}})
                    .has_value());
    EXPECT_EQ(blocks_->statuses(), all(3, BlockStatus::kOk));
    return views;
  }
  std::vector<BlockReservation> reserve(std::uint64_t first) {
    const auto digests = keys(first, 2);
    const std::vector<std::uint32_t> lengths(2, 500);
    std::vector<BlockReservation> reservations(2);
    std::vector<KeyResult> results(2);
    EXPECT_TRUE(client_
                    ->reserve({.name_space = ns_,
                               .digests = digests,
                               .lengths = lengths,
                               .placement = {},
                               .reservations = reservations,
                               .results = results,
                               .call = {}})
                    .has_value());
    return reservations;
  }
  std::vector<BlockStatus> commit(std::span<const BlockReservation> reservations) {
    std::vector<KeyResult> results(reservations.size());
    EXPECT_TRUE(client_
                    ->commit({.name_space = ns_,
                              .reservations = reservations,
                              .checksums = {},
                              .results = results,
                              .call = {}})
                    .has_value());
    std::vector<BlockStatus> statuses;
    statuses.reserve(results.size());
    for (const KeyResult& result : results)
      statuses.push_back(result.status);
    return statuses;
  }

  std::unique_ptr<Blocks> blocks_;
};

TEST_F(ReconnectTest, ResumesEverythingItHoldsAndBindsItsNamespaces) {
  const auto views = hold_views();
  const auto reservations = reserve(50);
  const std::uint64_t session = client_->server_info().session;
  daemon_->break_sockets();
  ASSERT_TRUE(client_->ping().has_value() || client_->ping().has_value());
  ASSERT_EQ(daemon_->resumes.size(), 1U);
  EXPECT_EQ(daemon_->resumes[0].session, session);
  std::vector<std::uint64_t> lends;
  for (const wire::HeldLend& held : daemon_->resumes[0].held) {
    lends.push_back(held.lend);
    EXPECT_EQ(held.slab, 0U);
    EXPECT_EQ(held.slab_generation, 1U);
  }
  std::vector<std::uint64_t> expected;
  expected.reserve(views.size() + reservations.size());
  for (const BlockView& view : views)
    expected.push_back(view.lend);
  for (const BlockReservation& reservation : reservations)
    expected.push_back(reservation.lend);
  std::ranges::sort(lends);
  std::ranges::sort(expected);
  EXPECT_EQ(lends, expected);
  ASSERT_EQ(daemon_->binds.size(), 1U);
  EXPECT_EQ(daemon_->binds[0].context.epoch, ns_.epoch);
  EXPECT_EQ(client_->server_info().reconnects, 1U);
  EXPECT_EQ(commit(reservations), all(2, BlockStatus::kOk));
  client_->release(views);
  run_for(Milliseconds(1));
  EXPECT_EQ(daemon_->lent_count(), 0U);
}

TEST_F(ReconnectTest, ResumeIsTheFirstMessageAfterTheHello) {
  daemon_->break_sockets();
  daemon_->order.clear();
  ASSERT_TRUE(client_->get(blocks_->get_request(ns_)).has_value());
  EXPECT_EQ(blocks_->right(), 3U);
  ASSERT_GE(daemon_->order.size(), 3U);
  EXPECT_EQ(daemon_->order[0], MessageType::kHello);
  EXPECT_EQ(daemon_->order[1], MessageType::kResume);
  EXPECT_EQ(daemon_->order[2], MessageType::kBind);
}

TEST_F(ReconnectTest, ViewsOutliveTheirDaemonAndAreReleasedLocally) {
  auto views = hold_views();
  restart_daemon();
  LookupRequest lookup;
  lookup.name_space = ns_;
  lookup.digests = blocks_->digests;
  const auto answer = client_->lookup(lookup);
  ASSERT_TRUE(answer.has_value());
  EXPECT_EQ(answer->status, BlockStatus::kOk);
  EXPECT_TRUE(std::ranges::equal(views[2].pieces[0], blocks_->payloads[2]));
  EXPECT_EQ(slabs_.mapped, 1);
  client_->release(std::span(views).first(2));
  EXPECT_EQ(slabs_.mapped, 1);
  client_->release(std::span(views).subspan(2));
  EXPECT_EQ(slabs_.mapped, 0);
  run_for(Milliseconds(1));
  EXPECT_TRUE(daemon_->releases.empty());
}

TEST_F(ReconnectTest, TheSessionLockIsKeptWhileASlabOfItsDaemonIsMapped) {
  const testing::SimDescriptor lock{.kind = testing::SimDescriptorKind::kSessionLock,
                                    .subject = client_->server_info().session};
  const auto views = hold_views();
  restart_daemon();
  ASSERT_TRUE(client_->ping().has_value() || client_->ping().has_value());
  EXPECT_TRUE(network_.is_held(lock));
  client_->release(views);
  EXPECT_FALSE(network_.is_held(lock));
}

TEST_F(ReconnectTest, AReservationThatWasNotKeptIsCancelled) {
  const auto reservations = reserve(50);
  restart_daemon();
  ASSERT_TRUE(client_->ping().has_value() || client_->ping().has_value());
  EXPECT_EQ(commit(reservations), all(2, BlockStatus::kCancelled));
  EXPECT_EQ(daemon_->count(MessageType::kCommit), 0);
}

TEST_F(ReconnectTest, AGetIsAskedAgainOnce) {
  int gets = 0;
  daemon_->intercept = [&](auto& socket, const wire::FrameView& frame) {
    if (frame.type != MessageType::kGet || ++gets > 1) return false;
    network_.cut(*socket.channel);
    return true;
  };
  ASSERT_TRUE(client_->get(blocks_->get_request(ns_)).has_value());
  EXPECT_EQ(blocks_->right(), 3U);
  EXPECT_EQ(gets, 2);
}

TEST_F(ReconnectTest, AGetThatIsLostTwiceEndsAsPeerLost) {
  daemon_->intercept = [&](auto& socket, const wire::FrameView& frame) {
    if (frame.type != MessageType::kGet) return false;
    network_.cut(*socket.channel);
    return true;
  };
  ASSERT_TRUE(client_->get(blocks_->get_request(ns_)).has_value());
  EXPECT_EQ(blocks_->statuses(), all(3, BlockStatus::kPeerLost));
}

TEST_F(ReconnectTest, APutThatMayHaveHappenedEndsAsPeerLost) {
  for (const MessageType type : {MessageType::kReserve, MessageType::kCommit}) {
    daemon_->intercept = [&, type](auto& socket, const wire::FrameView& frame) {
      if (frame.type != type) return false;
      network_.cut(*socket.channel);
      return true;
    };
    Blocks blocks(100, 3, 1'000);
    ASSERT_TRUE(client_->put(blocks.put_request(ns_)).has_value());
    EXPECT_EQ(blocks.statuses(), all(3, BlockStatus::kPeerLost));
    daemon_->intercept = {};
    ASSERT_TRUE(client_->ping().has_value() || client_->ping().has_value());
    run_for(Milliseconds(1));
    EXPECT_EQ(daemon_->lent_count(), 0U);
  }
}

TEST_F(ReconnectTest, ADaemonThatStaysAwayEndsCallsAsPeerLostByTheirDeadline) {
  daemon_->kill();
  auto request = blocks_->get_request(ns_);
  request.call.deadline = Milliseconds(700);
  const MonotonicTime begin = clock_.now();
  ASSERT_TRUE(client_->get(request).has_value());
  EXPECT_EQ(blocks_->statuses(), all(3, BlockStatus::kPeerLost));
  EXPECT_GE(clock_.now() - begin, Milliseconds(699));
  EXPECT_LE(clock_.now() - begin, Milliseconds(710));
}

TEST_F(ReconnectTest, PausesGrowBetweenAttempts) {
  auto queue = client_->make_queue();
  daemon_->kill();
  std::vector<Nanoseconds> pauses;
  run_for(Milliseconds(1));
  (*queue)->poll({});
  for (int i = 0; i < 12; ++i) {
    const auto due = (*queue)->next_due();
    ASSERT_TRUE(due.has_value());
    pauses.push_back(*due - clock_.now());
    run_for(*due - clock_.now());
    (*queue)->poll({});
  }
  const ClientOptions options;
  EXPECT_LE(pauses[2], 2 * options.backoff_min);
  for (std::size_t i = 9; i < pauses.size(); ++i) {
    EXPECT_GE(pauses[i], options.backoff_max / 2);
    EXPECT_LE(pauses[i], options.backoff_max);
  }
}

TEST_F(ReconnectTest, QueuesJoinTheSessionThatAnotherMade) {
  auto queue = client_->make_queue();
  ASSERT_TRUE(queue.has_value());
  EXPECT_EQ(daemon_->joins.size(), 1U);
  const auto views = hold_views();
  daemon_->break_sockets();
  ASSERT_TRUE(client_->get(blocks_->get_request(ns_)).has_value());
  const auto ticket = (*queue)->submit(blocks_->get_request(ns_));
  ASSERT_TRUE(ticket.has_value());
  finish(**queue, *ticket);
  EXPECT_EQ(blocks_->statuses(), all(3, BlockStatus::kOk));
  EXPECT_EQ(daemon_->hellos.size(), 2U);
  EXPECT_EQ(daemon_->joins.size(), 2U);
  EXPECT_EQ(daemon_->joins[1].session, client_->server_info().session);
  (*queue)->release(views);
  run_for(Milliseconds(1));
  EXPECT_EQ(daemon_->lent_count(), 0U);
}

TEST_F(ReconnectTest, AQueueWhoseSocketIsLostAloneTakesTheSessionAlong) {
  auto queue = client_->make_queue();
  const auto views = hold_views();
  network_.cut(*daemon_->sockets().back()->channel);
  const auto ticket = (*queue)->submit(blocks_->get_request(ns_));
  finish(**queue, *ticket);
  EXPECT_EQ(blocks_->statuses(), all(3, BlockStatus::kOk));
  ASSERT_EQ(daemon_->resumes.size(), 1U);
  EXPECT_EQ(daemon_->resumes[0].held.size(), 3U);
  blocks_->results.assign(3, KeyResult{});
  ASSERT_TRUE(client_->get(blocks_->get_request(ns_)).has_value());
  EXPECT_EQ(blocks_->statuses(), all(3, BlockStatus::kOk));
  EXPECT_EQ(daemon_->joins.size(), 2U);
}

TEST_F(ReconnectTest, AQueueThatWasNotToldOfASlabAsksAgainInANewSession) {
  auto queue = client_->make_queue();
  daemon_->has_second_slab = true;
  daemon_->change_get = [](wire::GetReply& reply) {
    for (wire::WireExtent& extent : reply.extents)
      extent.slab = 1;
  };
  const auto ticket = (*queue)->submit(blocks_->get_request(ns_));
  ASSERT_TRUE(ticket.has_value());
  finish(**queue, *ticket);
  EXPECT_EQ(blocks_->right(), 3U);
  EXPECT_EQ(daemon_->resumes.size(), 1U);
  run_for(Milliseconds(1));
  EXPECT_EQ(daemon_->lent_count(), 0U);
}

TEST_F(ReconnectTest, AReleaseDuringTheResumeIsToldAfterwards) {
  const auto views = hold_views();
  auto queue = client_->make_queue();
  network_.cut(*daemon_->sockets().front()->channel);
  network_.cut(*daemon_->sockets().back()->channel);
  bool has_released = false;
  daemon_->intercept = [&](auto&, const wire::FrameView& frame) {
    if (frame.type == MessageType::kResume && !has_released) {
      has_released = true;
      (*queue)->release(views);
    }
    return false;
  };
  ASSERT_TRUE(client_->ping().has_value() || client_->ping().has_value());
  run_for(Milliseconds(1));
  EXPECT_TRUE(has_released);
  EXPECT_EQ(daemon_->lent_count(), 0U);
}

TEST_F(ReconnectTest, PingsOfTheDaemonAreAnswered) {
  ClientOptions options;
  options.server = "127.0.0.1:7000";
  client_.reset();
  connect(options);
  int pongs = 0;
  daemon_->intercept = [&](auto&, const wire::FrameView& frame) {
    pongs += frame.type == MessageType::kPong ? 1 : 0;
    return frame.type == MessageType::kPong;
  };
  daemon_->reply(*daemon_->sockets().back(), wire::Ping{}, 77);
  run_for(std::chrono::seconds(1));
  ASSERT_TRUE(client_->ping().has_value());
  run_for(Milliseconds(1));
  EXPECT_EQ(pongs, 1);
}

TEST_F(ReconnectTest, AnIdleTcpSessionThatWasClosedWorksAtTheNextCall) {
  ClientOptions options;
  options.server = "127.0.0.1:7000";
  client_.reset();
  connect(options);
  daemon_->break_sockets();
  run_for(std::chrono::hours(2));
  Blocks blocks(500, 2, 1'000);
  ASSERT_TRUE(client_->put(blocks.put_request(ns_)).has_value());
  EXPECT_EQ(blocks.statuses(), all(2, BlockStatus::kOk));
}

TEST_F(ReconnectTest, ARefusedHelloIsAnErrorWithTheDaemonsWords) {
  client_.reset();
  daemon_->refuses_hello = true;
  std::string message;
  const auto refused = try_connect({}, &message);
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().code, ErrorCode::kPermission);
  EXPECT_EQ(message, "not today");
}

TEST_F(ReconnectTest, ConnectSaysWhatIsWrong) {
  client_.reset();
  ClientOptions options;
  options.window = 0;
  std::string message;
  EXPECT_EQ(try_connect(options, &message).error().code, ErrorCode::kInvalid);
  EXPECT_EQ(message, "window");
  options = {};
  options.server = "unix:/sim/nobody.sock";
  EXPECT_EQ(try_connect(options).error().code, ErrorCode::kPeerGone);
  daemon_->is_silent = true;
  EXPECT_EQ(try_connect({}).error().code, ErrorCode::kTimeout);
  network_.fail_connects(ErrorCode::kPermission, 1);
  EXPECT_EQ(try_connect({}).error().code, ErrorCode::kPermission);
  network_.fail_connects(ErrorCode::kIo, 1);
  EXPECT_EQ(try_connect({}).error().code, ErrorCode::kIo);
}

TEST_F(ReconnectTest, AFullNamespaceTableIsNoSpaceAndSaysWhy) {
  daemon_->intercept = [this](ScriptedDaemon::Socket& socket, const wire::FrameView& frame) {
    if (frame.type != wire::MessageType::kNamespaceOpen) return false;
    wire::NamespaceOpenReply reply;
    reply.context.status = BlockStatus::kQuota;
    reply.message = "the table is full";
    daemon_->reply(socket, reply, frame.request_id);
    return true;
  };
  std::string message;
  const auto opened = client_->open_namespace(R"({"model":"n"})", &message);
  EXPECT_EQ(opened.error().code, ErrorCode::kNoSpace);
  EXPECT_EQ(message, "the table is full");
}

}  // namespace
}  // namespace cairn::client
