// What the control channel adds to a unix socket: the round trip of a 128 B frame between two
// processes, by blocking calls, by epoll on both sides, and by our channel with the poller in the
// server and poll(2) in the client. The three take turns in short rounds of one run, so that a
// noisy machine is noisy to all of them alike.
#include "base/clock.h"
#include "transport/channel.h"

#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace cairn::bench {
namespace {

constexpr std::size_t kFrameBytes = 128;
constexpr int kWarmUpPings = 200;
constexpr Milliseconds kPatience(5'000);

struct Options {
  int rounds = 40;
  int pings = 500;  // of each kind in a round
  bool is_json = false;
  double ratio_max = 0;  // over epoll; 0: not checked
};

[[noreturn]] void give_up(const char* what) {
  std::fprintf(stderr, "socket_rtt: %s\n", what);
  std::_Exit(1);
}

// One kind of connection, seen from the client.
class Echo {
 public:
  Echo() = default;
  Echo(const Echo&) = delete;
  Echo& operator=(const Echo&) = delete;
  virtual ~Echo() = default;
  virtual void ping() = 0;
};

// Runs `serve` in a child that ends when its socket is closed.
template <typename Serve>
void start_child(Serve serve) {
  const pid_t parent = ::getpid();
  const pid_t child = ::fork();
  if (child < 0) give_up("fork");
  if (child > 0) return;
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() == parent) serve();
  ::_exit(0);
}

std::array<int, 2> make_pair() {
  std::array<int, 2> pair{};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair.data()) != 0) give_up("socketpair");
  return pair;
}

bool read_whole(int fd, std::span<std::byte> bytes) {
  return ::recv(fd, bytes.data(), bytes.size(), MSG_WAITALL) == static_cast<ssize_t>(bytes.size());
}

bool write_whole(int fd, std::span<const std::byte> bytes) {
  return ::send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(bytes.size());
}

class BlockingEcho final : public Echo {
 public:
  BlockingEcho() {
    const auto pair = make_pair();
    start_child([&] {
      ::close(pair[0]);
      std::array<std::byte, kFrameBytes> bytes{};
      while (read_whole(pair[1], bytes) && write_whole(pair[1], bytes)) {
      }
    });
    ::close(pair[1]);
    fd_ = pair[0];
  }
  ~BlockingEcho() override { ::close(fd_); }
  BlockingEcho(const BlockingEcho&) = delete;
  BlockingEcho& operator=(const BlockingEcho&) = delete;
  void ping() override {
    std::array<std::byte, kFrameBytes> bytes{};
    if (!write_whole(fd_, bytes) || !read_whole(fd_, bytes)) give_up("blocking echo");
  }

 private:
  int fd_;
};

int make_epoll(int fd) {
  const int epoll = ::epoll_create1(EPOLL_CLOEXEC);
  epoll_event event{};
  event.events = EPOLLIN;
  if (epoll < 0 || ::epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) != 0) give_up("epoll");
  return epoll;
}

bool wait_epoll(int epoll) {
  epoll_event event{};
  return ::epoll_wait(epoll, &event, 1, -1) == 1;
}

class EpollEcho final : public Echo {
 public:
  EpollEcho() {
    const auto pair = make_pair();
    start_child([&] {
      ::close(pair[0]);
      const int epoll = make_epoll(pair[1]);
      std::array<std::byte, kFrameBytes> bytes{};
      while (wait_epoll(epoll) && read_whole(pair[1], bytes) && write_whole(pair[1], bytes)) {
      }
    });
    ::close(pair[1]);
    fd_ = pair[0];
    epoll_ = make_epoll(fd_);
  }
  ~EpollEcho() override {
    ::close(epoll_);
    ::close(fd_);
  }
  EpollEcho(const EpollEcho&) = delete;
  EpollEcho& operator=(const EpollEcho&) = delete;
  void ping() override {
    std::array<std::byte, kFrameBytes> bytes{};
    if (!write_whole(fd_, bytes) || !wait_epoll(epoll_) || !read_whole(fd_, bytes)) {
      give_up("epoll echo");
    }
  }

 private:
  int fd_;
  int epoll_;
};

std::span<const std::byte> make_frame(wire::FrameWriter& writer, std::uint64_t request_id) {
  constexpr std::array<std::byte, kFrameBytes - wire::kFrameHeaderBytes> kBody{};
  writer.begin(wire::MessageType::kPing, request_id);
  writer.bytes(kBody);
  return writer.finish();
}

void serve_channel(transport::Listener& listener) {
  const SystemClock clock;
  auto poller = transport::make_asio_poller(clock);
  if (!poller || !(*poller)->add(listener, 1)) give_up("poller");
  std::array<transport::Poller::Event, 16> events;
  std::unique_ptr<transport::Channel> channel;
  wire::FrameWriter writer;
  for (;;) {
    static_cast<void>((*poller)->wait(events, clock.now() + Nanoseconds(kPatience)));
    if (!channel) {
      auto accepted = listener.accept();
      if (!accepted || !*accepted || !(*poller)->add(**accepted, 2)) continue;
      channel = std::move(*accepted);
    }
    for (;;) {
      const auto received = channel->receive();
      if (!received) {
        (*poller)->remove(*channel);
        (*poller)->remove(listener);
        return;
      }
      if (!*received) break;
      if (!channel->send(make_frame(writer, (*received)->frame.request_id))) return;
    }
  }
}

class ChannelEcho final : public Echo {
 public:
  ChannelEcho()
      : connector_(transport::make_connector(clock_)) {
    std::array<char, 32> directory{"/tmp/socket_rtt.XXXXXX"};
    if (::mkdtemp(directory.data()) == nullptr) give_up("mkdtemp");
    transport::Address address;
    address.is_unix = true;
    address.path = std::string(directory.data()) + "/socket";
    auto listener = transport::listen(address);
    if (!listener) give_up(listener.error().what);
    start_child([&] { serve_channel(**listener); });
    auto channel = connector_->connect(address, kPatience);
    if (!channel) give_up(channel.error().what);
    channel_ = std::move(*channel);
    listener->reset();
    ::rmdir(directory.data());
  }
  void ping() override {
    if (!channel_->send(make_frame(writer_, ++request_id_))) give_up("channel send");
    for (;;) {
      const auto received = channel_->receive();
      if (!received) give_up("channel receive");
      if (*received) break;
      if (!connector_->wait(*channel_, clock_.now() + Nanoseconds(kPatience))) {
        give_up("channel wait");
      }
    }
  }

 private:
  SystemClock clock_;
  std::unique_ptr<transport::Connector> connector_;
  std::unique_ptr<transport::Channel> channel_;
  wire::FrameWriter writer_;
  std::uint64_t request_id_ = 0;
};

struct Kind {
  const char* name = "";
  std::unique_ptr<Echo> echo;
  std::vector<double> us;
  double p50 = 0;
  double p99 = 0;
};

void measure(Kind& kind, int pings) {
  const SystemClock clock;
  for (int i = 0; i < pings; ++i) {
    const MonotonicTime begun = clock.now();
    kind.echo->ping();
    kind.us.push_back(static_cast<double>((clock.now() - begun).count()) / 1e3);
  }
}

double quantile(std::vector<double>& values, double q) {
  const auto at = static_cast<std::ptrdiff_t>(q * static_cast<double>(values.size() - 1));
  std::nth_element(values.begin(), values.begin() + at, values.end());
  return values[static_cast<std::size_t>(at)];
}

Options parse(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string_view name = argv[i];
    const char* const value = i + 1 < argc ? argv[i + 1] : "";
    if (name == "--json") {
      options.is_json = true;
      continue;
    }
    if (name == "--rounds") {
      options.rounds = std::atoi(value);
    } else if (name == "--pings") {
      options.pings = std::atoi(value);
    } else if (name == "--ratio-max") {
      options.ratio_max = std::atof(value);
    } else {
      give_up("options: --rounds N --pings N --ratio-max R --json");
    }
    ++i;
  }
  if (options.rounds < 1 || options.pings < 1) give_up("--rounds and --pings are at least 1");
  return options;
}

}  // namespace

int run_program(int argc, char** argv) {
  const Options options = parse(argc, argv);
  std::array<Kind, 3> kinds;
  kinds[0] = {.name = "blocking", .echo = std::make_unique<BlockingEcho>()};
  kinds[1] = {.name = "epoll", .echo = std::make_unique<EpollEcho>()};
  kinds[2] = {.name = "channel", .echo = std::make_unique<ChannelEcho>()};
  for (Kind& kind : kinds) {
    measure(kind, kWarmUpPings);
    kind.us.clear();
  }
  for (int round = 0; round < options.rounds; ++round) {
    for (Kind& kind : kinds)
      measure(kind, options.pings);
  }
  for (Kind& kind : kinds) {
    kind.p50 = quantile(kind.us, 0.50);
    kind.p99 = quantile(kind.us, 0.99);
  }
  const double over_blocking = kinds[2].p50 / kinds[0].p50;
  const double over_epoll = kinds[2].p50 / kinds[1].p50;
  if (options.is_json) {
    std::printf("{");
    for (const Kind& kind : kinds) {
      std::printf("\"%s_us\":{\"p50\":%.2f,\"p99\":%.2f},", kind.name, kind.p50, kind.p99);
    }
    std::printf(
        "\"channel_over_blocking\":%.3f,\"channel_over_epoll\":%.3f}\n", over_blocking, over_epoll);
  } else {
    for (const Kind& kind : kinds) {
      std::printf("%-9s p50 %7.2f us  p99 %7.2f us\n", kind.name, kind.p50, kind.p99);
    }
    std::printf(
        "channel / blocking %.3f, channel / epoll %.3f (medians)\n", over_blocking, over_epoll);
  }
  if (options.ratio_max > 0 && over_epoll > options.ratio_max) {
    std::fprintf(stderr, "socket_rtt: channel / epoll is over %.2f\n", options.ratio_max);
    return 1;
  }
  return 0;
}

}  // namespace cairn::bench

int main(int argc, char** argv) {
  return cairn::bench::run_program(argc, argv);
}
