// What every poller promises, whatever it waits on: transport/channel.h.
#include "tests/support/channel_world.h"

#include <gtest/gtest.h>

#include <array>
#include <set>
#include <string>
#include <vector>

namespace cairn::testing {
namespace {

using transport::Poller;

class PollerContract : public ::testing::TestWithParam<ChannelWorldKind> {
 protected:
  // One wait for one event; token 0 when none came in `patience`.
  Poller::Event wait_one(Nanoseconds patience = kPatience) {
    Poller::Event event;
    const std::size_t count = poller_->wait({&event, 1}, world_->clock().now() + patience);
    return count == 0 ? Poller::Event{} : event;
  }
  bool is_quiet() { return wait_one(Milliseconds(5)).token == 0; }
  void take_frame(transport::Channel& channel) {
    const auto received = receive_soon(*world_, channel);
    ASSERT_TRUE(received && *received);
  }

  std::unique_ptr<ChannelWorld> world_ = make_channel_world(GetParam());
  ChannelPair pair_ = connect_pair(*world_);
  std::unique_ptr<Poller> poller_ = world_->make_poller();
};

TEST_P(PollerContract, ReportsAChannelAgainUntilItIsRead) {
  ASSERT_TRUE(poller_->add(*pair_.server, 7));
  EXPECT_TRUE(is_quiet());
  ASSERT_TRUE(pair_.client->send(make_frame(1, 10)));
  for (int i = 0; i < 3; ++i) {
    const Poller::Event event = wait_one();
    EXPECT_EQ(event.token, 7U);
    EXPECT_TRUE(event.is_readable);
    EXPECT_FALSE(event.is_writable);
  }
  take_frame(*pair_.server);
  EXPECT_TRUE(is_quiet());
  ASSERT_TRUE(pair_.client->send(make_frame(2, 10)));
  EXPECT_EQ(wait_one().token, 7U);
  poller_->remove(*pair_.server);
}

TEST_P(PollerContract, ReportsAChannelWhoseNextFrameLiesInTheBufferAlready) {
  ASSERT_TRUE(poller_->add(*pair_.server, 7));
  for (std::uint64_t id = 1; id <= 3; ++id)
    ASSERT_TRUE(pair_.client->send(make_frame(id, 10)));
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(wait_one().token, 7U);
    take_frame(*pair_.server);
  }
  EXPECT_TRUE(is_quiet());
  poller_->remove(*pair_.server);
}

TEST_P(PollerContract, ReportsAHangUp) {
  ASSERT_TRUE(poller_->add(*pair_.server, 7));
  pair_.client.reset();
  EXPECT_TRUE(wait_one().is_readable);
  EXPECT_EQ(receive_error(*world_, *pair_.server).code, ErrorCode::kPeerGone);
  EXPECT_TRUE(wait_one().is_readable);
  poller_->remove(*pair_.server);
}

TEST_P(PollerContract, ReportsWritableOnlyWhileItIsWanted) {
  ASSERT_TRUE(poller_->add(*pair_.server, 7));
  EXPECT_TRUE(is_quiet());
  poller_->want_writable(*pair_.server, true);
  for (int i = 0; i < 2; ++i) {
    const Poller::Event event = wait_one();
    EXPECT_EQ(event.token, 7U);
    EXPECT_TRUE(event.is_writable);
    EXPECT_FALSE(event.is_readable);
  }
  poller_->want_writable(*pair_.server, false);
  EXPECT_TRUE(is_quiet());
  poller_->want_writable(*pair_.server, true);
  EXPECT_TRUE(wait_one().is_writable);
  poller_->remove(*pair_.server);
}

TEST_P(PollerContract, ReportsWritableWhenTheOtherSideHasReadOn) {
  constexpr std::size_t kBody = 200'000;
  std::uint64_t sent = 0;
  while (pair_.server->queued() < 2_MiB)
    ASSERT_TRUE(pair_.server->send(make_frame(++sent, kBody)));
  ASSERT_TRUE(poller_->add(*pair_.server, 7));
  poller_->want_writable(*pair_.server, true);
  // TCP may still be moving bytes between its own buffers.
  while (!is_quiet())
    ASSERT_TRUE(pair_.server->flush());

  for (std::uint64_t read = 0; read < sent;) {
    while (pair_.client->receive().value())
      ++read;
    if (pair_.server->queued() == ByteCount()) poller_->want_writable(*pair_.server, false);
    if (wait_one(Milliseconds(1)).is_writable) {
      ASSERT_TRUE(pair_.server->flush());
    }
    world_->connector().wait(*pair_.client, world_->clock().now() + Milliseconds(1));
  }
  poller_->remove(*pair_.server);
}

TEST_P(PollerContract, IsSilentAboutAChannelThatNobodyWantsToRead) {
  ASSERT_TRUE(poller_->add(*pair_.server, 7));
  poller_->want_readable(*pair_.server, false);
  ASSERT_TRUE(pair_.client->send(make_frame(1, 10)));
  EXPECT_TRUE(is_quiet());
  EXPECT_TRUE(is_quiet());
  poller_->want_readable(*pair_.server, true);
  EXPECT_EQ(wait_one().token, 7U);
  poller_->want_readable(*pair_.server, false);
  EXPECT_TRUE(is_quiet());
  poller_->want_writable(*pair_.server, true);
  const Poller::Event event = wait_one();
  EXPECT_TRUE(event.is_writable);
  EXPECT_FALSE(event.is_readable);
  poller_->remove(*pair_.server);
}

TEST_P(PollerContract, ReportsAListenerWhileAConnectionWaits) {
  ASSERT_TRUE(poller_->add(*pair_.listener, 3));
  EXPECT_TRUE(is_quiet());
  const auto address = pair_.listener->address();
  const auto second = world_->connector().connect(address, Milliseconds(5'000));
  ASSERT_TRUE(second);
  EXPECT_TRUE(wait_one().is_readable);
  EXPECT_EQ(wait_one().token, 3U);
  EXPECT_NE(pair_.listener->accept().value(), nullptr);
  EXPECT_TRUE(is_quiet());
  poller_->remove(*pair_.listener);
}

TEST_P(PollerContract, ReportsARawDescriptor) {
  const int fd = world_->make_watched_descriptor();
  ASSERT_TRUE(poller_->add_descriptor(fd, 5));
  EXPECT_TRUE(is_quiet());
  world_->make_readable(fd);
  const Poller::Event event = wait_one();
  EXPECT_EQ(event.token, 5U);
  EXPECT_TRUE(event.is_readable);
  EXPECT_EQ(wait_one().token, 5U);
  poller_->remove_descriptor(fd);
  EXPECT_TRUE(is_quiet());
  world_->close_descriptor(fd);
}

TEST_P(PollerContract, RefusesADescriptorThatIsNone) {
  const Status added = poller_->add_descriptor(1 << 20, 5);
  ASSERT_FALSE(added);
  EXPECT_EQ(added.error().code, ErrorCode::kIo);
  EXPECT_TRUE(is_quiet());
}

TEST_P(PollerContract, ForgetsWhatIsRemoved) {
  ASSERT_TRUE(poller_->add(*pair_.server, 7));
  ASSERT_TRUE(pair_.client->send(make_frame(1, 10)));
  EXPECT_EQ(wait_one().token, 7U);
  poller_->remove(*pair_.server);
  EXPECT_TRUE(is_quiet());
  ASSERT_TRUE(poller_->add(*pair_.server, 8));
  EXPECT_EQ(wait_one().token, 8U);
  poller_->remove(*pair_.server);
  pair_.server.reset();
  EXPECT_TRUE(is_quiet());
}

TEST_P(PollerContract, ReportsEachReadyChannelThoughTheSpaceIsSmall) {
  constexpr std::uint64_t kChannels = 5;
  std::vector<ChannelPair> pairs(kChannels);
  for (std::uint64_t i = 0; i < kChannels; ++i) {
    ChannelPair& pair = pairs[i];
    pair = connect_to(*world_, *pair_.listener);
    ASSERT_TRUE(poller_->add(*pair.server, i + 1));
    ASSERT_TRUE(pair.client->send(make_frame(1, 10)));
  }
  world_->connector().wait(*pair_.server, world_->clock().now() + Milliseconds(5));
  std::set<Poller::Token> seen;
  for (int waits = 0; waits < 8; ++waits) {
    std::array<Poller::Event, 2> events;
    const std::size_t count = poller_->wait(events, world_->soon());
    ASSERT_GE(count, 1U);
    for (std::size_t i = 0; i < count; ++i)
      seen.insert(events.at(i).token);
  }
  EXPECT_EQ(seen.size(), kChannels);
  for (const ChannelPair& pair : pairs)
    poller_->remove(*pair.server);
}

TEST_P(PollerContract, WaitsUntilItsTimeAndNoShorter) {
  const MonotonicTime until = world_->clock().now() + Milliseconds(15);
  EXPECT_EQ(wait_one(Milliseconds(15)).token, 0U);
  EXPECT_GE(world_->clock().now(), until);
}

TEST_P(PollerContract, AnswersAtOnceWhenItsTimeHasPassed) {
  ASSERT_TRUE(poller_->add(*pair_.server, 7));
  Poller::Event event;
  EXPECT_EQ(poller_->wait({&event, 1}, MonotonicTime{}), 0U);
  ASSERT_TRUE(pair_.client->send(make_frame(1, 10)));
  ASSERT_TRUE(world_->connector().wait(*pair_.server, world_->soon()));
  EXPECT_EQ(poller_->wait({&event, 1}, MonotonicTime{}), 1U);
  poller_->remove(*pair_.server);
}

TEST_P(PollerContract, AWakeBeforeTheWaitEndsItOnce) {
  poller_->wake();
  poller_->wake();
  Poller::Event event;
  const MonotonicTime begun = world_->clock().now();
  EXPECT_EQ(poller_->wait({&event, 1}, MonotonicTime{INT64_MAX}), 0U);
  EXPECT_LT(world_->clock().now(), begun + kPatience);
  EXPECT_TRUE(is_quiet());
  EXPECT_GE(world_->clock().now(), begun + Milliseconds(5));
}

INSTANTIATE_TEST_SUITE_P(Worlds,
                         PollerContract,
                         ::testing::Values(ChannelWorldKind::kUnix,
                                           ChannelWorldKind::kUnixSpinning,
                                           ChannelWorldKind::kTcp,
                                           ChannelWorldKind::kSimulated),
                         [](const auto& test) { return channel_world_name(test.param); });

}  // namespace
}  // namespace cairn::testing
