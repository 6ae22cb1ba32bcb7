#include "client/cli/bench.h"

#include "base/human.h"
#include "client/cli/bench_blocks.h"
#include "client/cli/local_daemon.h"
#include "client/cli/payload.h"

#include <nlohmann/json.hpp>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <fstream>

namespace cairn::cli {
namespace {

using nlohmann::ordered_json;

constexpr std::array<std::size_t, 3> kSizes = {65'536, 1'048'576, 4'194'304};
constexpr std::size_t kLookupBatch = 512;

// Bytes of the last-level cache, by sysfs; 32 MiB where it says nothing.
std::size_t last_level_cache() {
  std::size_t largest = 0;
  for (int index = 0; index < 8; ++index) {
    std::ifstream file("/sys/devices/system/cpu/cpu0/cache/index" + std::to_string(index) +
                       "/size");
    std::string text;
    if (!(file >> text)) continue;
    if (const auto bytes = parse_bytes(text + "iB"))
      largest = std::max<std::size_t>(largest, bytes->value());
  }
  return largest == 0 ? std::size_t{32} << 20U : largest;
}

// Round trips of 128 bytes over a unix stream socket between two processes, both blocking.
class BareSocket {
 public:
  BareSocket() {
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends_.data()) != 0) return;
    child_ = fork();
    if (child_ == 0) echo();
    close(ends_[1]);
  }
  ~BareSocket() {
    if (child_ <= 0) return;
    close(ends_[0]);
    waitpid(child_, nullptr, 0);
  }
  BareSocket(const BareSocket&) = delete;
  BareSocket& operator=(const BareSocket&) = delete;

  bool measure(std::size_t trips, Latencies& latencies) {
    const SystemClock clock;
    std::array<char, 128> message{};
    for (std::size_t i = 0; child_ > 0 && i < trips; ++i) {
      const MonotonicTime begin = clock.now();
      if (write(ends_[0], message.data(), message.size()) != static_cast<ssize_t>(message.size()) ||
          recv(ends_[0], message.data(), message.size(), MSG_WAITALL) !=
              static_cast<ssize_t>(message.size())) {
        return false;
      }
      latencies.add(clock.now() - begin);
    }
    return child_ > 0;
  }

 private:
  [[noreturn]] void echo() {
    close(ends_[0]);
    std::array<char, 128> message{};
    while (recv(ends_[1], message.data(), message.size(), MSG_WAITALL) > 0) {
      if (write(ends_[1], message.data(), message.size()) < 0) break;
    }
    _exit(0);
  }
  std::array<int, 2> ends_{-1, -1};
  pid_t child_ = -1;
};

// Keys a second over one connection: batches of 512 of which all are there, some in flight at once.
std::optional<double> measure_lookups(client::Client& client,
                                      const client::Namespace& name_space,
                                      std::size_t batches) {
  const std::vector<std::byte> block(4096);
  std::vector<BlockDigest> digests;
  for (std::size_t i = 0; i < kLookupBatch; ++i)
    digests.push_back(trace_digest((1ULL << 40U) + i));
  const std::vector<std::span<const std::byte>> sources(kLookupBatch, block);
  std::vector<client::KeyResult> results(kLookupBatch);
  if (!client.put(
          {.name_space = name_space, .digests = digests, .sources = sources, .results = results})) {
    return std::nullopt;
  }
  auto queue = client.make_queue();
  if (!queue) return std::nullopt;
  constexpr std::size_t kInFlight = 8;
  std::array<client::Completion, kInFlight> done;
  std::size_t submitted = 0;
  std::size_t ended = 0;
  const SystemClock clock;
  const MonotonicTime begin = clock.now();
  while (ended < batches) {
    while (submitted < batches && submitted - ended < kInFlight) {
      if (!(*queue)->submit(client::LookupRequest{.name_space = name_space, .digests = digests})) {
        return std::nullopt;
      }
      ++submitted;
    }
    const std::size_t count = (*queue)->poll(done);
    for (std::size_t i = 0; i < count; ++i) {
      if (!done[i].is_done) continue;
      if (done[i].lookup.run != kLookupBatch) return std::nullopt;
      ++ended;
    }
    if (count == 0) (*queue)->wait(Deadline::after(clock, Milliseconds(1000)));
  }
  const double elapsed = static_cast<double>((clock.now() - begin).count()) / 1e9;
  return static_cast<double>(batches * kLookupBatch) / elapsed;
}

std::size_t page_bytes_of_pool(const ordered_json& stats) {
  const ordered_json::json_pointer at("/pool/page_bytes");
  return stats.is_object() ? stats.value(at, std::size_t{0}) : 0;
}

ordered_json figures_json(const BlockFigures& figures) {
  return {{"memcpy_bytes_per_s", figures.memcpy_bytes_per_s},
          {"pool_memcpy_bytes_per_s", figures.pool_memcpy_bytes_per_s},
          {"get_copy_bytes_per_s", figures.get_copy_bytes_per_s},
          {"get_copy_ratio", figures.get_copy_ratio},
          {"get_copy_ratio_spread", figures.get_copy_ratio_spread},
          {"get_copy_unverified_ratio", figures.get_copy_unverified_ratio},
          {"put_copy_bytes_per_s", figures.put_copy_bytes_per_s},
          {"put_copy_ratio", figures.put_copy_ratio},
          {"put_copy_ratio_spread", figures.put_copy_ratio_spread},
          {"get_inplace_blocks_per_s", figures.get_inplace_blocks_per_s},
          {"get_inplace_verified_blocks_per_s", figures.get_inplace_verified_blocks_per_s},
          {"get_one_us", {{"p50", figures.get_one_p50_us}, {"p99", figures.get_one_p99_us}}}};
}

void print_table(const ordered_json& json) {
  std::printf("%-10s %12s %22s %12s %22s %16s %12s\n",
              "block",
              "memcpy GB/s",
              "get GB/s (ratio)",
              "unverified",
              "put GB/s (ratio)",
              "in place /s",
              "one p50 us");
  for (const auto& [size, figures] : json["sizes"].items()) {
    std::printf("%-10s %12.2f %13.2f (%.2f) %13.2f %13.2f (%.2f) %16.0f %12.1f\n",
                format_bytes(ByteCount(std::stoull(size))).c_str(),
                figures["memcpy_bytes_per_s"].get<double>() / 1e9,
                figures["get_copy_bytes_per_s"].get<double>() / 1e9,
                figures["get_copy_ratio"].get<double>(),
                figures["get_copy_unverified_ratio"].get<double>(),
                figures["put_copy_bytes_per_s"].get<double>() / 1e9,
                figures["put_copy_ratio"].get<double>(),
                figures["get_inplace_blocks_per_s"].get<double>(),
                figures["get_one_us"]["p50"].get<double>());
  }
  std::printf(
      "lookups %.2f M keys/s in batches of %zu; bare socket round trip p50 %.1f us, p99 %.1f us\n",
      json["lookup_keys_per_s"].get<double>() / 1e6,
      kLookupBatch,
      json["socket_rtt_us"]["p50"].get<double>(),
      json["socket_rtt_us"]["p99"].get<double>());
}

struct Measured {
  ordered_json json;
  std::string failure;  // empty: all was measured
};

Measured measure(client::Client& client, const BenchOptions& options) {
  Measured result;
  const std::size_t working_set = options.is_quick
                                      ? std::size_t{64} << 20U
                                      : std::max<std::size_t>(4 * last_level_cache(), 256U << 20U);
  const auto name_space = client.open_namespace(R"({"application":"cairn-bench"})");
  if (!name_space) return {.json = {}, .failure = "the namespace could not be opened"};
  const auto stats = client.stats();
  result.json["page_bytes"] = page_bytes_of_pool(ordered_json::parse(stats.json, nullptr, false));
  ProgressBar progress("bench", kSizes.size() + 1, true);
  std::size_t step = 0;
  for (const std::size_t size : kSizes) {
    const std::size_t batches = std::max<std::size_t>(1, working_set / (size * kBenchBatch));
    BlockBench bench(client, *name_space, size, batches * kBenchBatch);
    const auto figures = bench.run(options.is_quick ? 1 : options.rounds, result.failure);
    if (!figures) return result;
    result.json["sizes"][std::to_string(size)] = figures_json(*figures);
    progress.update(++step);
  }
  const auto lookups = measure_lookups(client, *name_space, options.is_quick ? 200 : 20'000);
  if (!lookups) return {.json = {}, .failure = "the lookups did not end as they should"};
  result.json["lookup_keys_per_s"] = *lookups;
  return result;
}

}  // namespace

int run_bench_local(const CommonOptions& common, const BenchOptions& options) {
  // The echo process is forked first, before anything is mapped or connected.
  BareSocket bare;
  std::string message;
  std::unique_ptr<LocalDaemon> daemon;
  std::string server = common.server;
  if (options.starts_daemon) {
    daemon = LocalDaemon::start(options.is_quick ? 512_MiB : 2_GiB, message);
    if (!daemon) {
      print_error(message);
      return kExitFailed;
    }
    server = daemon->server();
  }
  auto client = client::Client::connect({.server = server, .name = "cairn-bench"}, &message);
  if (!client) {
    print_error(explain(client.error(), server, message));
    return kExitFailed;
  }
  Latencies rtt;
  if (!bare.measure(options.is_quick ? 200 : 10'000, rtt)) {
    print_error("the bare socket round trip could not be measured");
    return kExitFailed;
  }
  Measured measured = measure(**client, options);
  if (!measured.failure.empty()) {
    print_error(measured.failure);
    return kExitFailed;
  }
  bare.measure(options.is_quick ? 200 : 10'000, rtt);
  measured.json["socket_rtt_us"] = {{"p50", rtt.percentile_us(0.5)},
                                    {"p99", rtt.percentile_us(0.99)}};
  if (common.json) {
    std::printf("%s\n", measured.json.dump().c_str());
  } else {
    print_table(measured.json);
  }
  return kExitOk;
}

}  // namespace cairn::cli
