// What the node counts, in a form that costs a relaxed add on the data path.
// server/metrics_export.cc turns it into Prometheus text; names and units are fixed there.
#pragma once

#include "base/block_status.h"
#include "base/clock.h"

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace cairn::server {

enum class Operation : std::uint8_t {
  kHello,
  kJoin,
  kResume,
  kPing,
  kNamespaceOpen,
  kBind,
  kPurge,
  kLookup,
  kGet,
  kReserve,
  kCommit,
  kPutInline,
  kRelease,
  kRetain,
  kPrefetch,
  kRemove,
  kHint,
  kList,
  kUsage,
  kStat,
  kStats,
};
inline constexpr std::size_t kOperationCount = 21;
const char* operation_name(Operation operation) noexcept;

// Upper bounds in microseconds; one more bucket is infinity. A local hit takes a few microseconds,
// so the buckets start at 1.
inline constexpr std::array<std::uint32_t, 22> kLatencyBucketsUs = {
    1,   2,    3,    5,    7,     10,    15,    25,     50,     100,     200,
    500, 1000, 2000, 5000, 10000, 20000, 50000, 100000, 500000, 1000000, 5000000};

class LatencyHistogram {
 public:
  void observe(Nanoseconds latency) noexcept;
  std::array<std::uint64_t, kLatencyBucketsUs.size() + 1> counts() const noexcept;
  double sum_seconds() const noexcept;

 private:
  std::array<std::atomic<std::uint64_t>, kLatencyBucketsUs.size() + 1> counts_{};
  std::atomic<std::uint64_t> sum_ns_{0};
};

using Counter = std::atomic<std::uint64_t>;
inline void add(Counter& counter, std::uint64_t n = 1) noexcept {
  counter.fetch_add(n, std::memory_order_relaxed);
}

// Any thread.
struct NodeMetrics {
  // [operation][status]: keys for batch operations, requests for others.
  std::array<std::array<Counter, kBlockStatusCount>, kOperationCount> keys{};
  std::array<Counter, kOperationCount> requests{};
  std::array<LatencyHistogram, kOperationCount> latency{};
  std::array<Counter, kBusyReasonCount> busy{};
  // Honest hit rates: blocks asked for, and blocks that were usable as a leading run.
  Counter lookup_blocks_asked{0};
  Counter lookup_blocks_usable{0};
  Counter get_blocks_asked{0};
  Counter get_blocks_usable{0};
  Counter get_bytes{0};
  Counter put_bytes{0};
  Counter sessions_opened{0};
  Counter sessions_ended{0};
  Counter hello_rejected_version{0};
  Counter hello_rejected_other{0};
  Counter frames_malformed{0};  // connections closed for what they sent
  Counter releases_unknown{0};
  Counter reports_corrupt{0};  // readers that found a block corrupt
  Counter blocks_corrupt{0};   // of those, blocks that were really wrong
  Counter requests_timed_out{0};
  // Gauges, set by the node.
  Counter sessions{0};
  Counter lent_bytes{0};
  Counter quarantined_bytes{0};  // lent to sessions whose sockets are gone
  Counter predecessor_bytes{0};  // slabs of an earlier daemon that clients still hold
  Counter fallback_small_pages{0};
  Counter data_dir_failing{0};  // 1: the last write to data_dir failed
};

}  // namespace cairn::server
