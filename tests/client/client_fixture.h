// A client in the simulated world, with a scripted daemon on the other side.
#pragma once

#include "client/client.h"
#include "tests/client/scripted_daemon.h"
#include "tests/support/manual_clock.h"
#include "tests/support/seed.h"
#include "tests/support/sim_network.h"
#include "transport/process.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

namespace cairn::client {

// Key number `number`, of 32 bytes.
BlockDigest key(std::uint64_t number);
std::vector<BlockDigest> keys(std::uint64_t first, std::size_t count);
// A payload that follows from `seed`.
std::vector<std::byte> body(std::uint64_t seed, std::size_t bytes);

// Keys, payloads and results of a batch, with the spans that requests want.
struct Blocks {
  Blocks(std::uint64_t first, std::size_t count, std::size_t bytes);
  std::vector<BlockDigest> digests;
  std::vector<std::vector<std::byte>> payloads;
  std::vector<std::span<const std::byte>> sources;
  std::vector<std::vector<std::byte>> buffers;
  std::vector<std::span<std::byte>> targets;
  std::vector<KeyResult> results;

  PutRequest put_request(const Namespace& name_space);
  GetRequest get_request(const Namespace& name_space);
  std::vector<BlockStatus> statuses() const;
  // How many buffers hold their payload.
  std::size_t right() const;
};

class ClientTest : public ::testing::Test {
 public:
  ~ClientTest() override;
  ClientTest(const ClientTest&) = delete;
  ClientTest& operator=(const ClientTest&) = delete;

 protected:
  ClientTest();

  // A client with these options (their server is the daemon's unix socket unless set).
  void connect(ClientOptions options = {});
  Result<std::unique_ptr<Client>> try_connect(ClientOptions options,
                                              std::string* message = nullptr);
  // kill -9 and another daemon, which knows nothing.
  void restart_daemon();
  void run_for(Nanoseconds time) { network_.run_until(clock_.now() + time); }
  // Polls until `ticket` is returned; its `done` record. Other tickets' records are kept for their
  // own turn.
  Completion finish(Queue& queue, Ticket ticket);
  static std::vector<BlockStatus> all(std::size_t count, BlockStatus status) {
    return std::vector<BlockStatus>(count, status);
  }

  std::vector<Completion> records_;
  testing::ManualClock clock_;
  SeededRandom random_{testing::test_seed()};
  testing::SimNetwork network_{clock_, testing::test_seed()};
  testing::SimProcessId process_ = network_.spawn();
  SimSlabs slabs_{network_, process_};
  std::unique_ptr<transport::Connector> connector_;
  std::unique_ptr<transport::ProcessWatch> watch_;
  std::uint64_t boot_ = 1;
  std::unique_ptr<ScriptedDaemon> daemon_;
  std::unique_ptr<Client> client_;
  Namespace ns_;
};

}  // namespace cairn::client
