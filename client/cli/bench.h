// cairn bench local: what the store costs beside plain memory, both measured in one run.
#pragma once

#include "client/cli/output.h"

#include <cstddef>

namespace cairn::cli {

struct BenchOptions {
  bool starts_daemon = true;  // false: `--server` names one
  std::size_t rounds = 12;    // a size; 1 to 1000
  bool is_quick = false;      // small working set and few rounds, to see that it runs
};

int run_bench_local(const CommonOptions& common, const BenchOptions& options);

}  // namespace cairn::cli
