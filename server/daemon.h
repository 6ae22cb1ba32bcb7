// The daemon of one host: everything that main() starts and stops. The order of starting is the
// order of the steps in daemon.cc; each takes what the ones before it made, and what was made goes
// in reverse when a step fails.
#pragma once

#include "base/clock.h"
#include "server/config.h"
#include "server/start_failure.h"

#include <memory>
#include <string>

namespace cairn::server {

// A start waits this long for the pool to be resident, then serves while the rest is populated.
inline constexpr Milliseconds kPopulateWait = Milliseconds(2'000);
// After a stop is asked, sessions have this long to end before their sockets are closed.
inline constexpr Milliseconds kStopDrain = Milliseconds(500);

// One thread's; it runs threads of its own.
class Daemon {
 public:
  // Serves when it returns. `outcome` has no errors.
  static Started<std::unique_ptr<Daemon>> start(const ConfigOutcome& outcome);
  // As stop().
  ~Daemon();
  Daemon(const Daemon&) = delete;
  Daemon& operator=(const Daemon&) = delete;

  // "ready unix=/run/cairn/cairnd.sock tcp=127.0.0.1:7000 admin=127.0.0.1:9464 pool=1GiB": the
  // addresses that are on, with the ports that were chosen.
  const std::string& ready_line() const noexcept;
  // Closes the listeners, declines puts, lets sessions end for kStopDrain, then closes everything
  // and removes the pool's files that no client may map. Once.
  void stop() noexcept;

 private:
  class Impl;
  explicit Daemon(std::unique_ptr<Impl> impl) noexcept;
  std::unique_ptr<Impl> impl_;
};

}  // namespace cairn::server
