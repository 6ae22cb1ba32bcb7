// What the command prints: errors with the reason, a progress bar, percentiles.
#pragma once

#include "base/result.h"
#include "client/types.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace cairn::cli {

inline constexpr int kExitOk = 0;
inline constexpr int kExitFailed = 1;  // the operation did not do what was asked
inline constexpr int kExitUsage = 2;   // the command line is wrong

struct CommonOptions {
  std::string server = "unix:/run/cairn/cairnd.sock";
  bool json = false;
};

// "cairn: <what>" on stderr.
void print_error(std::string_view what);
// What went wrong when connecting or calling, in words, with what to do about it.
std::string explain(const Error& error, const std::string& server, const std::string& message);

// A bar on stderr while it is a terminal; nothing otherwise. One thread.
class ProgressBar {
 public:
  ProgressBar(std::string label, std::size_t total, bool is_wanted);
  ~ProgressBar();
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;
  void update(std::size_t done);

 private:
  std::string label_;
  std::size_t total_;
  bool is_shown_;
  std::size_t last_permille_ = static_cast<std::size_t>(-1);
};

// Latencies in nanoseconds; percentile() in microseconds, 0 when there are none.
class Latencies {
 public:
  void add(Nanoseconds latency) { ns_.push_back(latency.count()); }
  void merge(const Latencies& other) { ns_.insert(ns_.end(), other.ns_.begin(), other.ns_.end()); }
  std::size_t size() const noexcept { return ns_.size(); }
  double percentile_us(double share) const;
  double total_seconds() const;

 private:
  std::vector<std::int64_t> ns_;
};

double median(std::vector<double> values);

}  // namespace cairn::cli
