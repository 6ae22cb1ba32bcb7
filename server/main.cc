// cairnd: the command line, the configuration, then the daemon until it is told to stop.
#include "server/command_line.h"
#include "server/config.h"

#include <cstdio>
#include <string>

namespace {

using cairn::server::CommandLine;
using cairn::server::ConfigOutcome;

void print(std::FILE* stream, const std::string& text) {
  std::fputs(text.c_str(), stream);
  std::fflush(stream);
}

}  // namespace

int main(int count, char** arguments) {
  const CommandLine line = cairn::server::parse_command_line(count, arguments);
  if (line.exit_code) {
    print(stdout, line.output);
    print(stderr, line.errors);
    return *line.exit_code;
  }
  const ConfigOutcome outcome = cairn::server::load_config(line.sources);
  for (const std::string& error : outcome.errors)
    print(stderr, error + "\n");
  if (!outcome.errors.empty()) return cairn::server::kExitConfig;
  if (line.is_check) return cairn::server::kExitOk;
  return cairn::server::kExitFailed;
}
