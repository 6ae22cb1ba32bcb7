// cairn replay against a real daemon: every byte checked, and the hit rate that leaf-first LRU
// gives by an independent simulator (figures below, computed once on the committed trace).
#include "tests/support/seed.h"
#include "tests/system/daemon_fixture.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <filesystem>

namespace cairn::testing {
namespace {

constexpr double kTolerance = 0.005;

struct Replayed {
  int code = -1;
  nlohmann::json json;
};

Replayed replay(const DaemonFixture& daemon, std::vector<std::string> words) {
  std::vector<std::string> command = {
      sibling_program("cairn"), "replay", "--server", daemon.server(), "--json"};
  command.insert(command.end(), words.begin(), words.end());
  const Finished finished =
      run_to_end({.command = command, .environment = {}, .user = {}, .address_space_max = {}},
                 Milliseconds(120'000));
  EXPECT_EQ(finished.errors, "");
  Replayed replayed{.code = finished.code,
                    .json = nlohmann::json::parse(finished.output, nullptr, false)};
  EXPECT_FALSE(replayed.json.is_discarded()) << finished.output;
  return replayed;
}

std::string committed_trace() {
  return std::string(CAIRN_TEST_DATA) + "/traces/conversations_600_seed7.jsonl";
}

struct Reference {
  std::string pool;
  std::string block_bytes;
  std::uint64_t capacity_blocks = 0;
  double hit_rate = 0;
};

void PrintTo(const Reference& reference, std::ostream* out) {
  *out << reference.pool << " of " << reference.block_bytes;
}

class HitRate : public ::testing::TestWithParam<Reference> {};

TEST_P(HitRate, IsThatOfLeafFirstLruAtTheSameCapacity) {
  DaemonFixture daemon({.pool = GetParam().pool, .settings = {"eviction.policy=lru"}});
  ASSERT_TRUE(daemon.start());
  const Replayed replayed =
      replay(daemon, {committed_trace(), "--block-bytes", GetParam().block_bytes});
  EXPECT_EQ(replayed.code, 0);
  EXPECT_EQ(replayed.json["requests"], 600);
  EXPECT_EQ(replayed.json["block_refs"], 18'897);
  EXPECT_EQ(replayed.json["wrong_blocks"], 0);
  EXPECT_EQ(replayed.json["verified_blocks"], replayed.json["prefix_hits"]);
  EXPECT_EQ(replayed.json["policy"], "lru");
  EXPECT_EQ(replayed.json["capacity_blocks"], GetParam().capacity_blocks);
  EXPECT_NEAR(replayed.json["prefix_hit_rate"].get<double>(), GetParam().hit_rate, kTolerance);
  EXPECT_GT(replayed.json["evictions"].get<std::uint64_t>(), 0U);
  EXPECT_TRUE(replayed.json["errors"].empty()) << replayed.json["errors"];
}

INSTANTIATE_TEST_SUITE_P(
    CommittedTrace,
    HitRate,
    ::testing::Values(
        Reference{
            .pool = "64MiB", .block_bytes = "256KiB", .capacity_blocks = 252, .hit_rate = 0.4174},
        Reference{
            .pool = "128MiB", .block_bytes = "256KiB", .capacity_blocks = 504, .hit_rate = 0.5462},
        Reference{
            .pool = "64MiB", .block_bytes = "64KiB", .capacity_blocks = 963, .hit_rate = 0.6721}));

TEST(Replay, FourClientsAtOnceSeeNoWrongByte) {
  DaemonFixture daemon;
  ASSERT_TRUE(daemon.start());
  const Replayed replayed =
      replay(daemon, {committed_trace(), "--clients", "4", "--block-bytes", "100KiB"});
  EXPECT_EQ(replayed.code, 0);
  EXPECT_EQ(replayed.json["wrong_blocks"], 0);
  EXPECT_TRUE(replayed.json["errors"].empty()) << replayed.json["errors"];
}

// Public traces are not part of the project: CAIRN_TRACES names a folder that holds them.
TEST(Replay, ThePublicConversationTraceGivesTheReferenceRate) {
  const char* const folder = test_variable("CAIRN_TRACES");
  const std::string path =
      std::string(folder == nullptr ? "" : folder) + "/mooncake_conversation_trace.jsonl";
  if (folder == nullptr || !std::filesystem::exists(path)) {
    GTEST_SKIP() << "CAIRN_TRACES names no folder with mooncake_conversation_trace.jsonl";
  }
  DaemonFixture daemon({.pool = "1GiB", .settings = {"eviction.policy=lru"}});
  ASSERT_TRUE(daemon.start());
  const Replayed replayed = replay(daemon, {path, "--limit", "3000"});
  EXPECT_EQ(replayed.code, 0);
  EXPECT_EQ(replayed.json["capacity_blocks"], 4'032);
  EXPECT_NEAR(replayed.json["prefix_hit_rate"].get<double>(), 0.0881, kTolerance);
}

TEST(Replay, ABrokenTraceIsNamedWithItsLine) {
  DaemonFixture daemon;
  ASSERT_TRUE(daemon.start());
  TempDir directory;
  const std::string path = directory / "trace.jsonl";
  FILE* const file = std::fopen(path.c_str(), "w");
  std::fputs("{\"hash_ids\": [1, 2]}\n{\"hash_ids\": [1, -2]}\n", file);
  std::fclose(file);
  const Finished finished = run_to_end(
      {.command = {sibling_program("cairn"), "replay", path, "--server", daemon.server()},
       .environment = {},
       .user = {},
       .address_space_max = {}});
  EXPECT_EQ(finished.code, 2);
  EXPECT_NE(finished.errors.find("trace.jsonl:2"), std::string::npos) << finished.errors;
}

Finished run_cairn(std::vector<std::string> words) {
  words.insert(words.begin(), sibling_program("cairn"));
  return run_to_end(
      {.command = std::move(words), .environment = {}, .user = {}, .address_space_max = {}});
}

TEST(Command, WithoutADaemonSaysWhatToDo) {
  for (const auto& words : {std::vector<std::string>{"status", "--server", "unix:/none/s.sock"},
                            std::vector<std::string>{"--server", "unix:/none/s.sock", "status"}}) {
    const Finished finished = run_cairn(words);
    EXPECT_EQ(finished.code, 1);
    EXPECT_NE(finished.errors.find("no daemon answers there"), std::string::npos)
        << finished.errors;
  }
}

TEST(Command, OfANameThatIsNoAddressSaysSoAtOnce) {
  const Finished finished = run_cairn({"status", "--server", "cache-3.example.org:7000"});
  EXPECT_EQ(finished.code, 1);
  EXPECT_NE(finished.errors.find("give an IP or localhost"), std::string::npos) << finished.errors;
}

TEST(Command, BenchLocalRunsAndItsRatiosArePositive) {
  const Finished finished =
      run_to_end({.command = {sibling_program("cairn"), "bench", "local", "--quick", "--json"},
                  .environment = {},
                  .user = {},
                  .address_space_max = {}},
                 Milliseconds(120'000));
  ASSERT_EQ(finished.code, 0) << finished.errors;
  const auto json = nlohmann::json::parse(finished.output, nullptr, false);
  ASSERT_FALSE(json.is_discarded());
  for (const char* const size : {"65536", "1048576", "4194304"}) {
    EXPECT_GT(json["sizes"][size]["get_copy_ratio"].get<double>(), 0.05) << size;
    EXPECT_GT(json["sizes"][size]["put_copy_ratio"].get<double>(), 0.05) << size;
  }
  EXPECT_GT(json["lookup_keys_per_s"].get<double>(), 100'000);
}

}  // namespace
}  // namespace cairn::testing
