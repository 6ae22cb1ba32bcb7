#include "client/cli/output.h"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <system_error>

namespace cairn::cli {

void print_error(std::string_view what) {
  std::fprintf(stderr, "cairn: %.*s\n", static_cast<int>(what.size()), what.data());
}

std::string explain(const Error& error, const std::string& server, const std::string& message) {
  std::string text = server + ": ";
  switch (error.code) {
    case ErrorCode::kPeerGone:
      text += "no daemon answers there; start cairnd, or name another with --server";
      break;
    case ErrorCode::kTimeout:
      text += "the daemon did not answer in time";
      break;
    case ErrorCode::kBusy:
      text += "the daemon cannot do that now";
      break;
    case ErrorCode::kPermission:
      text += "this user may not use that socket";
      break;
    case ErrorCode::kVersion:
      text += "the daemon speaks another protocol version";
      break;
    default:
      text += std::string(error_code_name(error.code)) + " in " + error.what;
      break;
  }
  if (error.sys != 0) text += " (" + std::generic_category().message(error.sys) + ")";
  if (!message.empty()) text += ": " + message;
  return text;
}

ProgressBar::ProgressBar(std::string label, std::size_t total, bool is_wanted)
    : label_(std::move(label)),
      total_(std::max<std::size_t>(total, 1)),
      is_shown_(is_wanted && isatty(STDERR_FILENO) != 0) {}

ProgressBar::~ProgressBar() {
  if (is_shown_) std::fputs("\r\033[K", stderr);
}

void ProgressBar::update(std::size_t done) {
  if (!is_shown_) return;
  const std::size_t permille = std::min<std::size_t>(done * 1000 / total_, 1000);
  if (permille == last_permille_) return;
  last_permille_ = permille;
  constexpr std::size_t kWidth = 40;
  const std::size_t filled = permille * kWidth / 1000;
  const std::string bar = std::string(filled, '#') + std::string(kWidth - filled, '.');
  std::fprintf(stderr,
               "\r%s [%s] %5.1f %%",
               label_.c_str(),
               bar.c_str(),
               static_cast<double>(permille) / 10.0);
  std::fflush(stderr);
}

double Latencies::percentile_us(double share) const {
  if (ns_.empty()) return 0;
  std::vector<std::int64_t> sorted = ns_;
  const auto rank = static_cast<std::size_t>(std::ceil(share * static_cast<double>(sorted.size())));
  const std::size_t index = std::min(sorted.size() - 1, rank == 0 ? 0 : rank - 1);
  std::nth_element(
      sorted.begin(), sorted.begin() + static_cast<std::ptrdiff_t>(index), sorted.end());
  return static_cast<double>(sorted[index]) / 1000.0;
}

double Latencies::total_seconds() const {
  double total = 0;
  for (const std::int64_t ns : ns_)
    total += static_cast<double>(ns);
  return total / 1e9;
}

double median(std::vector<double> values) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

}  // namespace cairn::cli
