// cairnd: the command line, the configuration, then the daemon until it is told to stop.
#include "server/bus_error.h"
#include "server/command_line.h"
#include "server/config.h"
#include "server/daemon.h"
#include "server/logging.h"
#include "server/process_setup.h"
#include "server/start_failure.h"

#include <cstdio>
#include <exception>
#include <string>

namespace cairn::server {
namespace {

void print(std::FILE* stream, const std::string& text) {
  std::fputs(text.c_str(), stream);
  std::fflush(stream);
}

int serve(const ConfigOutcome& outcome) {
  hold_stop_signals();
  install_bus_error_handler();
  raise_descriptor_limit();
  configure_logging(outcome.config.log_level);
  auto daemon = Daemon::start(outcome);
  if (!daemon) {
    print(stderr, "cairnd: " + daemon.error().message + "\n");
    return daemon.error().exit_code;
  }
  print(stderr, (*daemon)->ready_line() + "\n");
  wait_for_stop_signal();
  (*daemon)->stop();
  daemon->reset();
  flush_log();
  return kExitOk;
}

int run(int count, const char* const* arguments) {
  const CommandLine line = parse_command_line(count, arguments);
  if (line.exit_code) {
    print(stdout, line.output);
    print(stderr, line.errors);
    return *line.exit_code;
  }
  const ConfigOutcome outcome = load_config(line.sources);
  for (const std::string& error : outcome.errors)
    print(stderr, error + "\n");
  if (!outcome.errors.empty()) return kExitConfig;
  if (!line.is_check) return serve(outcome);
  print(stdout, "the configuration is good\n");
  return kExitOk;
}

}  // namespace

// For main() alone.
int run_cairnd(int count, const char* const* arguments) {
  try {
    return run(count, arguments);
  } catch (const std::exception& failure) {
    print(stderr, std::string("cairnd: ") + failure.what() + "\n");
    return kExitFailed;
  }
}

}  // namespace cairn::server

int main(int count, char** arguments) {
  return cairn::server::run_cairnd(count, arguments);
}
