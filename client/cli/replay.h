// cairn replay: serves a trace through a daemon and checks every byte that comes back.
#pragma once

#include "base/units.h"
#include "client/cli/output.h"

#include <cstddef>
#include <string>

namespace cairn::cli {

struct ReplayOptions {
  std::string trace;
  ByteCount block_bytes = 256_KiB;
  std::size_t limit = 0;    // requests; 0: all
  std::size_t clients = 1;  // 1 to 256
  bool verify = true;
};

// The exit code: kExitFailed when a byte was wrong, an operation failed, or not every block that
// was delivered could be verified.
int run_replay(const CommonOptions& common, const ReplayOptions& options);

}  // namespace cairn::cli
