// A client process of the simulated world: the real SDK over simulated seams.
#pragma once

#include "base/random.h"
#include "client/client.h"
#include "tests/support/manual_clock.h"
#include "tests/support/sim_host.h"
#include "tests/support/sim_network.h"
#include "transport/process.h"

#include <cstdint>
#include <memory>

namespace cairn::testing {

// Outlives the Clients that it environs.
class SimClientProcess {
 public:
  SimClientProcess(SimHost& host, ManualClock& clock, std::uint64_t seed);
  // Kills the process, if it lives.
  ~SimClientProcess();
  SimClientProcess(const SimClientProcess&) = delete;
  SimClientProcess& operator=(const SimClientProcess&) = delete;

  SimProcessId id() const noexcept { return id_; }
  SimProcessState state() const { return network_.state(id_); }
  bool is_running() const { return state() == SimProcessState::kRunning; }
  client::Environment environment();
  // Slabs that it has mapped.
  std::size_t mappings() const noexcept;

 private:
  class Mapper;
  class Watch;

  SimNetwork& network_;
  ManualClock& clock_;
  const SimProcessId id_;
  SeededRandom random_;
  std::unique_ptr<transport::Connector> connector_;
  std::unique_ptr<Mapper> mapper_;
  std::unique_ptr<Watch> watch_;
};

}  // namespace cairn::testing
