#include "client/cli/replay.h"

#include "base/human.h"
#include "client/cli/replay_worker.h"

#include <nlohmann/json.hpp>

#include <atomic>
#include <cstdio>
#include <thread>

namespace cairn::cli {
namespace {

using nlohmann::ordered_json;
using Pointer = nlohmann::ordered_json::json_pointer;

struct Connection {
  std::unique_ptr<client::Client> client;
  client::Namespace name_space;
};

std::optional<Connection> open_connection(const CommonOptions& common,
                                          const ReplayOptions& options) {
  std::string message;
  auto client =
      client::Client::connect({.server = common.server, .name = "cairn-replay"}, &message);
  if (!client) {
    print_error(explain(client.error(), common.server, message));
    return std::nullopt;
  }
  const ordered_json fingerprint = {{"application", "cairn-replay"},
                                    {"block_bytes", options.block_bytes.value()}};
  const auto name_space = (*client)->open_namespace(fingerprint.dump(), &message);
  if (!name_space) {
    print_error(explain(name_space.error(), common.server, message));
    return std::nullopt;
  }
  return Connection{.client = std::move(*client), .name_space = *name_space};
}

struct DaemonStats {
  std::uint64_t evictions = 0;
  std::uint64_t capacity_bytes = 0;
  std::string policy;
};

std::optional<DaemonStats> read_stats(client::Client& client) {
  const auto answer = client.stats();
  if (answer.status != BlockStatus::kOk) return std::nullopt;
  const auto json = ordered_json::parse(answer.json, nullptr, false);
  if (json.is_discarded()) return std::nullopt;
  DaemonStats stats;
  stats.evictions = json.value(Pointer("/store/evictions"), std::uint64_t{0});
  stats.policy = json.value("policy", std::string());
  stats.capacity_bytes = json.value(Pointer("/pool/capacity_bytes"), std::uint64_t{0});
  return stats;
}

// Requests are handed out in the trace's order; with one client it is served exactly in order.
ReplayCounts serve_all(std::vector<Connection>& connections,
                       const std::vector<TraceRequest>& requests,
                       const ReplayOptions& options,
                       bool shows_progress) {
  const SystemClock clock;
  std::vector<std::unique_ptr<ReplayWorker>> workers;
  workers.reserve(connections.size());
  for (Connection& connection : connections) {
    workers.push_back(
        std::make_unique<ReplayWorker>(*connection.client, connection.name_space, options, clock));
  }
  std::atomic<std::size_t> next{0};
  ProgressBar progress("replay", requests.size(), shows_progress);
  const auto serve = [&](std::size_t index) {
    for (;;) {
      const std::size_t i = next.fetch_add(1, std::memory_order_relaxed);
      if (i >= requests.size()) return;
      workers[index]->serve(requests[i]);
      if (index == 0) progress.update(i + 1);
    }
  };
  std::vector<std::thread> threads;
  for (std::size_t i = 1; i < workers.size(); ++i)
    threads.emplace_back(serve, i);
  serve(0);
  for (std::thread& thread : threads)
    thread.join();
  ReplayCounts total;
  for (const auto& worker : workers)
    total.merge(worker->counts());
  return total;
}

double rate(std::uint64_t amount, double seconds, std::size_t clients) {
  return seconds > 0 ? static_cast<double>(amount) / (seconds / static_cast<double>(clients)) : 0;
}

ordered_json report(const ReplayCounts& counts,
                    const ReplayOptions& options,
                    const DaemonStats& before,
                    const DaemonStats& after) {
  ordered_json json;
  json["requests"] = counts.requests;
  json["block_refs"] = counts.block_refs;
  json["prefix_hits"] = counts.prefix_hits;
  json["prefix_hit_rate"] = counts.block_refs == 0 ? 0.0
                                                   : static_cast<double>(counts.prefix_hits) /
                                                         static_cast<double>(counts.block_refs);
  json["verified_blocks"] = counts.verified_blocks;
  json["wrong_blocks"] = counts.wrong_blocks;
  json["evictions"] = after.evictions - before.evictions;
  json["capacity_blocks"] =
      after.capacity_bytes /
      (kHeaderBytes.value() + round_up(options.block_bytes.value(), kHeaderBytes.value()));
  json["policy"] = after.policy;
  json["errors"] = ordered_json::object();
  for (std::size_t i = 0; i < counts.errors.size(); ++i) {
    if (counts.errors[i] == 0) continue;
    json["errors"][std::string(block_status_name(static_cast<BlockStatus>(i)))] = counts.errors[i];
  }
  if (counts.calls_failed != 0) json["errors"]["call_failed"] = counts.calls_failed;
  json["get_bytes_per_s"] = rate(counts.get_bytes, counts.get.total_seconds(), options.clients);
  json["put_bytes_per_s"] = rate(counts.put_bytes, counts.put.total_seconds(), options.clients);
  json["lookup_us"] = {{"p50", counts.lookup.percentile_us(0.5)},
                       {"p99", counts.lookup.percentile_us(0.99)}};
  json["get_us"] = {{"p50", counts.get.percentile_us(0.5)},
                    {"p99", counts.get.percentile_us(0.99)}};
  json["tiers"]["dram"] = {{"hits", counts.tier_hits[2]},
                           {"bytes", counts.tier_hits[2] * options.block_bytes.value()}};
  return json;
}

void print_report(const ordered_json& json, const ReplayOptions& options) {
  const auto number = [&](const char* key) { return json[key].get<double>(); };
  std::printf(
      "requests          %10.0f   blocks asked %.0f\n", number("requests"), number("block_refs"));
  std::printf("prefix hits       %10.0f   hit rate %.4f\n",
              number("prefix_hits"),
              number("prefix_hit_rate"));
  if (options.verify) {
    std::printf("verified          %10.0f   wrong %.0f\n",
                number("verified_blocks"),
                number("wrong_blocks"));
  } else {
    std::printf("verified        not asked   (--no-verify)\n");
  }
  std::printf("evictions         %10.0f   capacity %.0f blocks of %s, policy %s\n",
              number("evictions"),
              number("capacity_blocks"),
              format_bytes(options.block_bytes).c_str(),
              json["policy"].get<std::string>().c_str());
  std::printf("get               %10.2f GB/s   p50 %.0f us, p99 %.0f us a batch\n",
              number("get_bytes_per_s") / 1e9,
              json["get_us"]["p50"].get<double>(),
              json["get_us"]["p99"].get<double>());
  std::printf("put               %10.2f GB/s\n", number("put_bytes_per_s") / 1e9);
  std::printf("lookup                          p50 %.0f us, p99 %.0f us a chain\n",
              json["lookup_us"]["p50"].get<double>(),
              json["lookup_us"]["p99"].get<double>());
  std::printf("errors            %s\n",
              json["errors"].empty() ? "none" : json["errors"].dump().c_str());
}

}  // namespace

int run_replay(const CommonOptions& common, const ReplayOptions& options) {
  std::string message;
  const auto requests = read_trace(options.trace, options.limit, message);
  if (!requests) {
    print_error(message);
    return kExitUsage;
  }
  std::vector<Connection> connections;
  for (std::size_t i = 0; i < options.clients; ++i) {
    auto connection = open_connection(common, options);
    if (!connection) return kExitFailed;
    connections.push_back(std::move(*connection));
  }
  const auto before = read_stats(*connections.front().client);
  const ReplayCounts counts = serve_all(connections, *requests, options, !common.json);
  const auto after = read_stats(*connections.front().client);
  if (!before || !after) {
    print_error(common.server + ": the daemon gave no statistics");
    return kExitFailed;
  }
  const ordered_json json = report(counts, options, *before, *after);
  if (common.json) {
    std::printf("%s\n", json.dump().c_str());
  } else {
    print_report(json, options);
  }
  const bool all_verified = !options.verify || counts.verified_blocks == counts.prefix_hits;
  const bool is_clean = counts.wrong_blocks == 0 && json["errors"].empty();
  return all_verified && is_clean ? kExitOk : kExitFailed;
}

}  // namespace cairn::cli
