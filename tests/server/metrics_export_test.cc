#include "server/metrics_export.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <map>
#include <set>
#include <sstream>
#include <string>

namespace cairn::server {
namespace {

// Prometheus text, read as a scraper would: "name{labels}" to value.
struct Scrape {
  std::map<std::string, double> samples;
  std::map<std::string, std::string> types;  // of families
  std::set<std::string> helped;
};

Scrape scrape(const std::string& text) {
  Scrape result;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    if (line[0] == '#') {
      std::string hash;
      std::string kind;
      std::string name;
      std::string type;
      words >> hash >> kind >> name >> type;
      if (kind == "TYPE") result.types[name] = type;
      if (kind == "HELP") result.helped.insert(name);
      continue;
    }
    const std::size_t blank = line.rfind(' ');
    EXPECT_TRUE(
        result.samples.emplace(line.substr(0, blank), std::stod(line.substr(blank + 1))).second)
        << "twice: " << line;
  }
  return result;
}

Scrape scrape_of(const NodeMetrics& node, const storage::StoreStats& store = {}) {
  return scrape(
      metrics_text(node, store, {.version = "1.2.3", .policy = "lru", .started_unix_ms = 1'500}));
}

TEST(MetricsText, ShowsWhatTheNodeCounted) {
  NodeMetrics node;
  add(node.get_bytes, 4096);
  add(node.sessions, 3);
  add(node.hello_rejected_version, 2);
  add(node.fallback_small_pages);
  add(node.busy[static_cast<std::size_t>(BusyReason::kLentLimit)], 7);
  add(node.keys[static_cast<std::size_t>(Operation::kGet)]
               [static_cast<std::size_t>(BlockStatus::kMiss)],
      5);
  add(node.requests[static_cast<std::size_t>(Operation::kLookup)], 9);

  const Scrape got = scrape_of(node);

  EXPECT_EQ(got.samples.at("cairn_get_bytes_total"), 4096);
  EXPECT_EQ(got.samples.at("cairn_sessions"), 3);
  EXPECT_EQ(got.samples.at(R"(cairn_hello_rejected_total{reason="version"})"), 2);
  EXPECT_EQ(got.samples.at(R"(cairn_hello_rejected_total{reason="other"})"), 0);
  EXPECT_EQ(got.samples.at(R"(cairn_fallback_active{kind="small_pages"})"), 1);
  EXPECT_EQ(got.samples.at(R"(cairn_busy_total{reason="lent_limit"})"), 7);
  EXPECT_EQ(got.samples.at(R"(cairn_keys_total{operation="get",status="miss"})"), 5);
  EXPECT_EQ(got.samples.at(R"(cairn_keys_total{operation="get",status="ok"})"), 0);
  EXPECT_EQ(got.samples.at(R"(cairn_requests_total{operation="lookup"})"), 9);
  EXPECT_EQ(got.samples.at(R"(cairn_build_info{version="1.2.3",policy="lru"})"), 1);
  EXPECT_EQ(got.samples.at("cairn_start_time_seconds"), 1.5);
}

TEST(MetricsText, ShowsWhatTheStoreHolds) {
  storage::StoreStats store;
  store.resident_blocks = 11;
  store.resident_bytes = 12_MiB;
  store.evictions = 13;
  store.evicted_bytes = 14_KiB;
  store.dram.capacity = 1_GiB;
  store.dram.allocated = 15_MiB;
  store.records_memory = 16_B;
  const NodeMetrics node;

  const Scrape got = scrape_of(node, store);

  EXPECT_EQ(got.samples.at("cairn_resident_blocks"), 11);
  EXPECT_EQ(got.samples.at("cairn_resident_bytes"), 12.0 * 1024 * 1024);
  EXPECT_EQ(got.samples.at("cairn_evictions_total"), 13);
  EXPECT_EQ(got.samples.at("cairn_evicted_bytes_total"), 14.0 * 1024);
  EXPECT_EQ(got.samples.at(R"(cairn_tier_capacity_bytes{tier="dram"})"), 1024.0 * 1024 * 1024);
  EXPECT_EQ(got.samples.at(R"(cairn_tier_allocated_bytes{tier="dram"})"), 15.0 * 1024 * 1024);
  EXPECT_EQ(got.samples.at("cairn_records_memory_bytes"), 16);
}

TEST(MetricsText, CumulatesLatenciesFromOneMicrosecond) {
  NodeMetrics node;
  LatencyHistogram& latency = node.latency[static_cast<std::size_t>(Operation::kGet)];
  latency.observe(Nanoseconds(800));
  latency.observe(Nanoseconds(1'000));
  latency.observe(Nanoseconds(1'001));
  latency.observe(std::chrono::seconds(60));

  const Scrape got = scrape_of(node);

  const auto at = [&](const std::string& bound) {
    return got.samples.at("cairn_request_seconds_bucket{operation=\"get\",le=\"" + bound + "\"}");
  };
  EXPECT_EQ(at("1e-06"), 2);
  EXPECT_EQ(at("2e-06"), 3);
  EXPECT_EQ(at("5"), 3);
  EXPECT_EQ(at("+Inf"), 4);
  EXPECT_EQ(got.samples.at(R"(cairn_request_seconds_count{operation="get"})"), 4);
  EXPECT_NEAR(got.samples.at(R"(cairn_request_seconds_sum{operation="get"})"), 60, 1e-3);
}

TEST(MetricsText, NamesFamiliesByTheirKind) {
  const NodeMetrics node;
  const Scrape got = scrape_of(node);

  EXPECT_GT(got.types.size(), 30U);
  for (const auto& [name, type] : got.types) {
    EXPECT_TRUE(name.starts_with("cairn_")) << name;
    EXPECT_EQ(got.helped.count(name), 1U) << name;
    EXPECT_EQ(name.ends_with("_total"), type == "counter") << name;
    EXPECT_EQ(type == "histogram", name.ends_with("request_seconds")) << name;
  }
}

TEST(MetricsText, NamesEveryOperationOnce) {
  const NodeMetrics node;
  const Scrape got = scrape_of(node);

  std::size_t operations = 0;
  for (const auto& [name, value] : got.samples) {
    if (name.starts_with("cairn_requests_total{")) ++operations;
  }
  EXPECT_EQ(operations, kOperationCount);
  EXPECT_EQ(std::string(operation_name(static_cast<Operation>(kOperationCount))), "unknown");
}

TEST(MetricsText, IsListedInTheDocumentation) {
  std::ifstream file(CAIRN_SOURCE_DIR "/docs/operations.md");
  std::stringstream text;
  text << file.rdbuf();
  const NodeMetrics node;
  const Scrape got = scrape_of(node);

  std::string missing;
  for (const auto& [name, type] : got.types) {
    if (text.str().find("| `" + name) == std::string::npos) missing += name + " ";
  }
  EXPECT_EQ(missing, "");
}

TEST(LatencyHistogram, CountsATimeThatWentBackwardsAsNothing) {
  LatencyHistogram latency;
  latency.observe(Nanoseconds(-5));

  EXPECT_EQ(latency.counts()[0], 1U);
  EXPECT_EQ(latency.sum_seconds(), 0);
}

}  // namespace
}  // namespace cairn::server
