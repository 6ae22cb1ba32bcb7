// The simulated world in one thread: one seed, one clock, one host with a daemon that comes and
// goes, and residents (client processes) that take turns with it.
#pragma once

#include "base/random.h"
#include "tests/support/manual_clock.h"
#include "tests/support/sim_daemon.h"
#include "tests/support/sim_host.h"
#include "tests/support/sim_network.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

namespace cairn::testing {

// Whoever lives in the world.
class SimResident {
 public:
  SimResident() = default;
  SimResident(const SimResident&) = delete;
  SimResident& operator=(const SimResident&) = delete;
  virtual ~SimResident() = default;
  // What it does when the world comes to it; never waits.
  virtual void turn() = 0;
  // When it must have its turn at the latest; the clock does not pass it.
  virtual std::optional<MonotonicTime> next_due() = 0;
};

class SimWorld {
 public:
  SimWorld(std::uint64_t seed, const SimDaemonOptions& options);
  ~SimWorld();
  SimWorld(const SimWorld&) = delete;
  SimWorld& operator=(const SimWorld&) = delete;

  ManualClock& clock() noexcept { return clock_; }
  SimNetwork& network() noexcept { return network_; }
  SimHost& host() noexcept { return host_; }
  SeededRandom& random() noexcept { return random_; }

  SimDaemon* daemon() noexcept { return daemon_.get(); }  // nullptr: none runs
  const transport::Address& address() const noexcept { return address_; }
  void start_daemon();
  void stop_daemon();  // in an orderly way
  void kill_daemon();

  void add(SimResident& resident);
  void remove(SimResident& resident);

  // Lets time pass: the daemon and the residents take turns as messages arrive and dues come.
  void run_for(Nanoseconds time);

 private:
  bool step();
  void turn_residents();

  ManualClock clock_;
  SeededRandom random_;
  SimNetwork network_;
  SimHost host_;
  SimDaemonOptions options_;
  transport::Address address_;
  std::unique_ptr<SimDaemon> daemon_;
  std::vector<SimResident*> residents_;
};

}  // namespace cairn::testing
