// A cairnd of one's own in a temporary directory, for measuring: started, waited for, stopped, and
// nothing left behind.
#pragma once

#include "base/units.h"

#include <memory>
#include <string>

namespace cairn::cli {

class LocalDaemon {
 public:
  // Finds cairnd beside this program, starts it with a pool of `pool` bytes and waits until it is
  // ready. nullptr: `message` says why, with the end of the daemon's log.
  static std::unique_ptr<LocalDaemon> start(ByteCount pool, std::string& message);
  ~LocalDaemon();
  LocalDaemon(const LocalDaemon&) = delete;
  LocalDaemon& operator=(const LocalDaemon&) = delete;

  const std::string& server() const noexcept { return server_; }
  int pid() const noexcept { return pid_; }

 private:
  LocalDaemon() = default;
  std::string directory_;
  std::string pool_directory_;
  std::string server_;
  int pid_ = -1;
  int pidfd_ = -1;
};

}  // namespace cairn::cli
