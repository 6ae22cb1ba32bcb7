// Descriptors over a unix socket, from senders that keep the rules and from senders that do not.
#include "tests/support/channel_world.h"
#include "tests/transport/socket_fixture.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <unistd.h>

#include <vector>

namespace cairn::transport {
namespace {

using cairn::testing::make_frame;
using testing::HostilePair;
using testing::open_descriptors;
using testing::send_raw;

class SocketDescriptors : public ::testing::Test {
 protected:
  std::uint64_t receive_id() {
    const auto received = pair_.channel->receive();
    EXPECT_TRUE(received && *received);
    return received && *received ? (*received)->frame.request_id : 0;
  }
  Error receive_error() {
    for (;;) {
      const auto received = pair_.channel->receive();
      if (!received) return received.error();
      if (!*received) return {ErrorCode::kInvalid, 0, "nothing came"};
    }
  }
  // Closed by the destructor of what is returned.
  static std::vector<OwnedFd> make_owned(std::size_t count) {
    std::vector<OwnedFd> fds;
    for (std::size_t i = 0; i < count; ++i)
      fds.emplace_back(::eventfd(0, EFD_CLOEXEC));
    return fds;
  }
  static std::vector<int> numbers(const std::vector<OwnedFd>& fds) {
    std::vector<int> numbers;
    numbers.reserve(fds.size());
    for (const OwnedFd& fd : fds)
      numbers.push_back(fd.get());
    return numbers;
  }

  HostilePair pair_;
};

TEST_F(SocketDescriptors, BelongToTheirFrameThoughOneReadBringsEarlierFramesToo) {
  const auto fds = make_owned(2);
  send_raw(pair_.raw.get(), make_frame(1, 100), {});
  send_raw(pair_.raw.get(), make_frame(2, 100), {});
  send_raw(pair_.raw.get(), make_frame(3, 100), numbers(fds));
  send_raw(pair_.raw.get(), make_frame(4, 100), {});
  for (std::uint64_t id = 1; id <= 4; ++id) {
    EXPECT_EQ(receive_id(), id);
    const int taken = pair_.channel->take_descriptor();
    EXPECT_EQ(taken >= 0, id == 3) << id;
    if (taken >= 0) ::close(taken);
  }
}

TEST_F(SocketDescriptors, BelongToTheirFrameThoughItsRestComesLater) {
  const auto fds = make_owned(1);
  const auto frame = make_frame(2, 100);
  send_raw(pair_.raw.get(), make_frame(1, 100), {});
  send_raw(pair_.raw.get(), std::span(frame).first(1), numbers(fds));
  EXPECT_EQ(receive_id(), 1U);
  EXPECT_EQ(pair_.channel->take_descriptor(), -1);
  EXPECT_FALSE(pair_.channel->receive().value().has_value());
  send_raw(pair_.raw.get(), std::span(frame).subspan(1), {});
  send_raw(pair_.raw.get(), make_frame(3, 100), {});
  EXPECT_EQ(receive_id(), 2U);
  const OwnedFd taken(pair_.channel->take_descriptor());
  EXPECT_TRUE(taken.is_open());
  EXPECT_EQ(receive_id(), 3U);
  EXPECT_EQ(pair_.channel->take_descriptor(), -1);
}

TEST_F(SocketDescriptors, AreCloseOnExec) {
  const auto fds = make_owned(1);
  send_raw(pair_.raw.get(), make_frame(1, 10), numbers(fds));
  EXPECT_EQ(receive_id(), 1U);
  const OwnedFd taken(pair_.channel->take_descriptor());
  EXPECT_EQ(::fcntl(taken.get(), F_GETFD), FD_CLOEXEC);
}

TEST_F(SocketDescriptors, NobodyTookAreClosedByTheNextReceive) {
  const auto fds = make_owned(4);
  send_raw(pair_.raw.get(), make_frame(1, 10), numbers(fds));
  const std::size_t before = open_descriptors();
  EXPECT_EQ(receive_id(), 1U);
  EXPECT_EQ(open_descriptors(), before + 4);
  EXPECT_FALSE(pair_.channel->receive().value().has_value());
  EXPECT_EQ(open_descriptors(), before);
}

TEST_F(SocketDescriptors, OfManyFramesNeverPileUp) {
  const auto fds = make_owned(4);
  for (std::uint64_t id = 1; id <= 50; ++id) {
    send_raw(pair_.raw.get(), make_frame(id, 10), numbers(fds));
  }
  const std::size_t before = open_descriptors();
  for (std::uint64_t id = 1; id <= 50; ++id) {
    EXPECT_EQ(receive_id(), id);
    EXPECT_LE(open_descriptors(), before + 2 * kDescriptorsPerMessageMax);
  }
}

TEST_F(SocketDescriptors, BeyondTheBoundEndTheChannelAndAreAllClosed) {
  const auto fds = make_owned(kDescriptorsPerMessageMax + 1);
  send_raw(pair_.raw.get(), make_frame(1, 10), numbers(fds));
  const std::size_t before = open_descriptors();
  const Error error = receive_error();
  EXPECT_EQ(error.code, ErrorCode::kCorrupt);
  EXPECT_EQ(error.sys, 0);
  EXPECT_EQ(open_descriptors(), before);
}

TEST_F(SocketDescriptors, OfTheLargestMessageAreAllClosed) {
  constexpr std::size_t kKernelMax = 253;  // SCM_MAX_FD
  const auto fds = make_owned(1);
  const std::vector<int> same(kKernelMax, fds.front().get());
  send_raw(pair_.raw.get(), make_frame(1, 10), same);
  const std::size_t before = open_descriptors();
  EXPECT_EQ(receive_error().code, ErrorCode::kCorrupt);
  EXPECT_EQ(open_descriptors(), before);
}

TEST_F(SocketDescriptors, SentByteByByteWithOneFrameEndTheChannelAndAreAllClosed) {
  const auto fds = make_owned(1);
  const auto frame = make_frame(1, 100);
  const std::size_t before = open_descriptors();
  for (std::size_t i = 0; i < frame.size(); ++i) {
    send_raw(pair_.raw.get(), std::span(frame).subspan(i, 1), numbers(fds));
  }
  EXPECT_EQ(receive_error().code, ErrorCode::kCorrupt);
  EXPECT_EQ(open_descriptors(), before);
}

TEST_F(SocketDescriptors, ThatComeInPiecesWithOneFrameHaveTheSameBound) {
  const auto fds = make_owned(3);
  const auto frame = make_frame(1, 100);
  send_raw(pair_.raw.get(), std::span(frame).first(40), numbers(fds));
  send_raw(pair_.raw.get(), std::span(frame).subspan(40), numbers(fds));
  const std::size_t before = open_descriptors();
  EXPECT_EQ(receive_error().code, ErrorCode::kCorrupt);
  EXPECT_EQ(open_descriptors(), before);
}

TEST_F(SocketDescriptors, AreClosedWithTheChannel) {
  const auto fds = make_owned(3);
  const auto frame = make_frame(1, 100);
  const std::size_t before = open_descriptors();
  send_raw(pair_.raw.get(), std::span(frame).first(40), numbers(fds));
  EXPECT_FALSE(pair_.channel->receive().value().has_value());
  EXPECT_EQ(open_descriptors(), before + 3);
  pair_.channel.reset();
  EXPECT_EQ(open_descriptors(), before - 1);
}

// Lowers the limit of descriptors so that no more can be opened, for its lifetime.
class NoDescriptorsLeft {
 public:
  NoDescriptorsLeft() {
    CAIRN_CHECK(::getrlimit(RLIMIT_NOFILE, &old_) == 0);
    rlimit none = old_;
    none.rlim_cur = 1;
    CAIRN_CHECK(::setrlimit(RLIMIT_NOFILE, &none) == 0);
  }
  ~NoDescriptorsLeft() { CAIRN_CHECK(::setrlimit(RLIMIT_NOFILE, &old_) == 0); }
  NoDescriptorsLeft(const NoDescriptorsLeft&) = delete;
  NoDescriptorsLeft& operator=(const NoDescriptorsLeft&) = delete;

 private:
  rlimit old_{};
};

TEST_F(SocketDescriptors, LostForWantOfDescriptorsEndTheChannelWithTheReason) {
  const auto fds = make_owned(2);
  SocketChannel& channel = *pair_.channel;
  // Once with descriptors left: a sanitizer opens some at the first call.
  EXPECT_FALSE(channel.receive().value().has_value());
  send_raw(pair_.raw.get(), make_frame(1, 10), numbers(fds));
  const NoDescriptorsLeft none;
  const auto received = channel.receive();
  ASSERT_FALSE(received);
  EXPECT_EQ(received.error().code, ErrorCode::kCorrupt);
  EXPECT_EQ(received.error().sys, EMFILE);
}

TEST_F(SocketDescriptors, ThatCannotBeDuplicatedForTheQueueMakeItBusy) {
  const auto fds = make_owned(1);
  std::uint64_t id = 0;
  while (pair_.channel->queued() == ByteCount()) {
    ASSERT_TRUE(pair_.channel->send(make_frame(++id, 100'000)));
  }
  const ByteCount queued = pair_.channel->queued();
  {
    const NoDescriptorsLeft none;
    const Status sent = pair_.channel->send(make_frame(++id, 10), numbers(fds));
    ASSERT_FALSE(sent);
    EXPECT_EQ(sent.error().code, ErrorCode::kBusy);
    EXPECT_EQ(sent.error().sys, EMFILE);
  }
  EXPECT_EQ(pair_.channel->queued(), queued);
  EXPECT_TRUE(pair_.channel->send(make_frame(id, 10), numbers(fds)));
}

}  // namespace
}  // namespace cairn::transport
