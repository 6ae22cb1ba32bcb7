// What every control channel promises, whatever it is made of: transport/channel.h.
#include "tests/support/channel_world.h"

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <string>
#include <vector>

namespace cairn::testing {
namespace {

class ChannelContract : public ::testing::TestWithParam<ChannelWorldKind> {
 protected:
  // What the server receives next, while the client goes on sending what it has queued.
  Result<std::optional<transport::Received>> next_frame() {
    for (const MonotonicTime until = world_->soon(); world_->clock().now() < until;) {
      auto received = pair_.server->receive();
      if (!received || *received) return received;
      const Status flushed = pair_.client ? pair_.client->flush() : Status{};
      EXPECT_TRUE(flushed);
      world_->connector().wait(*pair_.server, world_->clock().now() + Milliseconds(1));
    }
    return std::nullopt;
  }
  // Expects the frames `first` to `last` of `body_bytes` each, in order.
  void expect_frames(std::uint64_t first, std::uint64_t last, std::size_t body_bytes) {
    for (std::uint64_t id = first; id <= last; ++id) {
      const auto received = next_frame();
      ASSERT_TRUE(received && *received) << "frame " << id;
      ASSERT_TRUE(is_frame((*received)->frame, id, body_bytes)) << "frame " << id;
    }
  }
  // Sends frames from `first` on until the queue is full. The first one that was refused.
  std::uint64_t fill_queue(std::uint64_t first, std::size_t body_bytes) {
    for (std::uint64_t id = first;; ++id) {
      const Status sent = pair_.client->send(make_frame(id, body_bytes));
      if (sent) continue;
      EXPECT_EQ(sent.error().code, ErrorCode::kBusy);
      return id;
    }
  }

  std::unique_ptr<ChannelWorld> world_ = make_channel_world(GetParam());
  ChannelPair pair_ = connect_pair(*world_);
};

TEST_P(ChannelContract, DeliversFramesWholeAndInOrder) {
  for (std::uint64_t id = 1; id <= 200; ++id) {
    ASSERT_TRUE(pair_.client->send(make_frame(id, 100)));
  }
  expect_frames(1, 200, 100);
  ASSERT_TRUE(pair_.server->receive());
  EXPECT_FALSE(pair_.server->receive().value().has_value());
}

TEST_P(ChannelContract, CarriesBothDirectionsAtOnce) {
  ASSERT_TRUE(pair_.client->send(make_frame(1, 10)));
  ASSERT_TRUE(pair_.server->send(make_frame(2, 20)));
  expect_frames(1, 1, 10);
  const auto reply = receive_soon(*world_, *pair_.client);
  ASSERT_TRUE(reply && *reply);
  EXPECT_TRUE(is_frame((*reply)->frame, 2, 20));
}

TEST_P(ChannelContract, CarriesTheLongestFrameAndTheShortest) {
  const std::size_t longest = wire::kMessageBytesMax.value() - wire::kFrameHeaderBytes;
  ASSERT_TRUE(pair_.client->send(make_frame(1, longest)));
  ASSERT_TRUE(pair_.client->send(make_frame(2, 0)));
  expect_frames(1, 1, longest);
  expect_frames(2, 2, 0);
}

TEST_P(ChannelContract, GivesDescriptorsWithTheFrameTheyWereSentWith) {
  if (!world_->has_descriptors()) GTEST_SKIP() << "no descriptors on TCP";
  const std::array fds = {world_->make_descriptor(), world_->make_descriptor()};
  ASSERT_TRUE(pair_.client->send(make_frame(1, 50)));
  ASSERT_TRUE(pair_.client->send(make_frame(2, 50), fds));
  ASSERT_TRUE(pair_.client->send(make_frame(3, 50)));
  ASSERT_TRUE(pair_.client->send(make_frame(4, 50), std::span(fds).first(1)));

  expect_frames(1, 1, 50);
  EXPECT_EQ(pair_.server->take_descriptor(), -1);
  expect_frames(2, 2, 50);
  for (const int sent : fds) {
    const int taken = pair_.server->take_descriptor();
    ASSERT_GE(taken, 0);
    EXPECT_TRUE(world_->is_same_object(sent, taken));
    world_->close_descriptor(taken);
  }
  EXPECT_EQ(pair_.server->take_descriptor(), -1);
  expect_frames(3, 3, 50);
  EXPECT_EQ(pair_.server->take_descriptor(), -1);
  expect_frames(4, 4, 50);
  const int last = pair_.server->take_descriptor();
  EXPECT_TRUE(world_->is_same_object(fds[0], last));
  world_->close_descriptor(last);
  for (const int sent : fds)
    world_->close_descriptor(sent);
}

TEST_P(ChannelContract, KeepsDescriptorsOfAQueuedFrameThoughTheSenderClosesItsOwn) {
  if (!world_->has_descriptors()) GTEST_SKIP() << "no descriptors on TCP";
  constexpr std::size_t kBody = 100'000;
  const int kept = world_->make_descriptor();
  std::uint64_t id = 1;
  for (; pair_.client->queued() == ByteCount(); ++id) {
    ASSERT_TRUE(pair_.client->send(make_frame(id, kBody)));
  }
  const int sent = world_->make_descriptor();
  ASSERT_TRUE(pair_.client->send(make_frame(id, kBody), {&sent, 1}));
  world_->close_descriptor(sent);
  ASSERT_TRUE(pair_.client->send(make_frame(id + 1, kBody), {&kept, 1}));

  for (std::uint64_t next = 1; next <= id + 1; ++next) {
    expect_frames(next, next, kBody);
    const int taken = pair_.server->take_descriptor();
    EXPECT_EQ(taken >= 0, next >= id) << next;
    if (next == id + 1) {
      EXPECT_TRUE(world_->is_same_object(kept, taken));
    }
    if (taken >= 0) world_->close_descriptor(taken);
  }
  world_->close_descriptor(kept);
}

TEST_P(ChannelContract, RefusesDescriptorsWhereTheyCannotPass) {
  if (world_->has_descriptors()) GTEST_SKIP() << "descriptors pass here";
  const int fd = world_->make_descriptor();
  const Status sent = pair_.client->send(make_frame(1, 1), {&fd, 1});
  ASSERT_FALSE(sent);
  EXPECT_EQ(sent.error().code, ErrorCode::kUnsupported);
  EXPECT_EQ(pair_.client->queued(), ByteCount());
  world_->close_descriptor(fd);
}

TEST_P(ChannelContract, AnswersBusyAndQueuesNothingWhenTheQueueIsFull) {
  constexpr std::size_t kBody = 256 * 1024 - 100;
  const std::uint64_t refused = fill_queue(1, kBody);
  const ByteCount queued = pair_.client->queued();
  EXPECT_LE(queued, transport::kSendQueueMax);
  EXPECT_GT(queued + ByteCount(kBody + 200), transport::kSendQueueMax);
  EXPECT_FALSE(pair_.client->send(make_frame(refused, kBody)));
  EXPECT_EQ(pair_.client->queued(), queued);

  expect_frames(1, refused - 1, kBody);
  EXPECT_EQ(pair_.client->queued(), ByteCount());
  ASSERT_TRUE(pair_.client->send(make_frame(refused, 10)));
  expect_frames(refused, refused, 10);
}

TEST_P(ChannelContract, DeliversWhatWasSentBeforeTheOtherSideClosed) {
  for (std::uint64_t id = 1; id <= 10; ++id) {
    ASSERT_TRUE(pair_.client->send(make_frame(id, 1000)));
  }
  pair_.client.reset();
  expect_frames(1, 10, 1000);
  EXPECT_EQ(receive_error(*world_, *pair_.server).code, ErrorCode::kPeerGone);
  EXPECT_EQ(receive_error(*world_, *pair_.server).code, ErrorCode::kPeerGone);
}

TEST_P(ChannelContract, SaysThatThePeerIsGoneWhenItSends) {
  pair_.client.reset();
  EXPECT_EQ(receive_error(*world_, *pair_.server).code, ErrorCode::kPeerGone);
  Status sent;
  // TCP learns of it with the answer to the first segment.
  for (int tries = 0; tries < 100 && sent; ++tries) {
    sent = pair_.server->send(make_frame(1, 10));
    world_->connector().wait(*pair_.server, world_->clock().now() + Milliseconds(1));
  }
  ASSERT_FALSE(sent);
  EXPECT_EQ(sent.error().code, ErrorCode::kPeerGone);
  EXPECT_EQ(pair_.server->flush().error().code, ErrorCode::kPeerGone);
}

TEST_P(ChannelContract, CallsGarbageCorrupt) {
  ASSERT_TRUE(pair_.client->send(make_frame(1, 10)));
  const std::vector<std::byte> garbage(64, std::byte{0x5A});
  world_->send_raw(*pair_.client, *pair_.server, garbage);
  expect_frames(1, 1, 10);
  EXPECT_EQ(receive_error(*world_, *pair_.server).code, ErrorCode::kCorrupt);
  EXPECT_EQ(receive_error(*world_, *pair_.server).code, ErrorCode::kCorrupt);
}

TEST_P(ChannelContract, CallsAFrameWithAFlippedBitCorrupt) {
  auto frame = make_frame(1, 100);
  frame.back() ^= std::byte{1};
  world_->send_raw(*pair_.client, *pair_.server, frame);
  EXPECT_EQ(receive_error(*world_, *pair_.server).code, ErrorCode::kCorrupt);
}

TEST_P(ChannelContract, NamesAnotherVersion) {
  auto frame = make_frame(1, 10);
  frame[3] = std::byte{'2'};
  world_->send_raw(*pair_.client, *pair_.server, frame);
  EXPECT_EQ(receive_error(*world_, *pair_.server).code, ErrorCode::kVersion);
}

TEST_P(ChannelContract, RefusesATooLongFrameByItsHeaderAlone) {
  auto frame = make_frame(1, 0);
  const auto body_bytes =
      static_cast<std::uint32_t>(wire::kMessageBytesMax.value() - wire::kFrameHeaderBytes + 1);
  std::memcpy(frame.data() + 4, &body_bytes, sizeof(body_bytes));
  world_->send_raw(*pair_.client, *pair_.server, frame);
  EXPECT_EQ(receive_error(*world_, *pair_.server).code, ErrorCode::kTooLarge);
}

TEST_P(ChannelContract, TakesHalfAFrameAndAHangUpForAGonePeer) {
  const auto frame = make_frame(1, 100);
  for (const std::size_t bytes : {std::size_t{7}, std::size_t{32}, std::size_t{131}}) {
    pair_ = {};
    pair_ = connect_pair(*world_);
    world_->send_raw(*pair_.client, *pair_.server, std::span(frame).first(bytes));
    pair_.client.reset();
    EXPECT_EQ(receive_error(*world_, *pair_.server).code, ErrorCode::kPeerGone);
  }
}

TEST_P(ChannelContract, PutsAFrameTogetherThatComesByteByByte) {
  const auto frame = make_frame(9, 40);
  for (std::size_t i = 0; i < frame.size(); ++i) {
    ASSERT_FALSE(pair_.server->receive().value().has_value());
    world_->send_raw(*pair_.client, *pair_.server, std::span(frame).subspan(i, 1));
    ASSERT_TRUE(world_->connector().wait(*pair_.server, world_->soon()));
  }
  expect_frames(9, 9, 40);
}

TEST_P(ChannelContract, KeepsAViewValidUntilTheNextReceive) {
  for (std::uint64_t id = 1; id <= 60; ++id) {
    ASSERT_TRUE(pair_.client->send(make_frame(id, 2'000)));
    ASSERT_TRUE(pair_.client->flush());
    const auto received = receive_soon(*world_, *pair_.server);
    ASSERT_TRUE(received && *received);
    ASSERT_TRUE(pair_.client->send(make_frame(1'000 + id, 30'000)));
    ASSERT_TRUE(pair_.server->send(make_frame(id, 100)));
    ASSERT_TRUE(is_frame((*received)->frame, id, 2'000));
    expect_frames(1'000 + id, 1'000 + id, 30'000);
    ASSERT_TRUE(receive_soon(*world_, *pair_.client));
  }
}

TEST_P(ChannelContract, WaitsNoLongerThanItIsTold) {
  const MonotonicTime until = world_->clock().now() + Milliseconds(20);
  EXPECT_FALSE(world_->connector().wait(*pair_.server, until));
  EXPECT_GE(world_->clock().now(), until);
  ASSERT_TRUE(pair_.client->send(make_frame(1, 10)));
  EXPECT_TRUE(world_->connector().wait(*pair_.server, world_->soon()));
}

TEST_P(ChannelContract, WaitSeesAFrameThatLiesInTheBufferAlready) {
  for (std::uint64_t id = 1; id <= 3; ++id)
    ASSERT_TRUE(pair_.client->send(make_frame(id, 10)));
  for (std::uint64_t id = 1; id <= 3; ++id) {
    ASSERT_TRUE(world_->connector().wait(*pair_.server, world_->soon()));
    expect_frames(id, id, 10);
  }
}

TEST_P(ChannelContract, RefusesToConnectWhereNobodyListens) {
  const transport::Address address = pair_.listener->address();
  pair_.listener.reset();
  const auto channel = world_->connector().connect(address, Milliseconds(1'000));
  ASSERT_FALSE(channel);
  EXPECT_EQ(channel.error().code, ErrorCode::kPeerGone);
}

TEST_P(ChannelContract, AcceptsNothingWhenNobodyConnects) {
  const auto accepted = pair_.listener->accept();
  ASSERT_TRUE(accepted);
  EXPECT_EQ(*accepted, nullptr);
}

TEST_P(ChannelContract, KnowsWhetherItIsLocal) {
  EXPECT_EQ(pair_.client->is_local(), world_->has_descriptors());
  EXPECT_EQ(pair_.server->is_local(), world_->has_descriptors());
  EXPECT_EQ(pair_.server->peer().pid != 0, world_->has_descriptors());
  EXPECT_FALSE(pair_.server->peer().name.empty());
}

INSTANTIATE_TEST_SUITE_P(Worlds,
                         ChannelContract,
                         ::testing::Values(ChannelWorldKind::kUnix,
                                           ChannelWorldKind::kUnixSpinning,
                                           ChannelWorldKind::kTcp,
                                           ChannelWorldKind::kSimulated),
                         [](const auto& test) { return channel_world_name(test.param); });

}  // namespace
}  // namespace cairn::testing
