// The measurements of `cairn bench local` on blocks of one size.
#pragma once

#include "base/clock.h"
#include "client/cli/output.h"
#include "client/client.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace cairn::cli {

inline constexpr std::size_t kBenchBatch = 64;

// Medians over rounds; each round measures all of them one after another, so that a ratio compares
// what was measured side by side. Spreads are (third quartile - first) / median of the ratio.
struct BlockFigures {
  double memcpy_bytes_per_s = 0;
  double get_copy_bytes_per_s = 0;
  double get_copy_ratio = 0;
  double get_copy_ratio_spread = 0;
  double get_copy_unverified_ratio = 0;
  double put_copy_bytes_per_s = 0;
  double put_copy_ratio = 0;
  double put_copy_ratio_spread = 0;
  double get_inplace_blocks_per_s = 0;
  double get_inplace_verified_blocks_per_s = 0;
  double get_one_p50_us = 0;
  double get_one_p99_us = 0;
  double pool_memcpy_bytes_per_s = 0;
};

// Zeroed memory on whole pages, as engines' buffers are: a source and a target that lie differently
// in their pages would slow memcpy, and with it the yardstick, by half.
class PageBuffer {
 public:
  explicit PageBuffer(std::size_t bytes);
  std::span<std::byte> bytes() const noexcept { return {memory_.get(), bytes_}; }

 private:
  struct Free {
    void operator()(std::byte* memory) const noexcept;
  };
  std::size_t bytes_;
  std::unique_ptr<std::byte, Free> memory_;
};

class BlockBench {
 public:
  // `blocks` blocks of `block_bytes` are the working set: a multiple of kBenchBatch.
  BlockBench(client::Client& client,
             const client::Namespace& name_space,
             std::size_t block_bytes,
             std::size_t blocks);
  // nullopt: an operation did not end as it should; `message` says which.
  std::optional<BlockFigures> run(std::size_t rounds, std::string& message);

 private:
  struct Round {
    double memcpy_s = 0;
    double pool_memcpy_s = 0;
    double get_s = 0;
    double get_unverified_s = 0;
    double put_s = 0;
    double inplace_s = 0;
    double inplace_verified_s = 0;
  };
  std::optional<Round> run_round(std::string& message);
  // Each gives the seconds for the whole working set, nullopt if an operation failed.
  double copy_plain();
  std::optional<double> copy_from_views();
  std::optional<double> get(client::Verify verify);
  std::optional<double> get_views(client::Verify verify);
  std::optional<double> put();
  std::optional<double> get_one(Latencies& latencies);

  std::span<const BlockDigest> batch(std::size_t first) const;

  client::Client& client_;
  client::Namespace name_space_;
  std::size_t block_bytes_;
  std::size_t blocks_;
  SystemClock clock_;
  std::uint64_t next_key_ = 0;
  std::vector<BlockDigest> digests_;
  PageBuffer source_;  // the working set in plain memory
  PageBuffer target_;  // one batch
  std::vector<std::span<std::byte>> targets_;
  std::vector<client::KeyResult> results_;
  std::vector<client::BlockView> views_;
};

}  // namespace cairn::cli
