#include "tests/support/sim_network.h"

#include "base/check.h"
#include "tests/support/sim_channel.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace cairn::testing {
namespace {

constexpr MonotonicTime kNever{std::numeric_limits<std::int64_t>::max()};

}  // namespace

SimNetwork::SimNetwork(ManualClock& clock, std::uint64_t seed, SimNetworkOptions options)
    : clock_(clock),
      random_(seed),
      options_(options),
      hook_([this] { return step(); }),
      limit_(kNever) {
  CAIRN_CHECK(options.delay_min >= Nanoseconds(1) && options.delay_max >= options.delay_min);
}

SimNetwork::~SimNetwork() {
  CAIRN_CHECK(timers_.empty());
}

void SimNetwork::advance_to(MonotonicTime time) {
  if (time > clock_.now()) clock_.advance(time - clock_.now());
}

bool SimNetwork::step() {
  const MonotonicTime now = clock_.now();
  MonotonicTime next = kNever;
  const auto consider = [now, &next](MonotonicTime at) {
    if (at > now) next = std::min(next, at);
  };
  for (const auto& [id, connection] : connections_) {
    for (const Side& side : connection.sides) {
      const auto next_arrival = std::ranges::upper_bound(side.inbound, now, {}, &Segment::at);
      if (next_arrival != side.inbound.end()) consider(next_arrival->at);
    }
  }
  for (const auto& [address, backlog] : backlogs_) {
    for (const Pending& pending : backlog.waiting)
      consider(pending.at);
  }
  for (const auto& [poller, until] : timers_)
    consider(until);
  if (next == kNever) return false;
  advance_to(std::min(next, limit_));
  return true;
}

void SimNetwork::run_until(MonotonicTime until) {
  static_cast<void>(run_world([] { return false; }, until));
}

bool SimNetwork::run_world(const std::function<bool()>& is_ready, MonotonicTime until) {
  if (is_ready()) return true;
  if (is_running_) return false;
  is_running_ = true;
  limit_ = until;
  bool has_come = false;
  for (int steps = 0; !has_come && clock_.now() < until; ++steps) {
    CAIRN_CHECK(steps < kSimStepsMax);
    const bool may_go_on = hook_();
    has_come = is_ready();
    if (has_come || may_go_on) continue;
    CAIRN_CHECK(until != kNever);  // nothing will ever happen, and somebody waits for it
    advance_to(until);
    has_come = is_ready();
  }
  limit_ = kNever;
  is_running_ = false;
  return has_come;
}

SimProcessId SimNetwork::spawn() {
  const SimProcessId process(next_process_++);
  processes_.emplace(process, SimProcessState::kRunning);
  return process;
}

SimProcessId SimNetwork::fork(SimProcessId parent) {
  const SimProcessId child = spawn();
  const auto join = [parent, child](std::set<SimProcessId>& holders) {
    if (holders.contains(parent)) holders.insert(child);
  };
  for (auto& [id, connection] : connections_) {
    for (Side& side : connection.sides)
      join(side.holders);
  }
  for (auto& [fd, open] : descriptors_)
    join(open.holders);
  return child;
}

void SimNetwork::stop(SimProcessId process) {
  CAIRN_CHECK(state(process) == SimProcessState::kRunning);
  processes_[process] = SimProcessState::kStopped;
}

void SimNetwork::resume(SimProcessId process) {
  CAIRN_CHECK(state(process) == SimProcessState::kStopped);
  processes_[process] = SimProcessState::kRunning;
}

void SimNetwork::kill(SimProcessId process) {
  CAIRN_CHECK(state(process) != SimProcessState::kDead);
  processes_[process] = SimProcessState::kDead;
  for (auto& [id, connection] : connections_) {
    for (std::size_t side = 0; side < 2; ++side)
      leave(connection, side, process);
  }
  for (auto& [address, backlog] : backlogs_) {
    if (backlog.process == process) backlog.is_closed = true;
  }
  for (auto& [fd, open] : descriptors_)
    open.holders.erase(process);
  std::erase_if(descriptors_, [](const auto& entry) { return entry.second.holders.empty(); });
}

SimProcessState SimNetwork::state(SimProcessId process) const {
  return processes_.at(process);
}

int SimNetwork::open_descriptor(SimProcessId process, SimDescriptor what) {
  descriptors_.emplace(next_descriptor_, OpenDescriptor{what, {process}});
  return next_descriptor_++;
}

int SimNetwork::open_pidfd(SimProcessId process) {
  return open_descriptor(process, {SimDescriptorKind::kPidfd, process.value()});
}

std::optional<SimDescriptor> SimNetwork::descriptor(int fd) const {
  const auto found = descriptors_.find(fd);
  if (found == descriptors_.end()) return std::nullopt;
  return found->second.what;
}

void SimNetwork::close_descriptor(SimProcessId process, int fd) {
  const auto found = descriptors_.find(fd);
  CAIRN_CHECK(found != descriptors_.end() && found->second.holders.erase(process) == 1);
  if (found->second.holders.empty()) descriptors_.erase(found);
}

bool SimNetwork::holds(SimProcessId process, int fd) const {
  const auto found = descriptors_.find(fd);
  return found != descriptors_.end() && found->second.holders.contains(process);
}

std::size_t SimNetwork::descriptor_count(SimProcessId process) const {
  return static_cast<std::size_t>(std::ranges::count_if(
      descriptors_, [process](const auto& e) { return e.second.holders.contains(process); }));
}

bool SimNetwork::is_held(SimDescriptor what) const {
  const auto is_it = [what](const auto& entry) { return entry.second.what == what; };
  if (std::ranges::any_of(descriptors_, is_it)) return true;
  for (const auto& [id, connection] : connections_) {
    for (const Side& side : connection.sides) {
      if (side.holders.empty()) continue;
      for (const Segment& segment : side.inbound) {
        if (std::ranges::count(segment.descriptors, what) > 0) return true;
      }
    }
  }
  return false;
}

MonotonicTime SimNetwork::arrival(const Side& side) {
  const auto spread =
      static_cast<std::uint64_t>((options_.delay_max - options_.delay_min).count()) + 1;
  const auto drawn = static_cast<std::int64_t>(random_.below(spread));
  const MonotonicTime at = clock_.now() + options_.delay_min + Nanoseconds(drawn);
  return side.inbound.empty() ? at : std::max(at, side.inbound.back().at);
}

void SimNetwork::push(Connection& connection, Side& to, Segment segment) {
  const bool has_ended = !to.inbound.empty() && to.inbound.back().is_end;
  if (connection.is_silent || has_ended) return;
  segment.at = arrival(to);
  to.inbound_bytes += segment.bytes.size();
  to.inbound.push_back(std::move(segment));
}

void SimNetwork::leave(Connection& connection, std::size_t side, SimProcessId process) {
  Side& own = connection.sides.at(side);
  if (own.holders.erase(process) == 0 || !own.holders.empty()) return;
  push(connection, connection.sides.at(1 - side), {.is_end = true});
}

void SimNetwork::drop_owner(std::uint64_t id, std::size_t side, SimProcessId process) {
  Connection& connection = connections_.at(id);
  leave(connection, side, process);
  if (--connection.owners == 0) connections_.erase(id);
}

void SimNetwork::cut_connection(Connection& connection, std::size_t lost) {
  for (Side& side : connection.sides) {
    for (std::size_t i = 0; i < lost && !side.inbound.empty(); ++i) {
      if (side.inbound.back().at <= clock_.now()) break;  // it has arrived
      side.inbound_bytes -= side.inbound.back().bytes.size();
      side.inbound.pop_back();
    }
    push(connection, side, {.is_end = true});
  }
}

void SimNetwork::cut(transport::Channel& channel, std::size_t lost) {
  cut_connection(connections_.at(SimChannel::of(channel).connection()), lost);
}

void SimNetwork::cut_all(std::size_t lost) {
  for (auto& [id, connection] : connections_)
    cut_connection(connection, lost);
}

void SimNetwork::silence(transport::Channel& channel) {
  Connection& connection = connections_.at(SimChannel::of(channel).connection());
  connection.is_silent = true;
  for (Side& side : connection.sides) {
    std::erase_if(side.inbound, [this](const Segment& s) { return s.at > clock_.now(); });
    side.inbound_bytes = 0;
    for (const Segment& segment : side.inbound)
      side.inbound_bytes += segment.bytes.size();
  }
}

void SimNetwork::inject(transport::Channel& channel, std::span<const std::byte> bytes) {
  const SimChannel& to = SimChannel::of(channel);
  Connection& connection = connections_.at(to.connection());
  push(connection, connection.sides.at(to.side()), {.bytes = {bytes.begin(), bytes.end()}});
}

void SimNetwork::fail_connects(ErrorCode code, int count) {
  connect_failure_ = code;
  connect_failures_ = count;
}

}  // namespace cairn::testing
