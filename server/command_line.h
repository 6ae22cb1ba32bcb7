// What a person may write after `cairnd`.
#pragma once

#include "server/config.h"
#include "server/start_failure.h"

#include <optional>
#include <string>

namespace cairn::server {

struct CommandLine {
  ConfigSources sources;
  bool is_check = false;  // test the configuration, start nothing
  // Set when there is nothing more to do (--help, --version, a wrong option): what to print, where,
  // and what to end with.
  std::optional<int> exit_code;
  std::string output;
  std::string errors;
};

CommandLine parse_command_line(int count, const char* const* arguments) noexcept;

}  // namespace cairn::server
