// One client of a replay: per request it looks the chain up, gets the leading run that is there and
// puts the rest.
#pragma once

#include "client/cli/output.h"
#include "client/cli/replay.h"
#include "client/cli/trace.h"
#include "client/client.h"

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace cairn::cli {

struct ReplayCounts {
  std::uint64_t requests = 0;
  std::uint64_t block_refs = 0;
  std::uint64_t prefix_hits = 0;  // delivered, and verified where asked
  std::uint64_t verified_blocks = 0;
  std::uint64_t wrong_blocks = 0;
  std::uint64_t delivered_blocks = 0;
  std::uint64_t get_bytes = 0;
  std::uint64_t put_bytes = 0;
  std::array<std::uint64_t, kBlockStatusCount>
      errors{};  // statuses that are not part of a normal run
  std::array<std::uint64_t, 5> tier_hits{};
  std::uint64_t calls_failed = 0;
  Latencies lookup;
  Latencies get;
  Latencies put;

  void merge(const ReplayCounts& other);
};

class ReplayWorker {
 public:
  ReplayWorker(client::Client& client,
               const client::Namespace& name_space,
               const ReplayOptions& options,
               const Clock& clock);
  void serve(const TraceRequest& request);
  const ReplayCounts& counts() const noexcept { return counts_; }

 private:
  std::size_t lookup_run();
  // The blocks of digests_[0, run) that were delivered.
  std::size_t get_run(std::size_t run);
  bool check(std::size_t position, std::span<const std::byte> bytes);
  void put_from(std::size_t first);
  std::optional<BlockDigest> put_batch(std::size_t first,
                                       std::size_t count,
                                       const std::optional<BlockDigest>& branch);
  void count_status(BlockStatus status);

  client::Client& client_;
  client::Namespace name_space_;
  ReplayOptions options_;
  const Clock& clock_;
  ReplayCounts counts_;
  std::vector<BlockDigest> digests_;
  std::vector<std::uint8_t> tiers_;
  std::vector<std::byte> buffer_;
  std::vector<std::span<std::byte>> targets_;
  std::vector<std::span<const std::byte>> sources_;
  std::vector<client::KeyResult> results_;
};

}  // namespace cairn::cli
