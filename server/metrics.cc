#include "server/metrics.h"

#include <algorithm>

namespace cairn::server {

const char* operation_name(Operation operation) noexcept {
  constexpr std::array<const char*, kOperationCount> kNames = {
      "hello",    "join",   "resume",  "ping",   "namespace_open", "bind",    "purge",
      "lookup",   "get",    "reserve", "commit", "put_inline",     "release", "retain",
      "prefetch", "remove", "hint",    "list",   "usage",          "stat",    "stats"};
  const auto index = static_cast<std::size_t>(operation);
  return index < kNames.size() ? kNames[index] : "unknown";
}

void LatencyHistogram::observe(Nanoseconds latency) noexcept {
  const auto ns = static_cast<std::uint64_t>(std::max<std::int64_t>(latency.count(), 0));
  const std::uint64_t us = (ns + 999) / 1'000;
  const auto bucket = std::lower_bound(kLatencyBucketsUs.begin(), kLatencyBucketsUs.end(), us);
  // Relaxed: counters are read for display, never to order anything.
  counts_[static_cast<std::size_t>(bucket - kLatencyBucketsUs.begin())].fetch_add(
      1, std::memory_order_relaxed);
  sum_ns_.fetch_add(ns, std::memory_order_relaxed);
}

std::array<std::uint64_t, kLatencyBucketsUs.size() + 1> LatencyHistogram::counts() const noexcept {
  std::array<std::uint64_t, kLatencyBucketsUs.size() + 1> out{};
  for (std::size_t i = 0; i < out.size(); ++i)
    out[i] = counts_[i].load(std::memory_order_relaxed);
  return out;
}

double LatencyHistogram::sum_seconds() const noexcept {
  return static_cast<double>(sum_ns_.load(std::memory_order_relaxed)) / 1e9;
}

}  // namespace cairn::server
