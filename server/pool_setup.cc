#include "server/pool_setup.h"

#include "base/human.h"
#include "server/log.h"
#include "server/settings.h"
#include "storage/directory_pool_memory.h"
#include "storage/memory_limits.h"

#include <algorithm>
#include <array>
#include <bit>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace cairn::server {
namespace {

constexpr std::uint64_t kSlabsAtLeast = 4;
constexpr std::uint32_t kPopulateThreadsMax = 16;
constexpr Milliseconds kPopulatePause{2};

StartFailure size_failure(const ConfigOutcome& outcome, const std::string& why) {
  return {kExitConfig,
          "tiers.dram.size = " + exact_bytes_text(outcome.config.dram_size) + " (" +
              outcome.origin("tiers.dram.size") + "): " + why};
}

std::optional<StartFailure> memory_failure(const ConfigOutcome& outcome,
                                           const storage::PredecessorSlabs& predecessors) {
  const Config& config = outcome.config;
  const storage::PoolOptions pool = pool_options(config);
  const ByteCount held = std::min(predecessors.bytes, pool.size);
  const storage::MemoryNeed need{
      .pool = pool.size - held,
      .slab = std::min(pool.slab_bytes, pool.size),
      .other = storage::Store::records_bytes(store_options(config)) + kDaemonMemory};
  const auto figures = storage::read_memory_figures(config.pool_dir, storage::MemorySources());
  const auto shortage = storage::check_memory(need, figures);
  if (!shortage) return std::nullopt;
  return size_failure(outcome,
                      "does not fit: " + format_bytes(shortage->needed) + " needed, the " +
                          std::string(storage::memory_limit_name(shortage->limit)) + " leaves " +
                          format_bytes(shortage->available));
}

void log_predecessors(const storage::PredecessorSlabs& predecessors) {
  if (predecessors.bytes == ByteCount(0)) return;
  std::string holders;
  for (const std::string& holder : predecessors.holders) {
    if (!holders.empty()) holders += ", ";
    holders += holder;
  }
  log_event(LogLevel::kWarning,
            "pool_held_by_earlier_clients",
            {{"bytes", format_bytes(predecessors.bytes)}, {"holders", holders}});
}

}  // namespace

storage::PoolOptions pool_options(const Config& config) noexcept {
  storage::PoolOptions options;
  options.size = config.dram_size;
  const std::uint64_t share = std::bit_floor(config.dram_size.value() / kSlabsAtLeast);
  options.slab_bytes = ByteCount(std::clamp(share, (64_MiB).value(), (1_GiB).value()));
  options.populate_threads =
      std::clamp(std::thread::hardware_concurrency(), 1U, kPopulateThreadsMax);
  return options;
}

storage::StoreOptions store_options(const Config& config) noexcept {
  storage::StoreOptions options;
  options.pool_bytes = config.dram_size;
  return options;
}

Started<std::unique_ptr<storage::PoolMemory>> open_pool_memory(const ConfigOutcome& outcome,
                                                               std::uint64_t incarnation) {
  const Config& config = outcome.config;
  const DirectoryPlace place{
      "pool.dir", config.pool_dir, outcome.origin("pool.dir"), config.pool_dir + "/lock"};
  Result<std::unique_ptr<storage::PoolMemory>> opened = storage::open_directory_pool_memory(
      {.directory = config.pool_dir, .incarnation = incarnation});
  if (!opened) return tl::unexpected(directory_failure(place, opened.error()));
  // Before the memory is measured, so that what dead daemons left does not count.
  const Result<storage::PredecessorSlabs> held = (*opened)->reclaim_predecessors();
  if (!held) return tl::unexpected(directory_failure(place, held.error()));
  log_predecessors(*held);
  if (auto failure = memory_failure(outcome, *held)) return tl::unexpected(*std::move(failure));
  return *std::move(opened);
}

Status populate_pool(storage::Pool& pool,
                     storage::DramTier& dram,
                     transport::Poller& poller,
                     const Clock& clock,
                     MonotonicTime until) {
  std::array<transport::Poller::Event, 1> none{};
  for (;;) {
    const Result<std::vector<storage::Slab>> ready = pool.step();
    if (!ready) return ready.error();
    for (const storage::Slab& slab : *ready)
      dram.add_slab(slab);
    const MonotonicTime now = clock.now();
    const bool is_held = pool.predecessors().bytes > ByteCount(0);
    if (pool.is_complete() || is_held || now >= until) return {};
    poller.wait(none, std::min(until, now + kPopulatePause));
  }
}

}  // namespace cairn::server
