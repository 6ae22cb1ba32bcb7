// The simulated network beside the contracts: processes, faults, descriptors and replay.
#include "tests/support/sim_network.h"

#include "tests/support/channel_world.h"
#include "tests/support/seed.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

namespace cairn::testing {
namespace {

using transport::Address;
using transport::Channel;

class SimNetworkTest : public ::testing::Test {
 protected:
  Address address() const { return Address::parse("unix:/sim/socket").value(); }
  void connect() {
    listener_ = network_.listen(server_, address()).value();
    client_end_ = connector_->connect(address(), Milliseconds(100)).value();
    network_.run_until(clock_.now() + Milliseconds(1));
    server_end_ = listener_->accept().value();
    ASSERT_NE(server_end_, nullptr);
  }
  void settle() { network_.run_until(clock_.now() + Milliseconds(10)); }
  // The ids of the frames that have come, and the code that ended the channel, if any.
  static std::vector<std::uint64_t> drain(Channel& channel, ErrorCode* end = nullptr) {
    std::vector<std::uint64_t> ids;
    for (;;) {
      const auto received = channel.receive();
      if (!received && end != nullptr) *end = received.error().code;
      if (!received || !*received) return ids;
      ids.push_back((*received)->frame.request_id);
    }
  }

  ManualClock clock_;
  SimNetwork network_{clock_, test_seed()};
  SimProcessId server_ = network_.spawn();
  SimProcessId client_ = network_.spawn();
  std::unique_ptr<transport::Connector> connector_ = network_.make_connector(client_);
  std::unique_ptr<transport::Listener> listener_;
  std::unique_ptr<Channel> client_end_;
  std::unique_ptr<Channel> server_end_;
};

TEST_F(SimNetworkTest, DeliversNothingBeforeTimeMoves) {
  connect();
  ASSERT_TRUE(client_end_->send(make_frame(1, 10)));
  EXPECT_TRUE(drain(*server_end_).empty());
  settle();
  EXPECT_EQ(drain(*server_end_), std::vector<std::uint64_t>{1});
}

TEST_F(SimNetworkTest, StandsStillWhenNothingIsUnderWay) {
  connect();
  const MonotonicTime before = clock_.now();
  EXPECT_FALSE(network_.step());
  EXPECT_EQ(clock_.now(), before);
}

TEST_F(SimNetworkTest, LosesTheLastMessagesInFlightAtACut) {
  connect();
  for (std::uint64_t id = 1; id <= 20; ++id)
    ASSERT_TRUE(client_end_->send(make_frame(id, 100)));
  network_.cut(*client_end_, 5);
  settle();
  ErrorCode end = ErrorCode::kInvalid;
  const auto ids = drain(*server_end_, &end);
  EXPECT_LT(ids.size(), 20U);
  EXPECT_GE(ids.size(), 14U);
  EXPECT_EQ(end, ErrorCode::kPeerGone);
  EXPECT_EQ(client_end_->send(make_frame(21, 1)).error().code, ErrorCode::kPeerGone);
}

TEST_F(SimNetworkTest, CutsEveryConnection) {
  connect();
  const auto second = connector_->connect(address(), Milliseconds(1)).value();
  network_.cut_all();
  settle();
  for (Channel* channel : {client_end_.get(), server_end_.get(), second.get()}) {
    EXPECT_EQ(channel->receive().error().code, ErrorCode::kPeerGone);
  }
}

TEST_F(SimNetworkTest, SilencesAConnectionWithoutTellingAnybody) {
  connect();
  ASSERT_TRUE(client_end_->send(make_frame(1, 10)));
  network_.silence(*client_end_);
  ASSERT_TRUE(client_end_->send(make_frame(2, 10)));
  settle();
  EXPECT_TRUE(drain(*server_end_).empty());
  EXPECT_TRUE(drain(*client_end_).empty());
  client_end_.reset();
  settle();
  EXPECT_FALSE(server_end_->receive().value().has_value());
}

TEST_F(SimNetworkTest, FailsConnectsAsPlanned) {
  connect();
  network_.fail_connects(ErrorCode::kTimeout, 2);
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(connector_->connect(address(), Milliseconds(1)).error().code, ErrorCode::kTimeout);
  }
  EXPECT_TRUE(connector_->connect(address(), Milliseconds(1)));
}

TEST_F(SimNetworkTest, ASecondListenerIsRefused) {
  connect();
  EXPECT_EQ(network_.listen(server_, address()).error().code, ErrorCode::kExists);
}

TEST_F(SimNetworkTest, AKilledProcessHangsUpAfterWhatItHadSent) {
  connect();
  ASSERT_TRUE(client_end_->send(make_frame(1, 10)));
  network_.kill(client_);
  settle();
  ErrorCode end = ErrorCode::kInvalid;
  EXPECT_EQ(drain(*server_end_, &end), std::vector<std::uint64_t>{1});
  EXPECT_EQ(end, ErrorCode::kPeerGone);
  EXPECT_EQ(client_end_->send(make_frame(2, 10)).error().code, ErrorCode::kPeerGone);
}

TEST_F(SimNetworkTest, AnotherProcessListensWhereOneHasDied) {
  connect();
  const auto waiting = connector_->connect(address(), Milliseconds(1)).value();
  network_.kill(server_);
  EXPECT_EQ(connector_->connect(address(), Milliseconds(1)).error().code, ErrorCode::kPeerGone);
  EXPECT_EQ(listener_->accept().error().code, ErrorCode::kPeerGone);
  auto successor = network_.listen(network_.spawn(), address());
  ASSERT_TRUE(successor);
  EXPECT_EQ(listener_->accept().error().code, ErrorCode::kPeerGone);
  listener_.reset();
  settle();
  EXPECT_EQ(waiting->receive().error().code, ErrorCode::kPeerGone);
  client_end_ = connector_->connect(address(), Milliseconds(1)).value();
  settle();
  EXPECT_NE((*successor)->accept().value(), nullptr);
}

TEST_F(SimNetworkTest, AForkedChildKeepsTheConnectionOpen) {
  connect();
  const SimProcessId child = network_.fork(client_);
  network_.kill(client_);
  settle();
  EXPECT_FALSE(server_end_->receive().value().has_value());
  network_.kill(child);
  settle();
  EXPECT_EQ(server_end_->receive().error().code, ErrorCode::kPeerGone);
}

TEST_F(SimNetworkTest, AStoppedProcessHasNotExited) {
  const auto watch = network_.make_process_watch(server_);
  const int pidfd = network_.open_descriptor(server_, {SimDescriptorKind::kPidfd, client_.value()});
  EXPECT_TRUE(watch->verify(pidfd, {.pid = client_.value(), .uid = 0, .name = ""}));
  EXPECT_EQ(watch->verify(pidfd, {.pid = 1, .uid = 0, .name = ""}).error().code,
            ErrorCode::kPermission);
  network_.stop(client_);
  EXPECT_FALSE(watch->has_exited(pidfd));
  network_.resume(client_);
  network_.kill(client_);
  EXPECT_TRUE(watch->has_exited(pidfd));
  watch->close(pidfd);
}

TEST_F(SimNetworkTest, KnowsWhoHoldsADescriptor) {
  connect();
  const SimDescriptor lock{SimDescriptorKind::kSessionLock, 77};
  const int fd = network_.open_descriptor(server_, lock);
  ASSERT_TRUE(server_end_->send(make_frame(1, 10), {&fd, 1}));
  network_.close_descriptor(server_, fd);
  EXPECT_TRUE(network_.is_held(lock));
  settle();
  ASSERT_TRUE(client_end_->receive().value().has_value());
  const int taken = client_end_->take_descriptor();
  EXPECT_EQ(network_.descriptor(taken), lock);
  const SimProcessId child = network_.fork(client_);
  network_.kill(client_);
  EXPECT_TRUE(network_.is_held(lock));
  network_.kill(child);
  EXPECT_FALSE(network_.is_held(lock));
  EXPECT_EQ(network_.descriptor_count(child), 0U);
}

TEST_F(SimNetworkTest, WakesAPollerAtTheTimeItAskedForInsideTheHook) {
  connect();
  const auto poller = network_.make_poller(server_);
  const MonotonicTime wanted = clock_.now() + Milliseconds(3);
  std::vector<MonotonicTime> turns;
  network_.set_step([&] {
    transport::Poller::Event event;
    EXPECT_EQ(poller->wait({&event, 1}, wanted), 0U);
    turns.push_back(clock_.now());
    return network_.step();
  });
  EXPECT_FALSE(connector_->wait(*client_end_, clock_.now() + Milliseconds(5)));
  EXPECT_EQ(std::ranges::count(turns, wanted), 1);
  network_.set_step([this] { return network_.step(); });
}

// What a run with `seed` looks like: the moment at which each frame was first seen.
std::string run_of(std::uint64_t seed) {
  ManualClock clock;
  SimNetwork network(clock, seed);
  const SimProcessId server = network.spawn();
  const Address address = Address::parse("unix:/s").value();
  const auto listener = network.listen(server, address).value();
  const auto connector = network.make_connector(network.spawn());
  const auto client = connector->connect(address, Milliseconds(1)).value();
  network.run_until(clock.now() + Milliseconds(1));
  const auto end = listener->accept().value();
  std::string story;
  for (std::uint64_t id = 1; id <= 50; ++id) {
    EXPECT_TRUE(client->send(make_frame(id, 1'000)));
    network.step();
    while (end->receive().value())
      story += std::to_string(clock.now().ns) + ' ';
  }
  return story;
}

TEST(SimNetworkReplay, IsTheSameForTheSameSeedAndAnotherForAnother) {
  EXPECT_EQ(run_of(5), run_of(5));
  EXPECT_NE(run_of(5), run_of(6));
}

}  // namespace
}  // namespace cairn::testing
