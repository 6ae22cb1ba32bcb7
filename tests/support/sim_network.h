// The simulated network and its processes: one thread, no real time, everything from one seed. The
// same seams as the sockets (transport/channel.h, transport/process.h), proven by
// tests/contract/channel_contract_test.cc.
//
// Time moves only in step() and run_until(). Whoever waits (Connector::wait, Poller::wait) runs the
// world through the hook of set_step() until there is something or its time has come. Inside the
// hook nobody waits: a Poller::wait() there answers at once, and step() later moves the time to the
// `until` it was given.
#pragma once

#include "base/random.h"
#include "base/units.h"
#include "tests/support/manual_clock.h"
#include "transport/channel.h"
#include "transport/process.h"

#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace cairn::testing {

using SimProcessId = StrongId<struct SimProcessIdTag, std::uint32_t>;  // also its pid
enum class SimProcessState : std::uint8_t { kRunning, kStopped, kDead };

// What a simulated descriptor stands for. Its number is never that of a real one.
enum class SimDescriptorKind : std::uint8_t { kSlab, kPidfd, kSessionLock };
struct SimDescriptor {
  SimDescriptorKind kind{};
  std::uint64_t subject = 0;  // slab number, pid, session id: the caller's choice
  friend bool operator==(const SimDescriptor&, const SimDescriptor&) = default;
};
inline constexpr int kSimDescriptorMin = 1 << 28;
// Steps of one wait; a world that needs more is spinning.
inline constexpr int kSimStepsMax = 10'000'000;

struct SimNetworkOptions {
  // Of each message, drawn evenly; order within a direction is kept. At least 1 ns.
  Nanoseconds delay_min = std::chrono::microseconds(2);
  Nanoseconds delay_max = std::chrono::microseconds(200);
  // What a direction holds, in flight and unread, before a sender has to queue.
  ByteCount socket_bytes = 256_KiB;
};

class SimNetwork {
 public:
  SimNetwork(ManualClock& clock, std::uint64_t seed, SimNetworkOptions options = {});
  ~SimNetwork();  // after everything that was made here
  SimNetwork(const SimNetwork&) = delete;
  SimNetwork& operator=(const SimNetwork&) = delete;

  // ---- the seams, as one process uses them ----
  Result<std::unique_ptr<transport::Listener>> listen(SimProcessId process,
                                                      const transport::Address& address);
  std::unique_ptr<transport::Connector> make_connector(SimProcessId process);
  std::unique_ptr<transport::Poller> make_poller(SimProcessId process);
  std::unique_ptr<transport::ProcessWatch> make_process_watch(SimProcessId process);

  // ---- time ----
  // Moves to the next moment at which something arrives or a poller wants to be asked. False when
  // there is none.
  bool step();
  void run_until(MonotonicTime until);
  // What waiting does instead of sleeping: lets the world's loops take a turn, then usually calls
  // step(), and says whether anything can still happen. The default is step() alone.
  void set_step(std::function<bool()> hook) { hook_ = std::move(hook); }

  // ---- processes ----
  SimProcessId spawn();
  // The child holds every connection and descriptor that its parent holds.
  SimProcessId fork(SimProcessId parent);
  // stop() and resume() only change what state() says: whoever drives a process asks it first.
  void stop(SimProcessId process);
  void resume(SimProcessId process);
  // Closes what only this process holds; what it had sent still arrives.
  void kill(SimProcessId process);
  SimProcessState state(SimProcessId process) const;

  // ---- descriptors ----
  int open_descriptor(SimProcessId process, SimDescriptor what);
  int open_pidfd(SimProcessId process);  // of itself
  std::optional<SimDescriptor> descriptor(int fd) const;
  void close_descriptor(SimProcessId process, int fd);
  bool holds(SimProcessId process, int fd) const;
  std::size_t descriptor_count(SimProcessId process) const;
  // Whether a living process holds it or it is on its way to one.
  bool is_held(SimDescriptor what) const;

  // ---- faults ----
  // Breaks the connection: of what is in flight each way, the last `lost` pieces never arrive.
  void cut(transport::Channel& channel, std::size_t lost = 0);
  void cut_all(std::size_t lost = 0);
  // From now on nothing arrives any more, and neither side is told.
  void silence(transport::Channel& channel);
  // These bytes arrive at `channel`, after what is in flight, as if the other side had sent them.
  void inject(transport::Channel& channel, std::span<const std::byte> bytes);
  // The next `count` connects fail so.
  void fail_connects(ErrorCode code, int count);

 private:
  friend class SimChannel;
  friend class SimListener;
  friend class SimConnector;
  friend class SimPoller;

  struct Segment {
    MonotonicTime at;  // of arrival
    std::vector<std::byte> bytes;
    std::vector<SimDescriptor> descriptors;
    bool is_end = false;
  };
  struct Side {
    std::deque<Segment> inbound;  // in flight and arrived, in order
    std::size_t inbound_bytes = 0;
    std::set<SimProcessId> holders;
    SimProcessId opener;
  };
  struct Connection {
    std::array<Side, 2> sides;
    bool is_unix = false;
    bool is_silent = false;
    int owners = 2;  // channels that stand for a side, or will once they are accepted
  };
  struct Pending {
    MonotonicTime at;
    std::uint64_t connection = 0;
  };
  struct Backlog {
    SimProcessId process;
    bool is_closed = false;
    std::deque<Pending> waiting;
  };
  struct OpenDescriptor {
    SimDescriptor what;
    std::set<SimProcessId> holders;
  };

  MonotonicTime arrival(const Side& side);
  void push(Connection& connection, Side& to, Segment segment);
  void leave(Connection& connection, std::size_t side, SimProcessId process);
  void drop_owner(std::uint64_t id, std::size_t side, SimProcessId process);
  void close_backlog(const std::string& address);
  void cut_connection(Connection& connection, std::size_t lost);
  void advance_to(MonotonicTime time);
  // Runs the world until `is_ready` or `until`. The last answer of is_ready.
  bool run_world(const std::function<bool()>& is_ready, MonotonicTime until);

  ManualClock& clock_;
  SeededRandom random_;
  SimNetworkOptions options_;
  std::function<bool()> hook_;
  bool is_running_ = false;
  MonotonicTime limit_;
  std::map<SimProcessId, SimProcessState> processes_;
  std::map<std::uint64_t, Connection> connections_;
  std::map<std::string, Backlog> backlogs_;
  std::map<int, OpenDescriptor> descriptors_;
  std::map<const void*, MonotonicTime> timers_;  // of each poller
  std::uint64_t next_connection_ = 1;
  std::uint32_t next_process_ = 1000;
  std::uint16_t next_port_ = 40'000;
  int next_descriptor_ = kSimDescriptorMin;
  ErrorCode connect_failure_ = ErrorCode::kPeerGone;
  int connect_failures_ = 0;
};

}  // namespace cairn::testing
