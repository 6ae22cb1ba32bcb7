#include "transport/control/socket_channel.h"

#include "tests/support/channel_world.h"
#include "tests/transport/socket_fixture.h"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>

namespace cairn::transport {
namespace {

using cairn::testing::ChannelPair;
using cairn::testing::ChannelWorldKind;
using cairn::testing::connect_pair;
using cairn::testing::is_frame;
using cairn::testing::make_channel_world;
using cairn::testing::make_frame;
using testing::HostilePair;
using testing::send_raw;

int option(int socket, int level, int name) {
  int value = -1;
  socklen_t bytes = sizeof(value);
  EXPECT_EQ(::getsockopt(socket, level, name, &value, &bytes), 0);
  return value;
}

TEST(SocketChannel, KnowsTheProcessAtTheOtherEnd) {
  const HostilePair pair;
  EXPECT_EQ(pair.channel->peer().pid, static_cast<std::uint32_t>(::getpid()));
  EXPECT_EQ(pair.channel->peer().uid, ::getuid());
  EXPECT_EQ(pair.channel->peer().name, "pid " + std::to_string(::getpid()));
}

TEST(SocketChannel, RaisesNoSignalWhenThePeerIsGone) {
  // The default action of SIGPIPE would end this test.
  ASSERT_NE(::signal(SIGPIPE, SIG_DFL), SIG_ERR);
  HostilePair pair;
  pair.raw.reset();
  const Status sent = pair.channel->send(make_frame(1, 10));
  ASSERT_FALSE(sent);
  EXPECT_EQ(sent.error().code, ErrorCode::kPeerGone);
  EXPECT_EQ(sent.error().sys, EPIPE);
}

TEST(SocketChannel, KeepsAllFramesInOrderForAReaderThatIsSlow) {
  HostilePair pair;
  std::vector<std::byte> expected;
  std::uint64_t id = 0;
  while (pair.channel->queued() < 1_MiB) {
    const auto frame = make_frame(++id, 50'000);
    ASSERT_TRUE(pair.channel->send(frame));
    expected.insert(expected.end(), frame.begin(), frame.end());
  }
  std::vector<std::byte> got(expected.size());
  for (std::size_t at = 0; at < got.size();) {
    const ssize_t bytes = ::read(pair.raw.get(), &got[at], std::min(got.size() - at, 7'777UL));
    ASSERT_GT(bytes, 0);
    at += static_cast<std::size_t>(bytes);
    ASSERT_TRUE(pair.channel->flush());
  }
  EXPECT_EQ(pair.channel->queued(), ByteCount());
  EXPECT_TRUE(got == expected);
}

TEST(SocketChannel, SaysThatFramesLieInItsBuffer) {
  HostilePair pair;
  EXPECT_FALSE(pair.channel->has_buffered());
  auto both = make_frame(1, 10);
  const auto second = make_frame(2, 10);
  both.insert(both.end(), second.begin(), second.end());
  send_raw(pair.raw.get(), both, {});
  EXPECT_TRUE(pair.channel->receive().value().has_value());
  EXPECT_TRUE(pair.channel->has_buffered());
  EXPECT_TRUE(pair.channel->receive().value().has_value());
  EXPECT_FALSE(pair.channel->has_buffered());
}

TEST(SocketChannel, SaysThatAnErrorWaitsInItsBuffer) {
  HostilePair pair;
  auto bytes = make_frame(1, 10);
  bytes.insert(bytes.end(), 32, std::byte{0});
  send_raw(pair.raw.get(), bytes, {});
  EXPECT_TRUE(pair.channel->receive().value().has_value());
  EXPECT_TRUE(pair.channel->has_buffered());
  EXPECT_EQ(pair.channel->receive().error().code, ErrorCode::kCorrupt);
  EXPECT_TRUE(pair.channel->has_buffered());
}

TEST(SocketChannel, FindsWhatCameAfterItSaidThatNothingWasThere) {
  HostilePair pair;
  for (std::uint64_t id = 1; id <= 3; ++id) {
    send_raw(pair.raw.get(), make_frame(id, 10), {});
    EXPECT_TRUE(is_frame(pair.channel->receive().value().value().frame, id, 10));
    static_cast<void>(pair.channel->receive());
    EXPECT_FALSE(pair.channel->receive().value().has_value());
  }
}

TEST(SocketChannel, ReadsFramesOfEverySizeAcrossTheEndOfItsBuffer) {
  HostilePair pair;
  for (std::size_t i = 0; i < 100; ++i) {
    const std::size_t body = (i * 7'919) % 90'000;
    ASSERT_TRUE(pair.channel->queued() == ByteCount());
    const auto frame = make_frame(i + 1, body);
    send_raw(pair.raw.get(), std::span(frame).first(frame.size() / 2), {});
    EXPECT_FALSE(pair.channel->receive().value().has_value());
    send_raw(pair.raw.get(), std::span(frame).subspan(frame.size() / 2), {});
    auto received = pair.channel->receive();
    if (received && !*received) received = pair.channel->receive();
    ASSERT_TRUE(received && *received);
    ASSERT_TRUE(is_frame((*received)->frame, i + 1, body));
  }
}

TEST(SocketChannel, OverTcpHasNoDelayAndKeepsAlive) {
  const auto world = make_channel_world(ChannelWorldKind::kTcp);
  const ChannelPair pair = connect_pair(*world);
  for (const int socket : {pair.client->fd(), pair.server->fd()}) {
    EXPECT_EQ(option(socket, IPPROTO_TCP, TCP_NODELAY), 1);
    EXPECT_EQ(option(socket, SOL_SOCKET, SO_KEEPALIVE), 1);
    EXPECT_EQ(option(socket, IPPROTO_TCP, TCP_KEEPIDLE), 5);
    EXPECT_EQ(option(socket, IPPROTO_TCP, TCP_USER_TIMEOUT), 15'000);
  }
  EXPECT_EQ(pair.client->peer().name, pair.listener->address().to_string());
}

}  // namespace
}  // namespace cairn::transport
