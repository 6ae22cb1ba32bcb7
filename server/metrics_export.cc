#include "server/metrics_export.h"

#include <prometheus/metric_family.h>
#include <prometheus/text_serializer.h>

#include <array>
#include <limits>
#include <utility>
#include <vector>

namespace cairn::server {
namespace {

using prometheus::ClientMetric;
using prometheus::MetricFamily;
using prometheus::MetricType;
using Labels = std::vector<ClientMetric::Label>;

struct NodeRow {
  const char* name;
  const char* help;
  MetricType type;
  Counter NodeMetrics::*member;
};

constexpr std::array<NodeRow, 18> kNodeRows = {{
    {"cairn_lookup_blocks_asked_total",
     "Blocks that lookups asked for.",
     MetricType::Counter,
     &NodeMetrics::lookup_blocks_asked},
    {"cairn_lookup_blocks_usable_total",
     "Of those, blocks usable as a leading run.",
     MetricType::Counter,
     &NodeMetrics::lookup_blocks_usable},
    {"cairn_get_blocks_asked_total",
     "Blocks that gets asked for.",
     MetricType::Counter,
     &NodeMetrics::get_blocks_asked},
    {"cairn_get_blocks_usable_total",
     "Of those, blocks usable as a leading run.",
     MetricType::Counter,
     &NodeMetrics::get_blocks_usable},
    {"cairn_get_bytes_total",
     "Payload bytes of blocks that gets delivered.",
     MetricType::Counter,
     &NodeMetrics::get_bytes},
    {"cairn_put_bytes_total",
     "Payload bytes of blocks that puts published.",
     MetricType::Counter,
     &NodeMetrics::put_bytes},
    {"cairn_sessions_opened_total",
     "Sessions opened.",
     MetricType::Counter,
     &NodeMetrics::sessions_opened},
    {"cairn_sessions_ended_total",
     "Sessions ended.",
     MetricType::Counter,
     &NodeMetrics::sessions_ended},
    {"cairn_frames_malformed_total",
     "Connections closed for what they sent.",
     MetricType::Counter,
     &NodeMetrics::frames_malformed},
    {"cairn_releases_unknown_total",
     "Releases of a lend that is not known (ignored).",
     MetricType::Counter,
     &NodeMetrics::releases_unknown},
    {"cairn_reports_corrupt_total",
     "Blocks that readers reported as corrupt.",
     MetricType::Counter,
     &NodeMetrics::reports_corrupt},
    {"cairn_blocks_corrupt_total",
     "Of those, blocks that were really wrong (dropped).",
     MetricType::Counter,
     &NodeMetrics::blocks_corrupt},
    {"cairn_requests_timed_out_total",
     "Requests not done by their deadline.",
     MetricType::Counter,
     &NodeMetrics::requests_timed_out},
    {"cairn_sessions", "Sessions now.", MetricType::Gauge, &NodeMetrics::sessions},
    {"cairn_lent_bytes",
     "Bytes of frames that clients hold now.",
     MetricType::Gauge,
     &NodeMetrics::lent_bytes},
    {"cairn_quarantined_bytes",
     "Of those, bytes held by sessions whose sockets are gone.",
     MetricType::Gauge,
     &NodeMetrics::quarantined_bytes},
    {"cairn_predecessor_bytes",
     "Slabs of an earlier daemon that its clients still hold.",
     MetricType::Gauge,
     &NodeMetrics::predecessor_bytes},
    {"cairn_data_dir_failing",
     "1 while writes to data_dir fail: no namespace can be opened for the first time or purged.",
     MetricType::Gauge,
     &NodeMetrics::data_dir_failing},
}};

ClientMetric sample(MetricType type, double value, Labels labels) {
  ClientMetric metric;
  metric.label = std::move(labels);
  if (type == MetricType::Counter) metric.counter.value = value;
  if (type == MetricType::Gauge) metric.gauge.value = value;
  return metric;
}

double value_of(const Counter& counter) {
  return static_cast<double>(counter.load(std::memory_order_relaxed));
}

MetricFamily family(const char* name, const char* help, MetricType type) {
  return {name, help, type, {}};
}

class Collector {
 public:
  explicit Collector(const NodeMetrics& node)
      : node_(node) {}

  void add_node() {
    add_operations();
    add_refusals();
    for (const NodeRow& row : kNodeRows) {
      add_one(row.name, row.help, row.type, value_of(node_.*row.member));
    }
    MetricFamily fallbacks = family("cairn_fallback_active",
                                    "1 while something slower stands in for what is configured.",
                                    MetricType::Gauge);
    fallbacks.metric.push_back(
        sample(MetricType::Gauge, value_of(node_.fallback_small_pages), {{"kind", "small_pages"}}));
    families_.push_back(std::move(fallbacks));
  }

  void add_store(const storage::StoreStats& store) {
    const auto count = [&](const char* name, const char* help, std::uint64_t value) {
      add_one(name, help, MetricType::Counter, static_cast<double>(value));
    };
    const auto gauge = [&](const char* name, const char* help, std::uint64_t value) {
      add_one(name, help, MetricType::Gauge, static_cast<double>(value));
    };
    gauge("cairn_resident_blocks", "Committed blocks in the pool.", store.resident_blocks);
    gauge("cairn_resident_bytes", "Their frames, headers included.", store.resident_bytes.value());
    gauge("cairn_reservations", "Open reservations.", store.open_reservations);
    gauge("cairn_reserved_bytes", "Their frames, headers included.", store.reserved_bytes.value());
    gauge("cairn_retained_bytes", "Bytes protected from eviction.", store.retained_bytes.value());
    gauge("cairn_records_memory_bytes",
          "Memory of records, index and policy in use.",
          store.records_memory.value());
    count("cairn_evictions_total", "Blocks dropped to make room.", store.evictions);
    count("cairn_evicted_bytes_total", "Their frames.", store.evicted_bytes.value());
    count("cairn_commits_total", "Blocks published.", store.commits);
    count("cairn_commit_exists_total",
          "Commits of a key that was there already.",
          store.commit_exists);
    count("cairn_removed_blocks_total", "Blocks removed by request.", store.removed);
    count("cairn_corrupt_headers_total",
          "Header pages that failed their check (block dropped).",
          store.corrupt_headers);
    add_tier("cairn_tier_capacity_bytes", "Bytes of the tier that are ready.", store.dram.capacity);
    add_tier("cairn_tier_allocated_bytes", "Bytes of the tier in frames.", store.dram.allocated);
    add_tier("cairn_tier_largest_free_run_bytes",
             "The longest free run of the tier.",
             store.dram.largest_free_run);
  }

  void add_facts(const NodeFacts& facts) {
    MetricFamily build = family("cairn_build_info", "What runs.", MetricType::Gauge);
    build.metric.push_back(
        sample(MetricType::Gauge, 1, {{"version", facts.version}, {"policy", facts.policy}}));
    families_.push_back(std::move(build));
    add_one("cairn_start_time_seconds",
            "When it became ready, in Unix time.",
            MetricType::Gauge,
            static_cast<double>(facts.started_unix_ms) / 1e3);
  }

  const std::vector<MetricFamily>& families() const { return families_; }

 private:
  void add_one(const char* name, const char* help, MetricType type, double value) {
    MetricFamily one = family(name, help, type);
    one.metric.push_back(sample(type, value, {}));
    families_.push_back(std::move(one));
  }

  void add_tier(const char* name, const char* help, ByteCount bytes) {
    MetricFamily tier = family(name, help, MetricType::Gauge);
    tier.metric.push_back(
        sample(MetricType::Gauge, static_cast<double>(bytes.value()), {{"tier", "dram"}}));
    families_.push_back(std::move(tier));
  }

  void add_operations() {
    MetricFamily requests =
        family("cairn_requests_total", "Requests by operation.", MetricType::Counter);
    MetricFamily keys = family("cairn_keys_total",
                               "Keys of batch operations, requests of others, by status.",
                               MetricType::Counter);
    MetricFamily latency = family(
        "cairn_request_seconds", "From a request's arrival to its reply.", MetricType::Histogram);
    for (std::size_t i = 0; i < kOperationCount; ++i) {
      const char* operation = operation_name(static_cast<Operation>(i));
      requests.metric.push_back(
          sample(MetricType::Counter, value_of(node_.requests[i]), {{"operation", operation}}));
      add_statuses(keys, i);
      latency.metric.push_back(histogram(node_.latency[i], operation));
    }
    families_.push_back(std::move(requests));
    families_.push_back(std::move(keys));
    families_.push_back(std::move(latency));
  }

  // Statuses that an operation never gives would only be noise; ok is always there, so that a rate
  // over it starts at zero.
  void add_statuses(MetricFamily& keys, std::size_t operation) const {
    for (std::uint8_t status = 0; status < kBlockStatusCount; ++status) {
      const double value = value_of(node_.keys[operation][status]);
      const auto known = static_cast<BlockStatus>(status);
      if (value == 0 && known != BlockStatus::kOk) continue;
      keys.metric.push_back(
          sample(MetricType::Counter,
                 value,
                 {{"operation", operation_name(static_cast<Operation>(operation))},
                  {"status", std::string(block_status_name(known))}}));
    }
  }

  static ClientMetric histogram(const LatencyHistogram& latency, const char* operation) {
    ClientMetric metric;
    metric.label = {{"operation", operation}};
    const auto counts = latency.counts();
    std::uint64_t seen = 0;
    for (std::size_t i = 0; i < counts.size(); ++i) {
      seen += counts[i];
      const double bound = i < kLatencyBucketsUs.size()
                               ? static_cast<double>(kLatencyBucketsUs[i]) / 1e6
                               : std::numeric_limits<double>::infinity();
      metric.histogram.bucket.push_back({seen, bound});
    }
    metric.histogram.sample_count = seen;
    metric.histogram.sample_sum = latency.sum_seconds();
    return metric;
  }

  void add_refusals() {
    MetricFamily busy =
        family("cairn_busy_total", "Keys answered busy, by what was full.", MetricType::Counter);
    for (std::uint8_t reason = 1; reason < kBusyReasonCount; ++reason) {
      const auto name = busy_reason_name(static_cast<BusyReason>(reason));
      busy.metric.push_back(sample(
          MetricType::Counter, value_of(node_.busy[reason]), {{"reason", std::string(name)}}));
    }
    families_.push_back(std::move(busy));
    MetricFamily rejected =
        family("cairn_hello_rejected_total", "Sessions refused at the hello.", MetricType::Counter);
    rejected.metric.push_back(sample(
        MetricType::Counter, value_of(node_.hello_rejected_version), {{"reason", "version"}}));
    rejected.metric.push_back(
        sample(MetricType::Counter, value_of(node_.hello_rejected_other), {{"reason", "other"}}));
    families_.push_back(std::move(rejected));
  }

  const NodeMetrics& node_;
  std::vector<MetricFamily> families_;
};

}  // namespace

std::string metrics_text(const NodeMetrics& node,
                         const storage::StoreStats& store,
                         const NodeFacts& facts) {
  Collector collector(node);
  collector.add_node();
  collector.add_store(store);
  collector.add_facts(facts);
  return prometheus::TextSerializer().Serialize(collector.families());
}

}  // namespace cairn::server
