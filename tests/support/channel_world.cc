#include "tests/support/channel_world.h"

#include "base/check.h"
#include "tests/support/process_runner.h"
#include "tests/support/seed.h"
#include "tests/support/sim_network.h"

#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <utility>

namespace cairn::testing {
namespace {

using transport::Address;
using transport::Channel;
using transport::Connector;
using transport::Listener;
using transport::Poller;

class SocketWorld final : public ChannelWorld {
 public:
  explicit SocketWorld(bool is_unix, Nanoseconds spin = Nanoseconds(0))
      : is_unix_(is_unix),
        spin_(spin),
        connector_(transport::make_connector(clock_, spin)) {}

  const Clock& clock() const override { return clock_; }
  std::unique_ptr<Listener> listen() override {
    const std::string text = is_unix_ ? "unix:" + directory_ / "socket" : "127.0.0.1:0";
    return transport::listen(Address::parse(text).value()).value();
  }
  Connector& connector() override { return *connector_; }
  std::unique_ptr<Poller> make_poller() override {
    return transport::make_asio_poller(clock_, spin_).value();
  }
  bool has_descriptors() const override { return is_unix_; }
  int make_descriptor() override { return ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK); }
  bool is_same_object(int left, int right) override {
    std::uint64_t value = 1;
    if (::write(left, &value, sizeof(value)) != sizeof(value)) return false;
    return ::read(right, &value, sizeof(value)) == sizeof(value);
  }
  void close_descriptor(int fd) override { CAIRN_CHECK(::close(fd) == 0); }
  int make_watched_descriptor() override { return make_descriptor(); }
  void make_readable(int fd) override {
    const std::uint64_t value = 1;
    CAIRN_CHECK(::write(fd, &value, sizeof(value)) == sizeof(value));
  }
  void send_raw(Channel& from, Channel& to, std::span<const std::byte> bytes) override {
    static_cast<void>(to);
    const ssize_t sent = ::send(from.fd(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    CAIRN_CHECK(sent == static_cast<ssize_t>(bytes.size()));
  }

 private:
  bool is_unix_;
  Nanoseconds spin_;
  SystemClock clock_;
  TempDir directory_;
  std::unique_ptr<Connector> connector_;
};

class SimulatedWorld final : public ChannelWorld {
 public:
  SimulatedWorld()
      : network_(clock_, test_seed()),
        server_(network_.spawn()),
        client_(network_.spawn()),
        connector_(network_.make_connector(client_)) {}

  const Clock& clock() const override { return clock_; }
  std::unique_ptr<Listener> listen() override {
    return network_.listen(server_, Address::parse("unix:/sim/socket").value()).value();
  }
  Connector& connector() override { return *connector_; }
  std::unique_ptr<Poller> make_poller() override { return network_.make_poller(server_); }
  bool has_descriptors() const override { return true; }
  int make_descriptor() override {
    return network_.open_descriptor(client_, {SimDescriptorKind::kSlab, next_subject_++});
  }
  bool is_same_object(int left, int right) override {
    return network_.descriptor(left).value() == network_.descriptor(right).value();
  }
  void close_descriptor(int fd) override {
    network_.close_descriptor(network_.holds(client_, fd) ? client_ : server_, fd);
  }
  int make_watched_descriptor() override {
    return network_.open_descriptor(server_, {SimDescriptorKind::kPidfd, network_.spawn().value()});
  }
  void make_readable(int fd) override {
    const auto pid = static_cast<std::uint32_t>(network_.descriptor(fd).value().subject);
    network_.kill(SimProcessId(pid));
  }
  void send_raw(Channel& from, Channel& to, std::span<const std::byte> bytes) override {
    static_cast<void>(from);
    network_.inject(to, bytes);
  }

 private:
  ManualClock clock_;
  SimNetwork network_;
  SimProcessId server_;
  SimProcessId client_;
  std::unique_ptr<Connector> connector_;
  std::uint64_t next_subject_ = 1;
};

}  // namespace

std::unique_ptr<ChannelWorld> make_channel_world(ChannelWorldKind kind) {
  if (kind == ChannelWorldKind::kSimulated) return std::make_unique<SimulatedWorld>();
  if (kind == ChannelWorldKind::kUnixSpinning) {
    return std::make_unique<SocketWorld>(true, Milliseconds(1));
  }
  return std::make_unique<SocketWorld>(kind == ChannelWorldKind::kUnix);
}

std::string channel_world_name(ChannelWorldKind kind) {
  switch (kind) {
    case ChannelWorldKind::kUnix:
      return "Unix";
    case ChannelWorldKind::kUnixSpinning:
      return "UnixSpinning";
    case ChannelWorldKind::kTcp:
      return "Tcp";
    case ChannelWorldKind::kSimulated:
      break;
  }
  return "Simulated";
}

ChannelPair connect_to(ChannelWorld& world, Listener& listener) {
  ChannelPair pair;
  pair.client = world.connector().connect(listener.address(), Milliseconds(5'000)).value();
  const auto poller = world.make_poller();
  CAIRN_CHECK(poller->add(listener, 1).has_value());
  Poller::Event event;
  CAIRN_CHECK(poller->wait({&event, 1}, world.soon()) == 1);
  poller->remove(listener);
  pair.server = listener.accept().value();
  CAIRN_CHECK(pair.server != nullptr);
  return pair;
}

ChannelPair connect_pair(ChannelWorld& world) {
  auto listener = world.listen();
  ChannelPair pair = connect_to(world, *listener);
  pair.listener = std::move(listener);
  return pair;
}

std::vector<std::byte> make_frame(std::uint64_t request_id, std::size_t body_bytes) {
  SeededRandom random(request_id);
  std::vector<std::byte> body(body_bytes);
  for (std::byte& byte : body)
    byte = static_cast<std::byte>(random.next_u64());
  wire::FrameWriter writer;
  writer.begin(wire::MessageType::kPing, request_id);
  writer.bytes(body);
  const auto frame = writer.finish();
  return {frame.begin(), frame.end()};
}

bool is_frame(const wire::FrameView& frame, std::uint64_t request_id, std::size_t body_bytes) {
  const auto expected = make_frame(request_id, body_bytes);
  const auto body = std::span(expected).subspan(wire::kFrameHeaderBytes);
  return frame.request_id == request_id && frame.body.size() == body.size() &&
         std::memcmp(frame.body.data(), body.data(), body.size()) == 0;
}

Result<std::optional<transport::Received>> receive_soon(ChannelWorld& world, Channel& channel) {
  const MonotonicTime until = world.soon();
  for (;;) {
    CAIRN_TRY(auto received, channel.receive());
    if (received) return received;
    if (!world.connector().wait(channel, until)) return std::nullopt;
  }
}

Error receive_error(ChannelWorld& world, Channel& channel) {
  for (;;) {
    const auto received = receive_soon(world, channel);
    if (!received) return received.error();
    CAIRN_CHECK(received->has_value());
  }
}

}  // namespace cairn::testing
