#include "server/logging.h"

#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include <exception>
#include <memory>
#include <utility>

namespace cairn::server {
namespace {

constexpr const char* kPattern = "%Y-%m-%dT%H:%M:%S.%eZ %l %v";

spdlog::level::level_enum level_named(std::string_view name) {
  if (name == "warning") return spdlog::level::warn;
  if (name == "error") return spdlog::level::err;
  return spdlog::level::info;
}

}  // namespace

void configure_logging(std::string_view level) noexcept {
  try {
    auto logger = std::make_shared<spdlog::logger>(
        "cairnd", std::make_shared<spdlog::sinks::stderr_sink_mt>());
    logger->set_pattern(kPattern, spdlog::pattern_time_type::utc);
    logger->set_level(level_named(level));
    logger->flush_on(spdlog::level::info);
    spdlog::set_default_logger(std::move(logger));
  } catch (const std::exception&) {
    // spdlog's own logger stays; its lines look different and are as complete.
  }
}

void flush_log() noexcept {
  try {
    spdlog::default_logger_raw()->flush();
  } catch (const std::exception&) {
    // Nowhere is left to say it.
  }
}

}  // namespace cairn::server
