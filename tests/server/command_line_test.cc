#include "server/command_line.h"

#include "server/settings.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace cairn::server {
namespace {

CommandLine parse(std::vector<const char*> arguments) {
  arguments.insert(arguments.begin(), "cairnd");
  return parse_command_line(static_cast<int>(arguments.size()), arguments.data());
}

TEST(CommandLine, TakesAFileAndSeveralSettings) {
  const CommandLine line =
      parse({"--config", "/c.toml", "--set", "a.b=1", "--set=c=", "--check", "--set", "a.b=2"});

  EXPECT_FALSE(line.exit_code.has_value()) << line.errors;
  EXPECT_EQ(line.sources.file, "/c.toml");
  EXPECT_EQ(line.sources.overrides, (std::vector<std::string>{"a.b=1", "c=", "a.b=2"}));
  EXPECT_TRUE(line.is_check);
}

TEST(CommandLine, IsEmptyByDefault) {
  const CommandLine line = parse({});

  EXPECT_FALSE(line.exit_code.has_value());
  EXPECT_FALSE(line.sources.file.has_value());
  EXPECT_TRUE(line.sources.overrides.empty());
  EXPECT_FALSE(line.is_check);
}

TEST(CommandLine, RefusesWhatItDoesNotKnow) {
  for (const std::vector<const char*>& wrong :
       {std::vector<const char*>{"--cofnig", "/c"}, {"serve"}, {"--config"}, {"--set"}}) {
    const CommandLine line = parse(wrong);
    EXPECT_EQ(line.exit_code, kExitConfig);
    EXPECT_FALSE(line.errors.empty());
    EXPECT_TRUE(line.output.empty());
  }
}

TEST(CommandLine, ExplainsItself) {
  const CommandLine help = parse({"--help"});
  const CommandLine version = parse({"--version"});

  EXPECT_EQ(help.exit_code, kExitOk);
  for (const char* part : {"--config", "--check", "--set", "Exit codes", "Example:"}) {
    EXPECT_NE(help.output.find(part), std::string::npos) << part;
  }
  EXPECT_EQ(version.exit_code, kExitOk);
  EXPECT_EQ(version.output.rfind("cairnd ", 0), 0U);
}

TEST(CommandLine, PrintsTheConfigurationsReference) {
  EXPECT_EQ(parse({"--help-config"}).output, settings_markdown());
  EXPECT_EQ(parse({"--sample-config"}).output, settings_toml());
}

}  // namespace
}  // namespace cairn::server
