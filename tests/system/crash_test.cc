// Processes that are killed, stopped and cut off while others go on.
#include "base/random.h"
#include "client/cli/payload.h"
#include "tests/support/seed.h"
#include "tests/system/daemon_fixture.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>

#include <cstdlib>
#include <fstream>

namespace cairn::testing {
namespace {

// Cycles of the kill tests: 200 in all between the two of them.
constexpr int kServerKills = 80;
constexpr int kClientKills = 120;

void pause_for(Milliseconds duration) {
  const timespec pause{.tv_sec = duration.count() / 1000,
                       .tv_nsec = (duration.count() % 1000) * 1'000'000};
  nanosleep(&pause, nullptr);
}

std::unique_ptr<Process> start_client(const DaemonFixture& daemon,
                                      const std::string& mode,
                                      std::uint64_t seed = 0) {
  return Process::start(
      {sibling_program("cairn_test_client"), mode, daemon.server(), std::to_string(seed)});
}

// How often the churning client has said that 8 rounds went well.
std::size_t good_rounds(const Process& client) {
  const std::string output = client.output();
  const std::size_t at = output.rfind("ok ");
  return at == std::string::npos ? 0 : std::strtoull(output.c_str() + at + 3, nullptr, 10);
}

bool is_stopped(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  std::string text;
  std::getline(file, text);
  const std::size_t name_end = text.rfind(')');
  return name_end != std::string::npos && text.size() > name_end + 2 && text[name_end + 2] == 'T';
}

TEST(Crash, AClientServesOnThroughDaemonsKilledAtRandomPoints) {
  const std::uint64_t seed = test_seed();
  SCOPED_TRACE("CAIRN_SEED=" + std::to_string(seed));
  SeededRandom random(seed);
  DaemonFixture daemon;
  ASSERT_TRUE(daemon.start());
  const auto client = start_client(daemon, "churn", seed);
  ASSERT_TRUE(client->wait_for_output_line("ok", Milliseconds(10'000)));
  for (int cycle = 0; cycle < kServerKills; ++cycle) {
    pause_for(Milliseconds(static_cast<std::int64_t>(random.below(60))));
    daemon.kill_now();
    ASSERT_TRUE(daemon.start()) << "cycle " << cycle;
    ASSERT_TRUE(client->is_running()) << client->output();
    if (cycle % 10 == 9) {
      const std::size_t before = good_rounds(*client);
      EXPECT_TRUE(eventually(Milliseconds(10'000), [&] { return good_rounds(*client) > before; }))
          << "the client did not come back after cycle " << cycle;
    }
  }
  EXPECT_EQ(client->output().find("wrong"), std::string::npos);
}

TEST(Crash, ClientsKilledAtRandomPointsGiveAllTheyHeldBack) {
  const std::uint64_t seed = test_seed();
  SCOPED_TRACE("CAIRN_SEED=" + std::to_string(seed));
  SeededRandom random(seed);
  DaemonFixture daemon;
  ASSERT_TRUE(daemon.start());
  const auto witness = start_client(daemon, "churn", seed);
  for (int cycle = 0; cycle < kClientKills; ++cycle) {
    const auto victim = start_client(daemon, "churn", seed + static_cast<std::uint64_t>(cycle));
    pause_for(Milliseconds(static_cast<std::int64_t>(random.below(80))));
    victim->kill_now();
    ASSERT_NE(victim->wait_exit(Milliseconds(0)), 3) << victim->output();
  }
  ASSERT_TRUE(witness->is_running()) << witness->output();
  witness->kill_now();
  const auto client = daemon.connect();
  ASSERT_NE(client, nullptr);
  EXPECT_TRUE(eventually(Milliseconds(2'000), [&] {
    return daemon.statistic(*client, "/clients/lent_bytes") == 0 &&
           daemon.statistic(*client, "/clients/quarantined_bytes") == 0 &&
           daemon.statistic(*client, "/store/open_reservations") == 0;
  })) << client->stats().json;
}

TEST(Crash, AClientStoppedInItsCopyDamagesNobodyWhenItGoesOn) {
  DaemonFixture daemon({.pool = "96MiB", .settings = {}});
  ASSERT_TRUE(daemon.start());
  const auto stalled = start_client(daemon, "stall");
  ASSERT_TRUE(stalled->wait_for_output_line("lent", Milliseconds(10'000))) << stalled->errors();
  ASSERT_TRUE(eventually(Milliseconds(5'000), [&] { return is_stopped(stalled->pid()); }));
  const auto client = daemon.connect();
  const client::Namespace name_space = open_test_namespace(*client);
  // Past the client's deadline of 2 s and the default of 5 s.
  const SystemClock clock;
  const Deadline stopped_until = Deadline::after(clock, Milliseconds(6'000));
  const std::vector<std::byte> zeros(1 << 20U);
  std::vector<std::byte> body(1 << 20U);
  std::vector<BlockDigest> written;
  for (std::uint64_t i = 0; i < 3ULL * 96 || !stopped_until.has_passed(clock.now()); ++i) {
    const BlockDigest digest = cli::trace_digest((1ULL << 50U) + i);
    cli::fill_payload(cli::payload_seed(name_space, digest, 0), 0, body);
    const std::span<const std::byte> source(body);
    client::KeyResult result;
    ASSERT_TRUE(client->put({.name_space = name_space,
                             .digests = std::span(&digest, 1),
                             .sources = std::span(&source, 1),
                             .results = std::span(&result, 1)}));
    ASSERT_EQ(result.status, BlockStatus::kOk);
    written.push_back(digest);
  }
  stalled->signal(SIGCONT);
  ASSERT_EQ(stalled->wait_exit(Milliseconds(10'000)), 0) << stalled->output();
  EXPECT_NE(stalled->output().find("committed"), std::string::npos);
  std::size_t found = 0;
  for (const BlockDigest& digest : written) {
    client::KeyResult result;
    const std::span<std::byte> target(body);
    ASSERT_TRUE(client->get({.name_space = name_space,
                             .digests = std::span(&digest, 1),
                             .targets = std::span(&target, 1),
                             .results = std::span(&result, 1)}));
    if (result.status == BlockStatus::kMiss) continue;
    ASSERT_EQ(result.status, BlockStatus::kOk);
    ASSERT_TRUE(cli::is_payload(cli::payload_seed(name_space, digest, 0), 0, body));
    ++found;
  }
  EXPECT_GT(found, 40U);
}

TEST(Crash, AKilledHolderOfViewsGivesThemBack) {
  DaemonFixture daemon;
  ASSERT_TRUE(daemon.start());
  const auto holder = start_client(daemon, "hold");
  ASSERT_TRUE(holder->wait_for_output_line("holding", Milliseconds(10'000)));
  const auto client = daemon.connect();
  EXPECT_GT(daemon.statistic(*client, "/clients/lent_bytes"), 0);
  holder->kill_now();
  EXPECT_TRUE(eventually(Milliseconds(2'000),
                         [&] { return daemon.statistic(*client, "/clients/lent_bytes") == 0; }));
}

TEST(Crash, ADaemonsSuccessorWaitsForSlabsThatAClientHoldsAndGrowsWhenItLetsGo) {
  DaemonFixture daemon;
  ASSERT_TRUE(daemon.start());
  auto holder = start_client(daemon, "hold");
  ASSERT_TRUE(holder->wait_for_output_line("holding", Milliseconds(10'000)));
  daemon.kill_now();
  ASSERT_TRUE(daemon.start());
  const auto client = daemon.connect();
  EXPECT_EQ(daemon.statistic(*client, "/pool/capacity_bytes"), 0);
  EXPECT_EQ(daemon.statistic(*client, "/clients/predecessor_bytes"), 64 << 20U);
  EXPECT_TRUE(daemon.process().wait_for_line("test-client", Milliseconds(1'000)) ||
              daemon.process().errors().find(std::to_string(holder->pid())) != std::string::npos)
      << daemon.process().errors();
  holder->kill_now();
  EXPECT_TRUE(eventually(Milliseconds(5'000), [&] {
    return daemon.statistic(*client, "/pool/capacity_bytes") == 64 << 20U;
  })) << client->stats().json;
}

}  // namespace
}  // namespace cairn::testing
