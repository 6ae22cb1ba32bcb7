#include "client/cli/replay_worker.h"

#include "client/cli/payload.h"

#include <algorithm>

namespace cairn::cli {
namespace {

// Blocks in one get or put: what the SDK moves in one round trip.
constexpr std::size_t kBatch = 64;

}  // namespace

void ReplayCounts::merge(const ReplayCounts& other) {
  requests += other.requests;
  block_refs += other.block_refs;
  prefix_hits += other.prefix_hits;
  verified_blocks += other.verified_blocks;
  wrong_blocks += other.wrong_blocks;
  delivered_blocks += other.delivered_blocks;
  get_bytes += other.get_bytes;
  put_bytes += other.put_bytes;
  calls_failed += other.calls_failed;
  for (std::size_t i = 0; i < errors.size(); ++i)
    errors[i] += other.errors[i];
  for (std::size_t i = 0; i < tier_hits.size(); ++i)
    tier_hits[i] += other.tier_hits[i];
  lookup.merge(other.lookup);
  get.merge(other.get);
  put.merge(other.put);
}

ReplayWorker::ReplayWorker(client::Client& client,
                           const client::Namespace& name_space,
                           const ReplayOptions& options,
                           const Clock& clock)
    : client_(client),
      name_space_(name_space),
      options_(options),
      clock_(clock),
      buffer_(kBatch * options.block_bytes.value()),
      results_(kBatch) {
  for (std::size_t i = 0; i < kBatch; ++i) {
    const auto piece =
        std::span(buffer_).subspan(i * options.block_bytes.value(), options.block_bytes.value());
    targets_.push_back(piece);
    sources_.emplace_back(piece);
  }
}

void ReplayWorker::serve(const TraceRequest& request) {
  digests_.clear();
  for (const std::uint64_t id : request.chain)
    digests_.push_back(trace_digest(id));
  ++counts_.requests;
  counts_.block_refs += digests_.size();
  if (digests_.empty()) return;
  const std::size_t run = lookup_run();
  const std::size_t delivered = get_run(run);
  for (std::size_t i = 0; i < delivered; ++i)
    ++counts_.tier_hits[std::min<std::size_t>(tiers_[i], 4)];
  put_from(delivered);
}

std::size_t ReplayWorker::lookup_run() {
  tiers_.assign(digests_.size(), 0);
  const MonotonicTime begin = clock_.now();
  const auto answer = client_.lookup(
      {.name_space = name_space_, .digests = digests_, .is_run = true, .tiers = tiers_});
  counts_.lookup.add(clock_.now() - begin);
  if (!answer) {
    ++counts_.calls_failed;
    return 0;
  }
  count_status(answer->status);
  return answer->status == BlockStatus::kOk ? answer->run : 0;
}

std::size_t ReplayWorker::get_run(std::size_t run) {
  for (std::size_t first = 0; first < run; first += kBatch) {
    const std::size_t count = std::min(kBatch, run - first);
    const auto results = std::span(results_).first(count);
    const MonotonicTime begin = clock_.now();
    const Status done =
        client_.get({.name_space = name_space_,
                     .digests = std::span(digests_).subspan(first, count),
                     .targets = std::span(targets_).first(count),
                     .verify = options_.verify ? client::Verify::kAlways : client::Verify::kNever,
                     .results = results});
    counts_.get.add(clock_.now() - begin);
    if (!done) {
      ++counts_.calls_failed;
      return first;
    }
    for (std::size_t i = 0; i < count; ++i) {
      count_status(results[i].status);
      if (results[i].status != BlockStatus::kOk) return first + i;
      ++counts_.delivered_blocks;
      counts_.get_bytes += results[i].length;
      if (!check(first + i,
                 targets_[i].first(std::min<std::size_t>(results[i].length, targets_[i].size())))) {
        return first + i;
      }
    }
  }
  return run;
}

bool ReplayWorker::check(std::size_t position, std::span<const std::byte> bytes) {
  if (!options_.verify) {
    ++counts_.prefix_hits;
    return true;
  }
  const std::uint64_t seed = payload_seed(name_space_, digests_[position], position);
  if (bytes.size() != options_.block_bytes.value() || !is_payload(seed, 0, bytes)) {
    ++counts_.wrong_blocks;
    return false;
  }
  ++counts_.verified_blocks;
  ++counts_.prefix_hits;
  return true;
}

void ReplayWorker::put_from(std::size_t first) {
  std::optional<BlockDigest> branch;
  for (std::size_t at = first; at < digests_.size(); at += kBatch) {
    branch = put_batch(at, std::min(kBatch, digests_.size() - at), branch);
  }
}

std::optional<BlockDigest> ReplayWorker::put_batch(std::size_t first,
                                                   std::size_t count,
                                                   const std::optional<BlockDigest>& branch) {
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t position = first + i;
    fill_payload(payload_seed(name_space_, digests_[position], position), 0, targets_[i]);
  }
  client::PutPlacement placement;
  placement.position = static_cast<std::uint32_t>(first);
  placement.branch = branch;
  if (first > 0) placement.parent = digests_[first - 1];
  const auto results = std::span(results_).first(count);
  const MonotonicTime begin = clock_.now();
  const auto done = client_.put({.name_space = name_space_,
                                 .digests = std::span(digests_).subspan(first, count),
                                 .sources = std::span(sources_).first(count),
                                 .placement = placement,
                                 .results = results});
  counts_.put.add(clock_.now() - begin);
  if (!done) {
    ++counts_.calls_failed;
    return branch;
  }
  for (const client::KeyResult& result : results) {
    count_status(result.status);
    if (result.status == BlockStatus::kOk) counts_.put_bytes += options_.block_bytes.value();
  }
  return *done;
}

void ReplayWorker::count_status(BlockStatus status) {
  switch (status) {
    case BlockStatus::kOk:
    case BlockStatus::kExists:
    case BlockStatus::kMiss:
    case BlockStatus::kCut:
    case BlockStatus::kDeclined:
      return;
    default:
      ++counts_.errors[static_cast<std::size_t>(status)];
  }
}

}  // namespace cairn::cli
