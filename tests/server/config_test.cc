#include "server/config.h"

#include "server/settings.h"
#include "storage/eviction/policy.h"
#include "tests/support/process_runner.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <sstream>

namespace cairn::server {
namespace {

using testing::TempDir;
using Parts = std::vector<std::string>;

ConfigOutcome with(std::vector<std::string> overrides) {
  return load_config({.file = std::nullopt, .overrides = std::move(overrides)});
}

class ConfigFile : public ::testing::Test {
 protected:
  ConfigOutcome load(std::string_view text, std::vector<std::string> overrides = {}) {
    std::ofstream(path_, std::ios::binary) << text;
    return load_config({.file = path_, .overrides = std::move(overrides)});
  }
  // The one error that `text` gives, without the path before the line number.
  std::string error(std::string_view text) {
    const ConfigOutcome outcome = load(text);
    EXPECT_EQ(outcome.errors.size(), 1U) << text;
    if (outcome.errors.empty()) return "no error";
    EXPECT_EQ(outcome.errors[0].rfind(path_ + ":", 0), 0U) << outcome.errors[0];
    return outcome.errors[0].substr(path_.size() + 1);
  }

  TempDir directory_;
  std::string path_ = directory_ / "cairnd.toml";
};

void expect_parts(const std::string& text, const Parts& parts) {
  for (const std::string& part : parts) {
    EXPECT_NE(text.find(part), std::string::npos) << "no '" << part << "' in: " << text;
  }
}

TEST_F(ConfigFile, IsDefaultWhenItIsEmpty) {
  const ConfigOutcome outcome = load("");

  EXPECT_TRUE(outcome.errors.empty());
  EXPECT_EQ(outcome.config.data_dir, "/var/lib/cairn");
  EXPECT_EQ(outcome.config.listen_unix, "/run/cairn/cairnd.sock");
  EXPECT_EQ(outcome.config.listen_tcp, "");
  EXPECT_EQ(outcome.config.pool_dir, "/dev/shm/cairn");
  EXPECT_EQ(outcome.config.dram_size, 1_GiB);
  EXPECT_EQ(outcome.config.eviction_policy, "lru");
  EXPECT_EQ(outcome.config.lent_max, ByteCount(0));
  EXPECT_FALSE(outcome.config.allow_weak_keys);
  EXPECT_EQ(outcome.config.loops, 1U);
  EXPECT_EQ(outcome.config.spin, std::chrono::microseconds(50));
  EXPECT_EQ(outcome.config.log_level, "info");
}

TEST_F(ConfigFile, SetsEveryKey) {
  const ConfigOutcome outcome = load(
      "data_dir = '/d'\n[listen]\nunix = '/s'\ntcp = '127.0.0.2:1'\n[admin]\nlisten = '[::1]:2'\n"
      "[pool]\ndir = '/p'\n[tiers.dram]\nsize = '1.5 GiB'\n[eviction]\npolicy = 'lru'\n"
      "[clients]\nlent_max = 104857600\n[keys]\nallow_weak = true\n[threads]\nloops = 4\n"
      "spin = '1ms'\n[log]\nlevel = 'warning'\n");

  EXPECT_TRUE(outcome.errors.empty()) << outcome.errors[0];
  EXPECT_EQ(outcome.config.data_dir, "/d");
  EXPECT_EQ(outcome.config.listen_unix, "/s");
  EXPECT_EQ(outcome.config.listen_tcp, "127.0.0.2:1");
  EXPECT_EQ(outcome.config.admin_listen, "[::1]:2");
  EXPECT_EQ(outcome.config.pool_dir, "/p");
  EXPECT_EQ(outcome.config.dram_size, 1536_MiB);
  EXPECT_EQ(outcome.config.lent_max, 100_MiB);
  EXPECT_TRUE(outcome.config.allow_weak_keys);
  EXPECT_EQ(outcome.config.loops, 4U);
  EXPECT_EQ(outcome.config.spin, Milliseconds(1));
  EXPECT_EQ(outcome.config.log_level, "warning");
  EXPECT_EQ(outcome.origins.size(), settings().size());
  EXPECT_EQ(outcome.origin("tiers.dram.size"), path_ + ":10");
}

TEST_F(ConfigFile, NamesTheNearestKeyOfAMisspeltOne) {
  EXPECT_EQ(error("\n[tiers.dram]\nsise = '1GiB'\n"),
            "3: tiers.dram.sise: no such key; the nearest is tiers.dram.size (allowed: 64MiB to "
            "16TiB; default: \"1GiB\")");
  expect_parts(error("dta_dir = '/x'\n"), {"1: dta_dir: no such key", "nearest is data_dir"});
  expect_parts(error("[teirs.dram]\nsize = 1\n"), {"2: teirs.dram.size", "is tiers.dram.size"});
  expect_parts(error("[[pool]]\ndir = '/p'\n"), {"1: pool: holds other keys and takes no value"});
  expect_parts(error("\n[poll]\n"), {"2: poll: no such key; the nearest is pool.dir"});
  expect_parts(error("listen = '127.0.0.1:1'\n"), {"1: listen: holds other keys"});
  expect_parts(error("a.b.c.d.e.f = 1\n"), {"1: a.b.c.d.e.f: no such key"});
}

TEST_F(ConfigFile, TellsAllErrorsInOrder) {
  const ConfigOutcome outcome = load(
      "data_dir = 'relative'\n[threads]\nloops = 0\n[tiers.dram]\nsize = 'big'\n[listen]\ntpc = "
      "1\n",
      {"log.level=loud", "nonsense"});

  ASSERT_EQ(outcome.errors.size(), 6U);
  expect_parts(outcome.errors[0], {":1: data_dir = \"relative\": a path must be absolute"});
  expect_parts(outcome.errors[1], {":3: threads.loops = 0: out of range (allowed: 1 to 64;"});
  expect_parts(outcome.errors[2], {":5: tiers.dram.size = \"big\": not a size"});
  expect_parts(outcome.errors[3], {":7: listen.tpc: no such key; the nearest is listen.tcp"});
  expect_parts(
      outcome.errors[4],
      {"--set: log.level = loud: not one of the choices (allowed: info, warning or error;"});
  expect_parts(outcome.errors[5], {"--set: nonsense: not key=value"});
}

TEST_F(ConfigFile, SaysWhereTheTomlBreaks) {
  expect_parts(error("data_dir = '/d'\n[listen\n"), {"2: not TOML: "});
  expect_parts(error("log.level = 'info'\nlog.level = 'info'\n"), {"2: not TOML: "});
  expect_parts(error("data_dir = \"\x80\"\n"), {"1: not TOML: "});
}

TEST_F(ConfigFile, RefusesSizesOutOfRangeOrWithoutSense) {
  const Parts range = {"2: tiers.dram.size", "out of range (allowed: 64MiB to 16TiB;"};
  expect_parts(error("[tiers.dram]\nsize = '63MiB'\n"), range);
  expect_parts(error("[tiers.dram]\nsize = '17TiB'\n"), range);
  expect_parts(error("[tiers.dram]\nsize = 67108863\n"), range);
  expect_parts(error("[tiers.dram]\nsize = -1\n"), range);
  for (const char* size : {"'1 GiBB'", "'-1GiB'", "''", "'1e9'", "'GiB'", "'99999999TiB'"}) {
    expect_parts(error(std::string("[tiers.dram]\nsize = ") + size + "\n"),
                 {"2: tiers.dram.size = \"", "not a size; write 512MiB"});
  }
  expect_parts(error("[tiers.dram]\nsize = 1.5\n"), {"not a number with a fraction"});
  expect_parts(error("[tiers.dram]\nsize = true\n"), {"a size is needed", "not a boolean"});
  expect_parts(error("[tiers.dram]\nsize = [1]\n"), {"(an array): a size is needed"});
}

TEST_F(ConfigFile, RefusesAddressesThatOthersCouldReach) {
  for (const char* address : {"0.0.0.0:7000", "192.168.1.2:7000", "[::]:7000", "host:7000"}) {
    for (const char* table : {"[listen]\ntcp", "[admin]\nlisten"}) {
      expect_parts(error(std::string(table) + " = '" + address + "'\n"),
                   {address, "reached from other machines", "no encryption (TLS) yet"});
    }
  }
}

TEST_F(ConfigFile, RefusesAddressesWithoutSense) {
  for (const char* port : {"127.0.0.1:65536", "127.0.0.1:-1", "127.0.0.1:", "127.0.0.1:x"}) {
    expect_parts(
        error(std::string("[listen]\ntcp = '") + port + "'\n"),
        {"2: listen.tcp = \"", "the port is no number from 0 to 65535", "allowed: HOST:PORT"});
  }
  expect_parts(error("[listen]\ntcp = '127.0.0.1'\n"), {"neither unix:PATH nor HOST:PORT"});
  expect_parts(error("[listen]\ntcp = 'unix:/s'\n"), {"not a socket's path"});
  expect_parts(error("[listen]\ntcp = 7000\n"), {"a string is needed, not an integer"});
}

TEST_F(ConfigFile, RefusesPathsThatCannotBe) {
  expect_parts(error("[pool]\ndir = ''\n"), {"2: pool.dir = \"\": a path is needed"});
  expect_parts(error("[pool]\ndir = 'a'\n"), {"a path must be absolute"});
  expect_parts(error("data_dir = \"/a\\u0000b\"\n"), {"= \"/a?b\": a path holds no zero byte"});
  expect_parts(error("data_dir = '/" + std::string(3'000, 'x') + "'\n"),
               {"the path has 3001 bytes, the most is 3000"});
  expect_parts(error("[listen]\nunix = '/" + std::string(107, 'x') + "'\n"),
               {"the path has 108 bytes, the most is 107"});
  expect_parts(error("[listen]\nunix = 's'\n"), {"a path must be absolute"});
}

TEST_F(ConfigFile, RefusesOtherTypesAndChoices) {
  expect_parts(error("[threads]\nloops = '4'\n"), {"a whole number is needed, not a string"});
  expect_parts(error("[threads]\nloops = 65\n"), {"out of range (allowed: 1 to 64; default: 1)"});
  expect_parts(error("[threads]\nspin = 50\n"), {"a duration is needed", "not an integer"});
  expect_parts(error("[threads]\nspin = '50'\n"), {"write a number and us, ms, s, m, h or d"});
  expect_parts(error("[threads]\nspin = '2ms'\n"),
               {"out of range (allowed: 0s to 1ms; default: \"50us\")"});
  expect_parts(error("[keys]\nallow_weak = 1\n"), {"true or false is needed, not an integer"});
  expect_parts(error("[eviction]\npolicy = 'fifo'\n"), {"not one of the choices (allowed: lru;"});
  expect_parts(error("[log]\nlevel = 'info|warning'\n"), {"not one of the choices"});
  expect_parts(error("[log]\nlevel = 2024-01-01\n"), {"(a date or time): a string is needed"});
  expect_parts(error("[data_dir]\n"), {"1: data_dir = (a table): a string is needed"});
}

TEST_F(ConfigFile, ChecksKeysAgainstOneAnother) {
  EXPECT_EQ(error("[listen]\nunix = ''\n"),
            "2: listen.unix = : no address to listen on: listen.tcp is empty too");
  EXPECT_EQ(error("[listen]\ntcp = '127.0.0.1:5'\n[admin]\nlisten = '127.0.0.1:5'\n"),
            "4: admin.listen = 127.0.0.1:5: the same address as listen.tcp");
  EXPECT_EQ(error("data_dir = '/x'\n[pool]\ndir = '/x'\n"),
            "3: pool.dir = /x: the same directory as data_dir");
  EXPECT_EQ(error("[clients]\nlent_max = '1GiB'\n"),
            "2: clients.lent_max = 1GiB: a pool of 1GiB (tiers.dram.size, default) can lend 960MiB "
            "at most");
  EXPECT_TRUE(load("[listen]\ntcp='127.0.0.1:0'\n[admin]\nlisten='127.0.0.1:0'\n").errors.empty());
}

TEST_F(ConfigFile, SaysThatItCannotBeRead) {
  const ConfigOutcome missing = load_config({.file = directory_ / "none.toml", .overrides = {}});
  const ConfigOutcome directory = load_config({.file = directory_.path(), .overrides = {}});
  const ConfigOutcome huge = load(std::string(kConfigFileBytesMax.value() + 1, '\n'));

  ASSERT_EQ(missing.errors.size(), 1U);
  EXPECT_EQ(missing.errors[0], directory_ / "none.toml: cannot be read: No such file or directory");
  ASSERT_EQ(directory.errors.size(), 1U);
  EXPECT_EQ(directory.errors[0], directory_.path() + ": cannot be read: Is a directory");
  ASSERT_EQ(huge.errors.size(), 1U);
  EXPECT_EQ(huge.errors[0], path_ + ": longer than 1MiB");
}

TEST_F(ConfigFile, GivesWayToOverrides) {
  const ConfigOutcome outcome =
      load("[tiers.dram]\nsize = '2GiB'\n", {"tiers.dram.size=64MiB", "tiers.dram.size=128MiB"});

  EXPECT_TRUE(outcome.errors.empty());
  EXPECT_EQ(outcome.config.dram_size, 128_MiB);
  EXPECT_EQ(outcome.origin("tiers.dram.size"), "--set");
  EXPECT_EQ(outcome.origin("pool.dir"), "default");
}

TEST(ConfigOverride, ReadsEachKind) {
  const ConfigOutcome outcome = with({"listen.unix=",
                                      "listen.tcp=\"127.0.0.1:0\"",
                                      "pool.dir=/a=b",
                                      "tiers.dram.size=67108864",
                                      "clients.lent_max=auto",
                                      "keys.allow_weak=true",
                                      "threads.loops=2"});

  ASSERT_TRUE(outcome.errors.empty()) << outcome.errors[0];
  EXPECT_EQ(outcome.config.listen_unix, "");
  EXPECT_EQ(outcome.config.listen_tcp, "127.0.0.1:0");
  EXPECT_EQ(outcome.config.pool_dir, "/a=b");
  EXPECT_EQ(outcome.config.dram_size, 64_MiB);
  EXPECT_EQ(outcome.config.lent_max, ByteCount(0));
  EXPECT_TRUE(outcome.config.allow_weak_keys);
  EXPECT_EQ(outcome.config.loops, 2U);
}

TEST(ConfigOverride, NamesItselfInErrors) {
  const auto error = [](const std::string& text) {
    const ConfigOutcome outcome = with({text});
    return outcome.errors.empty() ? std::string("no error") : outcome.errors[0];
  };
  EXPECT_EQ(error("tiers.dram.siz=1GiB"),
            "--set: tiers.dram.siz: no such key; the nearest is tiers.dram.size (allowed: 64MiB to "
            "16TiB; default: \"1GiB\")");
  EXPECT_EQ(error("threads.loops=two"),
            "--set: threads.loops = two: a whole number is needed (allowed: 1 to 64; default: 1)");
  EXPECT_EQ(error("threads.loops=99999999999999999999"),
            "--set: threads.loops = 99999999999999999999: a whole number is needed (allowed: 1 to "
            "64; default: 1)");
  EXPECT_EQ(error("keys.allow_weak=yes"),
            "--set: keys.allow_weak = yes: true or false is needed (allowed: true or false; "
            "default: false)");
  EXPECT_EQ(error("=1"), "--set: =1: not key=value");
  EXPECT_EQ(error("tiers=1"), "--set: tiers: holds other keys and takes no value");
  EXPECT_EQ(error(std::string(5'000, 'k') + "=1").size() < 400, true);
}

TEST(Settings, KnowNoPolicyThatTheStoreLacks) {
  const std::string choices(find_setting("eviction.policy")->choices);
  std::istringstream names(choices);
  for (std::string name; std::getline(names, name, '|');) {
    EXPECT_NE(storage::make_eviction_policy(name, 1'000), nullptr) << name;
  }
}

TEST(Settings, LendAQuarterOrTwoBatchesButNeverAllOfThePool) {
  EXPECT_EQ(lent_max_for(64_MiB), 32_MiB);
  EXPECT_EQ(lent_max_for(128_MiB), 64_MiB);
  EXPECT_EQ(lent_max_for(512_MiB), 448_MiB);
  EXPECT_EQ(lent_max_for(1_GiB), 512_MiB + 512_KiB);
  EXPECT_EQ(lent_max_for(64_GiB), 16_GiB);
}

TEST(Settings, WriteTheFileInConf) {
  std::ifstream file(CAIRN_SOURCE_DIR "/conf/cairnd.toml");
  std::stringstream text;
  text << file.rdbuf();

  EXPECT_EQ(text.str(), settings_toml()) << "made by: cairnd --sample-config > conf/cairnd.toml";
  const ConfigOutcome outcome =
      load_config({.file = CAIRN_SOURCE_DIR "/conf/cairnd.toml", .overrides = {}});
  EXPECT_TRUE(outcome.errors.empty()) << outcome.errors[0];
  EXPECT_EQ(outcome.origins.size(), settings().size());
}

TEST(Settings, WriteTheTableInTheDocumentation) {
  std::ifstream file(CAIRN_SOURCE_DIR "/docs/operations.md");
  std::stringstream text;
  text << file.rdbuf();

  EXPECT_NE(text.str().find(settings_markdown()), std::string::npos)
      << "made by: cairnd --help-config";
}

}  // namespace
}  // namespace cairn::server
