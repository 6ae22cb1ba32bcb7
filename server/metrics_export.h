// The counters as Prometheus text. Names, units and labels are fixed here and listed in
// docs/operations.md, "Metrics".
#pragma once

#include "server/metrics.h"
#include "storage/store.h"

#include <cstdint>
#include <string>

namespace cairn::server {

struct NodeFacts {
  std::string version;
  std::string policy;
  std::uint64_t started_unix_ms = 0;
};

// Text format 0.0.4. Any thread; the counters go on changing meanwhile.
std::string metrics_text(const NodeMetrics& node,
                         const storage::StoreStats& store,
                         const NodeFacts& facts);

}  // namespace cairn::server
