// One line a change of state: an event's name and its fields. The sink is the default spdlog
// logger, which main configures; until then it is stderr.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>

namespace cairn::server {

enum class LogLevel : std::uint8_t { kInfo, kWarning, kError };

struct LogField {
  std::string_view name;
  std::string value;
};

// "session_opened session=0123abcd peer=pid:12": a value that is empty or holds a blank, a quote,
// an equals sign or a control character is quoted. Never on the path of every block. Any thread.
void log_event(LogLevel level,
               std::string_view event,
               std::initializer_list<LogField> fields) noexcept;

// The line that log_event() writes.
std::string format_event(std::string_view event, std::initializer_list<LogField> fields);

}  // namespace cairn::server
