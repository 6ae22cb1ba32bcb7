// The node: sessions with clients over a store. It composes what it is given and owns no device:
// single-threaded under the simulated world (loops = pollers given, stepped by hand), or one thread
// a loop in the daemon.
#pragma once

#include "base/clock.h"
#include "base/random.h"
#include "base/result.h"
#include "base/units.h"
#include "server/metrics.h"
#include "server/namespaces.h"
#include "storage/pool.h"
#include "storage/store.h"
#include "transport/channel.h"
#include "transport/wire/messages.h"

#include <cstdint>
#include <memory>
#include <span>
#include <string>

namespace cairn::server {

struct NodeOptions {
  // Bytes of frames that one client process may hold lent or reserved. Default 25 % of the pool, at
  // least two batches of 64 of its largest block, at most the pool less 64 MiB (PROTOCOL
  // "Sessions").
  ByteCount lent_max;
  bool allow_weak_keys = false;
  std::uint32_t sessions_max = 1'024;
  // A TCP session that is silent for this long after a ping is closed.
  Milliseconds tcp_ping = Milliseconds(5'000);
  Milliseconds tcp_timeout = Milliseconds(15'000);
  // How often a loop does its housekeeping (sweep, predecessors, retention).
  Milliseconds housekeeping = Milliseconds(200);
  wire::BootId boot;
  std::string version;
};

// What a node asks of the machine about a process behind a descriptor it was sent.
class ClientProcess {
 public:
  ClientProcess() = default;
  ClientProcess(const ClientProcess&) = delete;
  ClientProcess& operator=(const ClientProcess&) = delete;
  virtual ~ClientProcess() = default;
  // True if `descriptor` watches the whole process that connected as `peer` (and nothing else);
  // then it becomes readable in a Poller when that process is gone.
  virtual bool is_process_of(int descriptor,
                             const transport::Channel::Peer& peer) const noexcept = 0;
  virtual bool has_exited(int descriptor) const noexcept = 0;
  virtual void close(int descriptor) noexcept = 0;
};

struct NodeParts {
  storage::Store* store = nullptr;
  storage::Tier* dram = nullptr;
  storage::Pool* pool = nullptr;
  storage::PoolMemory* pool_memory = nullptr;
  NamespaceRegistry* namespaces = nullptr;
  ClientProcess* processes = nullptr;
  NodeMetrics* metrics = nullptr;
  const Clock* clock = nullptr;
  Random* random = nullptr;  // session ids and secrets; used under the node's mutex
};

// One a loop; see run_once().
class Node {
 public:
  static Result<std::unique_ptr<Node>> create(const NodeOptions& options,
                                              const NodeParts& parts,
                                              std::span<transport::Poller* const> pollers);
  ~Node();
  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;

  // Loop 0 accepts on it and spreads channels over the loops. Before the first run_once().
  Status add_listener(std::unique_ptr<transport::Listener> listener);
  // One turn of loop `loop` on its own thread: waits until something is due or `until`, handles it.
  // The number of events handled.
  std::size_t run_once(std::size_t loop, MonotonicTime until) noexcept;
  // From now on puts are declined and run_once() winds down. Any thread.
  void begin_stop() noexcept;
  // Everything becomes a miss (gets, lookups) or declined (puts). Any thread.
  void set_paused(bool paused) noexcept;
  // For the log and /v1/stats: a JSON object.
  std::string stats_json() const;

 private:
  class Impl;
  explicit Node(std::unique_ptr<Impl> impl) noexcept;
  std::unique_ptr<Impl> impl_;
};

}  // namespace cairn::server
