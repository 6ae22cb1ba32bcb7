#include "server/log.h"

#include <spdlog/spdlog.h>

#include <algorithm>

namespace cairn::server {
namespace {

constexpr std::string_view kHexDigits = "0123456789abcdef";

bool is_control(char c) {
  return static_cast<unsigned char>(c) < 0x20 || c == 0x7F;
}

bool needs_quotes(std::string_view value) {
  if (value.empty()) return true;
  return std::any_of(value.begin(), value.end(), [](char c) {
    return c == ' ' || c == '"' || c == '\\' || c == '=' || is_control(c);
  });
}

void append_value(std::string& line, std::string_view value) {
  if (!needs_quotes(value)) {
    line += value;
    return;
  }
  line += '"';
  for (const char c : value) {
    if (is_control(c)) {
      const auto byte = static_cast<unsigned char>(c);
      line += "\\x";
      line += kHexDigits[byte >> 4U];
      line += kHexDigits[byte & 0xFU];
      continue;
    }
    if (c == '"' || c == '\\') line += '\\';
    line += c;
  }
  line += '"';
}

spdlog::level::level_enum spdlog_level(LogLevel level) {
  switch (level) {
    case LogLevel::kInfo:
      return spdlog::level::info;
    case LogLevel::kWarning:
      return spdlog::level::warn;
    case LogLevel::kError:
      return spdlog::level::err;
  }
  return spdlog::level::err;
}

}  // namespace

std::string format_event(std::string_view event, std::initializer_list<LogField> fields) {
  std::string line(event);
  for (const LogField& field : fields) {
    line += ' ';
    line += field.name;
    line += '=';
    append_value(line, field.value);
  }
  return line;
}

void log_event(LogLevel level,
               std::string_view event,
               std::initializer_list<LogField> fields) noexcept {
  try {
    spdlog::log(spdlog_level(level), "{}", format_event(event, fields));
  } catch (...) {
    // A line that cannot be written is lost; the daemon goes on.
  }
}

}  // namespace cairn::server
