// Listener, connector, poller and process watch of the simulated network.
#include "base/check.h"
#include "tests/support/sim_channel.h"
#include "tests/support/sim_network.h"

#include <algorithm>
#include <utility>

namespace cairn::testing {

using transport::Address;
using transport::Channel;
using transport::Listener;

class SimListener final : public Listener {
 public:
  SimListener(SimNetwork& network, Address address, SimProcessId process)
      : network_(network),
        address_(std::move(address)),
        process_(process) {}
  ~SimListener() override {
    if (backlog() != nullptr) network_.close_backlog(address_.to_string());
  }
  SimListener(const SimListener&) = delete;
  SimListener& operator=(const SimListener&) = delete;

  Result<std::unique_ptr<Channel>> accept() noexcept override {
    SimNetwork::Backlog* const own = backlog();
    if (own == nullptr || own->is_closed) return Error{ErrorCode::kPeerGone, 0, "sim: listener"};
    if (!is_readable()) return std::unique_ptr<Channel>();
    const std::uint64_t id = own->waiting.front().connection;
    own->waiting.pop_front();
    return std::make_unique<SimChannel>(network_, id, 1, process_);
  }
  int fd() const noexcept override { return -1; }
  Address address() const override { return address_; }
  bool is_readable() const {
    const SimNetwork::Backlog* const own = backlog();
    if (own == nullptr || own->is_closed) return true;
    return !own->waiting.empty() && own->waiting.front().at <= network_.clock_.now();
  }

 private:
  // nullptr once the process has died and another listens in its place.
  SimNetwork::Backlog* backlog() const {
    const auto found = network_.backlogs_.find(address_.to_string());
    const bool is_own = found != network_.backlogs_.end() && found->second.process == process_;
    return is_own ? &found->second : nullptr;
  }

  SimNetwork& network_;
  Address address_;
  SimProcessId process_;
};

class SimConnector final : public transport::Connector {
 public:
  SimConnector(SimNetwork& network, SimProcessId process)
      : network_(network),
        process_(process) {}

  Result<std::unique_ptr<Channel>> connect(const Address& address,
                                           Milliseconds timeout) noexcept override {
    static_cast<void>(timeout);  // it is answered at once
    if (network_.connect_failures_ > 0) {
      --network_.connect_failures_;
      return Error{network_.connect_failure_, 0, "sim: connect"};
    }
    const auto found = network_.backlogs_.find(address.to_string());
    if (found == network_.backlogs_.end() || found->second.is_closed) {
      return Error{ErrorCode::kPeerGone, 0, "sim: nobody listens"};
    }
    const std::uint64_t id = network_.next_connection_++;
    auto& connection = network_.connections_[id];
    connection.is_unix = address.is_unix;
    connection.sides[0].opener = process_;
    connection.sides[0].holders.insert(process_);
    connection.sides[1].opener = found->second.process;
    connection.sides[1].holders.insert(found->second.process);
    auto& waiting = found->second.waiting;
    MonotonicTime at = network_.arrival(connection.sides[1]);
    if (!waiting.empty()) at = std::max(at, waiting.back().at);
    waiting.push_back({at, id});
    return std::make_unique<SimChannel>(network_, id, 0, process_);
  }
  bool wait(Channel& channel, MonotonicTime until) noexcept override {
    const SimChannel& sim = SimChannel::of(channel);
    return network_.run_world(
        [&sim] { return sim.is_readable() || (sim.queued() > ByteCount() && sim.is_writable()); },
        until);
  }
  void pause(MonotonicTime until) noexcept override { network_.run_until(until); }

 private:
  SimNetwork& network_;
  SimProcessId process_;
};

class SimPoller final : public transport::Poller {
 public:
  SimPoller(SimNetwork& network, SimProcessId process)
      : network_(network),
        process_(process) {
    network_.timers_[this] = {};
  }
  ~SimPoller() override { network_.timers_.erase(this); }
  SimPoller(const SimPoller&) = delete;
  SimPoller& operator=(const SimPoller&) = delete;

  Status add(Channel& channel, Token token) noexcept override {
    watches_.push_back({.channel = &SimChannel::of(channel), .token = token});
    return {};
  }
  void remove(Channel& channel) noexcept override {
    std::erase_if(watches_, [&](const Watch& w) { return w.channel == &channel; });
  }
  Status add(Listener& listener, Token token) noexcept override {
    watches_.push_back({.listener = &static_cast<SimListener&>(listener), .token = token});
    return {};
  }
  void remove(Listener& listener) noexcept override {
    std::erase_if(watches_, [&](const Watch& w) { return w.listener == &listener; });
  }
  Status add_descriptor(int fd, Token token) noexcept override {
    if (!network_.descriptor(fd)) return Error{ErrorCode::kIo, 0, "sim: no such descriptor"};
    watches_.push_back({.fd = fd, .token = token});
    return {};
  }
  void remove_descriptor(int fd) noexcept override {
    std::erase_if(watches_, [&](const Watch& w) { return w.fd == fd; });
  }
  void want_writable(Channel& channel, bool wanted) noexcept override {
    find(channel).wants_writable = wanted;
  }
  void want_readable(Channel& channel, bool wanted) noexcept override {
    find(channel).wants_readable = wanted;
  }
  void wake() noexcept override { is_woken_ = true; }

  std::size_t wait(std::span<Event> out, MonotonicTime until) noexcept override {
    std::size_t count = 0;
    network_.timers_[this] = until;
    static_cast<void>(network_.run_world(
        [&] {
          count = collect(out);
          return count > 0 || is_woken_;
        },
        until));
    is_woken_ = false;
    return count;
  }

 private:
  struct Watch {
    const SimChannel* channel = nullptr;
    const SimListener* listener = nullptr;
    int fd = -1;
    Token token = 0;
    bool wants_readable = true;
    bool wants_writable = false;
  };

  Watch& find(const Channel& channel) {
    const auto found = std::ranges::find(watches_, &channel, &Watch::channel);
    CAIRN_CHECK(found != watches_.end());
    return *found;
  }
  bool is_readable(const Watch& watch) const {
    if (watch.channel != nullptr) return watch.wants_readable && watch.channel->is_readable();
    if (watch.listener != nullptr) return watch.listener->is_readable();
    const auto what = network_.descriptor(watch.fd);
    return what && what->kind == SimDescriptorKind::kPidfd &&
           network_.state(SimProcessId(static_cast<std::uint32_t>(what->subject))) ==
               SimProcessState::kDead;
  }
  // Begins behind the one reported last, so that a small `out` starves nobody.
  std::size_t collect(std::span<Event> out) {
    std::size_t count = 0;
    const std::size_t all = watches_.size();
    for (std::size_t i = 0; i < all && count < out.size(); ++i) {
      const Watch& watch = watches_.at((next_ + i) % all);
      const bool is_broken = watch.channel != nullptr && watch.channel->has_ended();
      const bool is_writable = watch.wants_writable && (is_broken || watch.channel->is_writable());
      const bool is_ready = is_readable(watch) || is_broken;
      if (is_ready || is_writable) out[count++] = {watch.token, is_ready, is_writable};
      if (count == out.size()) next_ = (next_ + i + 1) % all;
    }
    return count;
  }

  SimNetwork& network_;
  SimProcessId process_;
  std::vector<Watch> watches_;
  std::size_t next_ = 0;
  bool is_woken_ = false;
};

namespace {

class SimProcessWatch final : public transport::ProcessWatch {
 public:
  SimProcessWatch(SimNetwork& network, SimProcessId process)
      : network_(network),
        process_(process) {}

  Status verify(int fd, const Channel::Peer& peer) noexcept override {
    const auto what = network_.descriptor(fd);
    if (!what || what->kind != SimDescriptorKind::kPidfd) {
      return Error{ErrorCode::kInvalid, 0, "sim: no pidfd"};
    }
    if (what->subject != peer.pid) {
      return Error{ErrorCode::kPermission, 0, "sim: the pidfd of another process"};
    }
    return {};
  }
  bool has_exited(int fd) noexcept override {
    const auto what = network_.descriptor(fd);
    CAIRN_CHECK(what.has_value() && what->kind == SimDescriptorKind::kPidfd);
    const SimProcessId subject(static_cast<std::uint32_t>(what->subject));
    return network_.state(subject) == SimProcessState::kDead;
  }
  void close(int fd) noexcept override { network_.close_descriptor(process_, fd); }
  Result<int> open_own() noexcept override { return network_.open_pidfd(process_); }

 private:
  SimNetwork& network_;
  SimProcessId process_;
};

}  // namespace

Result<std::unique_ptr<Listener>> SimNetwork::listen(SimProcessId process, const Address& address) {
  Address chosen = address;
  if (!chosen.is_unix && chosen.port == 0) chosen.port = next_port_++;
  const auto found = backlogs_.find(chosen.to_string());
  if (found != backlogs_.end()) {
    if (!found->second.is_closed) return Error{ErrorCode::kExists, 0, "sim: listen"};
    close_backlog(chosen.to_string());
  }
  backlogs_.emplace(chosen.to_string(), Backlog{.process = process});
  return std::unique_ptr<Listener>(std::make_unique<SimListener>(*this, chosen, process));
}

void SimNetwork::close_backlog(const std::string& address) {
  const auto backlog = backlogs_.extract(address);
  for (const Pending& pending : backlog.mapped().waiting) {
    drop_owner(pending.connection, 1, backlog.mapped().process);
  }
}

std::unique_ptr<transport::Connector> SimNetwork::make_connector(SimProcessId process) {
  return std::make_unique<SimConnector>(*this, process);
}

std::unique_ptr<transport::Poller> SimNetwork::make_poller(SimProcessId process) {
  return std::make_unique<SimPoller>(*this, process);
}

std::unique_ptr<transport::ProcessWatch> SimNetwork::make_process_watch(SimProcessId process) {
  return std::make_unique<SimProcessWatch>(*this, process);
}

}  // namespace cairn::testing
