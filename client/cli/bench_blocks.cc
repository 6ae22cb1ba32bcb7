#include "client/cli/bench_blocks.h"

#include "base/check.h"
#include "client/cli/payload.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>

namespace cairn::cli {
namespace {

constexpr std::size_t kPageBytes = 4'096;

double seconds(Nanoseconds duration) {
  return static_cast<double>(duration.count()) / 1e9;
}

bool all_ok(std::span<const client::KeyResult> results, BlockStatus also = BlockStatus::kOk) {
  return std::all_of(results.begin(), results.end(), [&](const client::KeyResult& result) {
    return result.status == BlockStatus::kOk || result.status == also;
  });
}

double spread(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const double middle = values[values.size() / 2];
  if (middle == 0) return 0;
  return (values[values.size() * 3 / 4] - values[values.size() / 4]) / middle;
}

}  // namespace

PageBuffer::PageBuffer(std::size_t bytes)
    : bytes_(bytes),
      memory_(
          static_cast<std::byte*>(std::aligned_alloc(kPageBytes, round_up(bytes, kPageBytes)))) {
  CAIRN_CHECK(memory_ != nullptr);
  std::memset(memory_.get(), 0, bytes_);
}

void PageBuffer::Free::operator()(std::byte* memory) const noexcept {
  std::free(memory);
}

BlockBench::BlockBench(client::Client& client,
                       const client::Namespace& name_space,
                       std::size_t block_bytes,
                       std::size_t blocks)
    : client_(client),
      name_space_(name_space),
      block_bytes_(block_bytes),
      blocks_(blocks),
      source_(block_bytes * blocks),
      target_(block_bytes * kBenchBatch),
      results_(kBenchBatch),
      views_(kBenchBatch) {
  for (std::size_t i = 0; i < kBenchBatch; ++i) {
    targets_.push_back(target_.bytes().subspan(i * block_bytes_, block_bytes_));
  }
  for (std::size_t i = 0; i < blocks_; ++i) {
    fill_payload(i, 0, source_.bytes().subspan(i * block_bytes_, block_bytes_));
  }
}

std::span<const BlockDigest> BlockBench::batch(std::size_t first) const {
  return std::span(digests_).subspan(first, kBenchBatch);
}

double BlockBench::copy_plain() {
  const MonotonicTime begin = clock_.now();
  for (std::size_t i = 0; i < blocks_; ++i) {
    std::memcpy(
        targets_[i % kBenchBatch].data(), source_.bytes().data() + i * block_bytes_, block_bytes_);
  }
  return seconds(clock_.now() - begin);
}

std::optional<double> BlockBench::copy_from_views() {
  Nanoseconds total(0);
  for (std::size_t first = 0; first < blocks_; first += kBenchBatch) {
    const Status done = client_.get_views({.name_space = name_space_,
                                           .digests = batch(first),
                                           .is_chain = false,
                                           .verify = client::Verify::kNever,
                                           .views = views_,
                                           .results = results_});
    if (!done || !all_ok(results_)) return std::nullopt;
    const MonotonicTime begin = clock_.now();
    for (std::size_t i = 0; i < kBenchBatch; ++i) {
      std::byte* to = targets_[i].data();
      for (std::uint32_t piece = 0; piece < views_[i].piece_count; ++piece) {
        const auto bytes = views_[i].pieces[piece];
        std::memcpy(to, bytes.data(), bytes.size());
        to += bytes.size();
      }
    }
    total += clock_.now() - begin;
    client_.release(views_);
  }
  return seconds(total);
}

std::optional<double> BlockBench::get(client::Verify verify) {
  const MonotonicTime begin = clock_.now();
  for (std::size_t first = 0; first < blocks_; first += kBenchBatch) {
    const Status done = client_.get({.name_space = name_space_,
                                     .digests = batch(first),
                                     .targets = targets_,
                                     .is_chain = false,
                                     .verify = verify,
                                     .results = results_});
    if (!done || !all_ok(results_)) return std::nullopt;
  }
  return seconds(clock_.now() - begin);
}

std::optional<double> BlockBench::get_views(client::Verify verify) {
  const MonotonicTime begin = clock_.now();
  for (std::size_t first = 0; first < blocks_; first += kBenchBatch) {
    const Status done = client_.get_views({.name_space = name_space_,
                                           .digests = batch(first),
                                           .is_chain = false,
                                           .verify = verify,
                                           .views = views_,
                                           .results = results_});
    if (!done || !all_ok(results_)) return std::nullopt;
    client_.release(views_);
  }
  return seconds(clock_.now() - begin);
}

// Puts the working set under new keys: the blocks of the round before become the coldest and leave.
std::optional<double> BlockBench::put() {
  digests_.clear();
  for (std::size_t i = 0; i < blocks_; ++i)
    digests_.push_back(trace_digest(next_key_++));
  std::vector<std::span<const std::byte>> sources(kBenchBatch);
  const MonotonicTime begin = clock_.now();
  for (std::size_t first = 0; first < blocks_; first += kBenchBatch) {
    for (std::size_t i = 0; i < kBenchBatch; ++i) {
      sources[i] = source_.bytes().subspan((first + i) * block_bytes_, block_bytes_);
    }
    const auto done = client_.put({.name_space = name_space_,
                                   .digests = batch(first),
                                   .sources = sources,
                                   .placement = {.is_chain = false},
                                   .results = results_});
    if (!done || !all_ok(results_, BlockStatus::kExists)) return std::nullopt;
  }
  return seconds(clock_.now() - begin);
}

std::optional<double> BlockBench::get_one(Latencies& latencies) {
  constexpr std::size_t kGets = 256;
  for (std::size_t i = 0; i < kGets; ++i) {
    const std::span<const BlockDigest> one(&digests_[i % blocks_], 1);
    const MonotonicTime begin = clock_.now();
    const Status done = client_.get_views({.name_space = name_space_,
                                           .digests = one,
                                           .verify = client::Verify::kNever,
                                           .views = std::span(views_).first(1),
                                           .results = std::span(results_).first(1)});
    latencies.add(clock_.now() - begin);
    if (!done || results_[0].status != BlockStatus::kOk) return std::nullopt;
    client_.release(std::span(views_).first(1));
  }
  return latencies.total_seconds();
}

std::optional<BlockBench::Round> BlockBench::run_round(std::string& message) {
  Round round;
  const auto measure = [&](const char* what, std::optional<double> figure, double& into) {
    if (!figure) {
      message = std::string(what) + " did not end as it should";
      return false;
    }
    into = *figure;
    return true;
  };
  if (!measure("put", put(), round.put_s)) return std::nullopt;
  round.memcpy_s = copy_plain();
  if (!measure("get", get(client::Verify::kAlways), round.get_s)) return std::nullopt;
  if (!measure("get", get(client::Verify::kNever), round.get_unverified_s)) return std::nullopt;
  if (!measure("get in place", copy_from_views(), round.pool_memcpy_s)) return std::nullopt;
  if (!measure("get in place", get_views(client::Verify::kNever), round.inplace_s)) {
    return std::nullopt;
  }
  if (!measure("get in place", get_views(client::Verify::kAlways), round.inplace_verified_s)) {
    return std::nullopt;
  }
  return round;
}

std::optional<BlockFigures> BlockBench::run(std::size_t rounds, std::string& message) {
  // Once around the pool and a little, so that every slab has been touched through this client's
  // mapping; then a whole round, so that every target page is there.
  const std::uint64_t pool_bytes = client_.server_info().pool_bytes.value();
  for (std::uint64_t written = 0; written <= pool_bytes; written += block_bytes_ * blocks_) {
    if (!put()) {
      message = "put did not end as it should";
      return std::nullopt;
    }
  }
  if (!run_round(message)) return std::nullopt;
  const double bytes = static_cast<double>(block_bytes_ * blocks_);
  const double count = static_cast<double>(blocks_);
  std::vector<double> plain;
  std::vector<double> pool;
  std::vector<double> get_rate;
  std::vector<double> get_ratio;
  std::vector<double> get_unverified;
  std::vector<double> put_rate;
  std::vector<double> put_ratio;
  std::vector<double> inplace;
  std::vector<double> inplace_verified;
  Latencies one;
  for (std::size_t i = 0; i < rounds; ++i) {
    const auto round = run_round(message);
    if (!round) return std::nullopt;
    if (!get_one(one)) {
      message = "get of one block did not end as it should";
      return std::nullopt;
    }
    plain.push_back(bytes / round->memcpy_s);
    pool.push_back(bytes / round->pool_memcpy_s);
    get_rate.push_back(bytes / round->get_s);
    get_ratio.push_back(round->memcpy_s / round->get_s);
    get_unverified.push_back(round->memcpy_s / round->get_unverified_s);
    put_rate.push_back(bytes / round->put_s);
    put_ratio.push_back(round->memcpy_s / round->put_s);
    inplace.push_back(count / round->inplace_s);
    inplace_verified.push_back(count / round->inplace_verified_s);
  }
  return BlockFigures{.memcpy_bytes_per_s = median(plain),
                      .get_copy_bytes_per_s = median(get_rate),
                      .get_copy_ratio = median(get_ratio),
                      .get_copy_ratio_spread = spread(get_ratio),
                      .get_copy_unverified_ratio = median(get_unverified),
                      .put_copy_bytes_per_s = median(put_rate),
                      .put_copy_ratio = median(put_ratio),
                      .put_copy_ratio_spread = spread(put_ratio),
                      .get_inplace_blocks_per_s = median(inplace),
                      .get_inplace_verified_blocks_per_s = median(inplace_verified),
                      .get_one_p50_us = one.percentile_us(0.5),
                      .get_one_p99_us = one.percentile_us(0.99),
                      .pool_memcpy_bytes_per_s = median(pool)};
}

}  // namespace cairn::cli
