// A daemon in the simulated world and clients that a test scripts.
#pragma once

#include "base/checksum.h"
#include "tests/server/scripted_client.h"
#include "tests/support/manual_clock.h"
#include "tests/support/sim_daemon.h"
#include "tests/support/sim_host.h"
#include "tests/support/sim_network.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

namespace cairn::server {

// Key number `number`, of 16 bytes unless said otherwise.
BlockDigest key(std::uint64_t number, std::size_t bytes = 16);
std::vector<BlockDigest> keys(std::uint64_t first, std::size_t count);
// A payload that follows from `seed`.
std::vector<std::byte> body(std::uint64_t seed, std::size_t bytes);
std::vector<std::uint32_t> checksums_of(std::span<const std::byte> payload);

class NodeTest : public ::testing::Test {
 protected:
  NodeTest() { start(); }

  // A daemon with these options, instead of the one that runs.
  void start(testing::SimDaemonOptions options = {});
  testing::SimDaemon& daemon() { return *daemon_; }
  const NodeMetrics& metrics() { return daemon_->metrics(); }
  std::uint64_t lent_bytes() { return metrics().lent_bytes.load(); }
  std::uint64_t quarantined_bytes() { return metrics().quarantined_bytes.load(); }
  std::uint64_t count(Operation operation, BlockStatus status) {
    return metrics()
        .keys[static_cast<std::size_t>(operation)][static_cast<std::size_t>(status)]
        .load();
  }
  void run_for(Nanoseconds time) { network_.run_until(clock_.now() + time); }

  // A client of a process of its own, or of `process`, connected and nothing said.
  std::unique_ptr<ScriptedClient> connect(std::optional<testing::SimProcessId> process = {});
  std::unique_ptr<ScriptedClient> connect_tcp();
  // A mapping session with the usual namespace open.
  std::unique_ptr<ScriptedClient> join_in();
  std::unique_ptr<ScriptedClient> join_in_tcp();

  // Reserves, fills and commits blocks of `bytes`; payload i is body(seed + i).
  std::vector<BlockStatus> put(ScriptedClient& client,
                               std::span<const BlockDigest> digests,
                               std::size_t bytes,
                               std::uint64_t seed = 0);
  wire::ReserveReply reserve(ScriptedClient& client,
                             std::span<const BlockDigest> digests,
                             std::size_t bytes,
                             bool is_chain = true);
  wire::CommitReply commit(ScriptedClient& client,
                           const wire::ReserveReply& reserved,
                           std::span<const std::vector<std::byte>> payloads);
  wire::GetReply get(ScriptedClient& client,
                     std::span<const BlockDigest> digests,
                     bool is_chain = true);
  wire::LookupReply lookup(ScriptedClient& client,
                           std::span<const BlockDigest> digests,
                           wire::LookupKind kind = wire::LookupKind::kRun);
  static void fill(ScriptedClient& client,
                   const wire::ReserveReply& reserved,
                   std::size_t index,
                   std::span<const std::byte> payload);
  static std::vector<std::byte> bytes_of(ScriptedClient& client,
                                         const wire::GetReply& reply,
                                         std::size_t index);
  static void release(ScriptedClient& client, const wire::GetReply& reply);
  static wire::HeldLend held(const wire::Grant& grant, std::span<const wire::WireExtent> extents);

  testing::ManualClock clock_;
  testing::SimNetwork network_{clock_, 1};
  testing::SimHost host_{network_};
  std::unique_ptr<testing::SimDaemon> daemon_;
  std::uint64_t starts_ = 0;
};

}  // namespace cairn::server
