#include "server/command_line.h"

#include "server/settings.h"

#include <CLI/CLI.hpp>

#include <exception>
#include <sstream>

namespace cairn::server {
namespace {

constexpr const char* kExitCodes =
    "Exit codes: 0 stopped as asked; 1 could not start or go on; 2 the command line or the\n"
    "configuration is wrong; 3 data_dir or pool.dir is locked, not writable or of a newer format.\n"
    "Example:\n"
    "  cairnd --config conf/cairnd.toml --set tiers.dram.size=4GiB";

struct Flags {
  bool is_help_config = false;
  bool is_sample_config = false;
};

void describe(CLI::App& app, CommandLine& line, Flags& flags) {
  app.add_option("--config", line.sources.file, "The configuration (TOML); without it, defaults")
      ->option_text("FILE");
  app.add_option("--set", line.sources.overrides, "Sets one key over the file; may be repeated")
      ->option_text("KEY=VALUE")
      ->allow_extra_args(false);
  app.add_flag("--check", line.is_check, "Tests the configuration and ends; nothing is opened");
  app.add_flag("--help-config", flags.is_help_config, "Prints every key as a table in Markdown");
  app.add_flag(
      "--sample-config", flags.is_sample_config, "Prints every key at its default as TOML");
  app.set_version_flag("--version", std::string("cairnd ") + CAIRN_VERSION);
  app.footer(kExitCodes);
}

void finish(const CLI::App& app, const CLI::Error& reason, CommandLine& line) {
  std::ostringstream output;
  std::ostringstream errors;
  const int code = app.exit(reason, output, errors);
  line.exit_code = code == 0 ? kExitOk : kExitConfig;
  line.output = output.str();
  line.errors = errors.str();
}

}  // namespace

CommandLine parse_command_line(int count, const char* const* arguments) noexcept {
  CommandLine line;
  try {
    CLI::App app("The Cairn daemon of one host: keeps KV cache blocks for the clients on it.",
                 "cairnd");
    Flags flags;
    describe(app, line, flags);
    try {
      app.parse(count, arguments);
    } catch (const CLI::Error& reason) {
      finish(app, reason, line);
    }
    if (!line.exit_code && (flags.is_help_config || flags.is_sample_config)) {
      line.exit_code = kExitOk;
      line.output = flags.is_help_config ? settings_markdown() : settings_toml();
    }
  } catch (const std::exception& failure) {
    line.exit_code = kExitFailed;
    line.errors = std::string("cairnd: ") + failure.what() + "\n";
  }
  return line;
}

}  // namespace cairn::server
