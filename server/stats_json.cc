#include "server/stats_json.h"

#include "server/text.h"

#include <nlohmann/json.hpp>

#include <exception>

namespace cairn::server {
namespace {

using Json = nlohmann::ordered_json;

const char* tier_name(storage::TierKind tier) {
  switch (tier) {
    case storage::TierKind::kNone:
      return "none";
    case storage::TierKind::kHbm:
      return "hbm";
    case storage::TierKind::kDram:
      return "dram";
    case storage::TierKind::kNvme:
      return "nvme";
    case storage::TierKind::kPeer:
      return "peer";
  }
  return "none";
}

std::uint64_t read(const Counter& counter) {
  return counter.load(std::memory_order_relaxed);
}

// Of the pages behind the pool, whatever the machine calls them.
std::uint64_t page_bytes(storage::PageKind kind) {
  constexpr ByteCount kSmallPage = 4_KiB;
  constexpr ByteCount kHugePage = 2_MiB;
  return (kind == storage::PageKind::kSmall ? kSmallPage : kHugePage).value();
}

Json pool_figures(const NodeCore& core, const storage::StoreStats& stats) {
  return {{"page_bytes", page_bytes(core.parts.pool_memory->page_kind())},
          {"capacity_bytes", stats.dram.capacity.value()},
          {"allocated_bytes", stats.dram.allocated.value()},
          {"largest_free_run_bytes", stats.dram.largest_free_run.value()},
          {"resident_blocks", stats.resident_blocks},
          {"resident_bytes", stats.resident_bytes.value()},
          {"reserved_bytes", stats.reserved_bytes.value()},
          {"retained_bytes", stats.retained_bytes.value()}};
}

Json store_figures(const storage::StoreStats& stats) {
  return {{"open_reservations", stats.open_reservations},
          {"evictions", stats.evictions},
          {"evicted_bytes", stats.evicted_bytes.value()},
          {"commits", stats.commits},
          {"commit_exists", stats.commit_exists},
          {"removed", stats.removed},
          {"corrupt_headers", stats.corrupt_headers},
          {"records_memory_bytes", stats.records_memory.value()}};
}

Json session_figures(const NodeCore& core) {
  const SessionRegistry::Figures figures = core.registry.figures();
  const NodeMetrics& metrics = *core.parts.metrics;
  return {{"sessions", figures.sessions},
          {"orphaned", figures.orphaned},
          {"processes", figures.processes},
          {"connections", core.connections.load(std::memory_order_relaxed)},
          {"opened", read(metrics.sessions_opened)},
          {"ended", read(metrics.sessions_ended)},
          {"lent_bytes", read(metrics.lent_bytes)},
          {"lent_max_bytes", core.options.lent_max.value()},
          {"quarantined_bytes", read(metrics.quarantined_bytes)},
          {"predecessor_bytes", read(metrics.predecessor_bytes)}};
}

Json traffic_figures(const NodeMetrics& metrics) {
  return {{"lookup_blocks_asked", read(metrics.lookup_blocks_asked)},
          {"lookup_blocks_usable", read(metrics.lookup_blocks_usable)},
          {"get_blocks_asked", read(metrics.get_blocks_asked)},
          {"get_blocks_usable", read(metrics.get_blocks_usable)},
          {"get_bytes", read(metrics.get_bytes)},
          {"put_bytes", read(metrics.put_bytes)},
          {"frames_malformed", read(metrics.frames_malformed)},
          {"releases_unknown", read(metrics.releases_unknown)},
          {"reports_corrupt", read(metrics.reports_corrupt)},
          {"blocks_corrupt", read(metrics.blocks_corrupt)},
          {"requests_timed_out", read(metrics.requests_timed_out)}};
}

template <typename Make>
std::string to_text(const Make& make) noexcept {
  try {
    return make().dump();
  } catch (const std::exception&) {
    return "{}";
  }
}

}  // namespace

std::string stat_json(const storage::BlockInfo& info) noexcept {
  return to_text([&info]() -> Json {
    return {{"tier", tier_name(info.tier)},
            {"length_bytes", info.length},
            {"pins", info.pins},
            {"is_retained", info.is_retained}};
  });
}

std::string usage_json(const NodeCore& core, const LentAccount& account) noexcept {
  return to_text([&]() -> Json {
    return {{"pool", pool_figures(core, core.parts.store->stats())},
            {"lent_bytes", account.bytes().value()},
            {"lent_max_bytes", core.options.lent_max.value()}};
  });
}

std::string node_stats_json(const NodeCore& core) noexcept {
  return to_text([&core]() -> Json {
    const storage::StoreStats stats = core.parts.store->stats();
    return {{"version", core.options.version},
            {"boot",
             {{"counter", core.options.boot.counter},
              {"incarnation", hex_id(core.options.boot.incarnation)}}},
            {"policy", core.parts.store->policy_name()},
            {"is_paused", core.is_paused.load(std::memory_order_relaxed)},
            {"is_stopping", core.is_stopping.load(std::memory_order_relaxed)},
            {"pool", pool_figures(core, stats)},
            {"store", store_figures(stats)},
            {"clients", session_figures(core)},
            {"traffic", traffic_figures(*core.parts.metrics)}};
  });
}

}  // namespace cairn::server
