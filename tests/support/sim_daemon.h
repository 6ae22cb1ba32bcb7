// One daemon on a simulated host: the real node over the real store, single-threaded, with one
// poller a loop.
#pragma once

#include "base/random.h"
#include "server/node.h"
#include "storage/frame_tier.h"
#include "storage/pool.h"
#include "storage/store.h"
#include "tests/support/manual_clock.h"
#include "tests/support/sim_host.h"
#include "tests/support/sim_network.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace cairn::testing {

struct SimDaemonOptions {
  ByteCount pool = 64_MiB;
  std::size_t loops = 1;
  std::uint64_t seed = 1;
  server::NodeOptions node = default_node();
  std::string unix_address = "unix:/sim/cairnd.sock";
  std::string tcp_address = "127.0.0.1:7070";

  static server::NodeOptions default_node() {
    server::NodeOptions options;
    options.lent_max = 48_MiB;
    options.version = "simulated";
    return options;
  }
};

class SimDaemon {
 public:
  // Runs until its pool is ready as far as the host has memory.
  SimDaemon(SimHost& host, ManualClock& clock, const SimDaemonOptions& options);
  // An orderly stop, unless it was killed.
  ~SimDaemon();
  SimDaemon(const SimDaemon&) = delete;
  SimDaemon& operator=(const SimDaemon&) = delete;

  // Every loop does what there is to do, without waiting.
  void turn();
  // As kill -9: sockets break, nothing is tidied up.
  void kill();

  server::Node& node() noexcept { return *node_; }
  storage::Store& store() noexcept { return *store_; }
  storage::Tier& tier() noexcept { return *tier_; }
  storage::Pool& pool() noexcept { return *pool_; }
  server::NamespaceRegistry& namespaces() noexcept { return *namespaces_; }
  const server::NodeMetrics& metrics() const noexcept { return metrics_; }
  SimProcessId process() const noexcept { return process_; }
  const transport::Address& unix_address() const noexcept { return unix_address_; }
  const transport::Address& tcp_address() const noexcept { return tcp_address_; }

 private:
  class Processes;

  void open_storage(SimHost& host, const SimDaemonOptions& options);
  void open_node(SimHost& host, const SimDaemonOptions& options);
  void close_parts();

  ManualClock& clock_;
  SimNetwork& network_;
  const SimProcessId process_;
  const std::size_t loops_;
  const transport::Address unix_address_;
  const transport::Address tcp_address_;
  bool is_killed_ = false;
  SeededRandom random_;
  server::NodeMetrics metrics_;
  std::unique_ptr<SimHostMemory> memory_;
  std::unique_ptr<storage::DramTier> tier_;
  std::unique_ptr<storage::Pool> pool_;
  std::unique_ptr<storage::Store> store_;
  std::unique_ptr<server::NamespaceRegistry> namespaces_;
  std::unique_ptr<Processes> processes_;
  std::vector<std::unique_ptr<transport::Poller>> pollers_;
  std::unique_ptr<server::Node> node_;
};

}  // namespace cairn::testing
