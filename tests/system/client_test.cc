// The SDK against a real daemon: what one process can see of it.
#include "client/client.h"

#include "base/random.h"
#include "client/cli/payload.h"
#include "tests/support/seed.h"
#include "tests/system/daemon_fixture.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <thread>

namespace cairn::testing {
namespace {

client::KeyResult put_one(client::Client& client,
                          const client::Namespace& name_space,
                          const BlockDigest& digest,
                          std::span<const std::byte> body) {
  client::KeyResult result;
  EXPECT_TRUE(client.put({.name_space = name_space,
                          .digests = std::span(&digest, 1),
                          .sources = std::span(&body, 1),
                          .results = std::span(&result, 1)}));
  return result;
}

client::KeyResult get_one(client::Client& client,
                          const client::Namespace& name_space,
                          const BlockDigest& digest,
                          std::span<std::byte> target) {
  client::KeyResult result;
  EXPECT_TRUE(client.get({.name_space = name_space,
                          .digests = std::span(&digest, 1),
                          .targets = std::span(&target, 1),
                          .results = std::span(&result, 1)}));
  return result;
}

// What a client sees after `shutdown` of every connected unix stream socket of this process.
void cut_own_sockets() {
  for (int fd = 3; fd < 1024; ++fd) {
    int type = 0;
    sockaddr_storage peer{};
    socklen_t type_size = sizeof(type);
    socklen_t peer_size = sizeof(peer);
    if (getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &type_size) != 0) continue;
    if (getpeername(fd, reinterpret_cast<sockaddr*>(&peer), &peer_size) != 0) continue;
    if (peer.ss_family == AF_UNIX) shutdown(fd, SHUT_RDWR);
  }
}

TEST(ClientSystem, OfTwoWritersOfOneKeyOneWinsWholeAndTheOtherIsTold) {
  constexpr int kRounds = 10'000;
  constexpr std::size_t kBytes = 6'000;
  DaemonFixture daemon;
  ASSERT_TRUE(daemon.start());
  std::array<std::unique_ptr<client::Client>, 2> clients = {daemon.connect(), daemon.connect()};
  const client::Namespace name_space = open_test_namespace(*clients[0]);
  ASSERT_EQ(open_test_namespace(*clients[1]), name_space);
  std::atomic<int> arrived{0};
  std::array<std::atomic<int>, 2> wins{};
  const auto write = [&](std::size_t self) {
    std::vector<std::byte> body(kBytes, std::byte{static_cast<unsigned char>(0xA0 + self)});
    std::vector<std::byte> read(kBytes);
    for (int round = 0; round < kRounds; ++round) {
      arrived.fetch_add(1);
      while (arrived.load() < 2 * (round + 1))
        std::this_thread::yield();
      const BlockDigest digest = cli::trace_digest(static_cast<std::uint64_t>(round));
      const auto result = put_one(*clients[self], name_space, digest, body);
      ASSERT_TRUE(result.status == BlockStatus::kOk || result.status == BlockStatus::kExists);
      if (result.status == BlockStatus::kOk) wins[self].fetch_add(1);
      // Whoever has an answer can read: one body, whole.
      ASSERT_EQ(get_one(*clients[self], name_space, digest, read).status, BlockStatus::kOk);
      ASSERT_TRUE(read.front() == std::byte{0xA0} || read.front() == std::byte{0xA1});
      ASSERT_EQ(read, std::vector<std::byte>(kBytes, read.front()));
      if (result.status == BlockStatus::kOk) {
        ASSERT_EQ(read.front(), body.front());
      }
    }
  };
  std::thread other(write, 1);
  write(0);
  other.join();
  EXPECT_EQ(wins[0] + wins[1], kRounds);
}

struct FullPoolCounts {
  std::atomic<int> wrong{0};
  std::atomic<int> hits{0};
};

// Gets one block and puts it when it is missing.
void use_full_pool(client::Client& client,
                   const client::Namespace& name_space,
                   const BlockDigest& digest,
                   FullPoolCounts& counts) {
  std::vector<std::byte> body(200'000);
  const std::uint64_t payload = cli::payload_seed(name_space, digest, 0);
  const auto got = get_one(client, name_space, digest, body);
  if (got.status == BlockStatus::kOk) {
    counts.hits.fetch_add(1);
    if (!cli::is_payload(payload, 0, body)) counts.wrong.fetch_add(1);
    return;
  }
  if (got.status != BlockStatus::kMiss) counts.wrong.fetch_add(1);
  cli::fill_payload(payload, 0, body);
  const auto put = put_one(client, name_space, digest, body);
  if (put.status != BlockStatus::kOk && put.status != BlockStatus::kExists &&
      put.status != BlockStatus::kBusy) {
    counts.wrong.fetch_add(1);
  }
}

TEST(ClientSystem, SixtyFourClientsOnAFullPoolGetRightBytesOrMisses) {
  constexpr std::size_t kClients = 64;
  const std::uint64_t seed = test_seed();
  SCOPED_TRACE("CAIRN_SEED=" + std::to_string(seed));
  DaemonFixture daemon;
  ASSERT_TRUE(daemon.start());
  FullPoolCounts counts;
  std::vector<std::thread> threads;
  threads.reserve(kClients);
  for (std::size_t self = 0; self < kClients; ++self) {
    threads.emplace_back([&, self] {
      const auto client = daemon.connect();
      if (!client) return;
      const client::Namespace name_space = open_test_namespace(*client);
      SeededRandom random(seed * 1000 + self);
      for (int i = 0; i < 60; ++i)
        use_full_pool(*client, name_space, cli::trace_digest(random.below(600)), counts);
    });
  }
  for (std::thread& thread : threads)
    thread.join();
  EXPECT_EQ(counts.wrong, 0);
  EXPECT_GT(counts.hits, 100);
}

TEST(ClientSystem, AHandleUsedInAForkedChildAnswersInvalidAndTheParentGoesOn) {
  DaemonFixture daemon;
  ASSERT_TRUE(daemon.start());
  const auto client = daemon.connect();
  const client::Namespace name_space = open_test_namespace(*client);
  const BlockDigest digest = cli::trace_digest(1);
  const std::vector<std::byte> body(10'000, std::byte{7});
  ASSERT_EQ(put_one(*client, name_space, digest, body).status, BlockStatus::kOk);
  const pid_t child = fork();
  if (child == 0) {
    client::KeyResult result;
    std::vector<std::byte> target(body.size());
    const std::span<std::byte> into(target);
    const Status status = client->get({.name_space = name_space,
                                       .digests = std::span(&digest, 1),
                                       .targets = std::span(&into, 1),
                                       .results = std::span(&result, 1)});
    _exit(!status.has_value() && status.error().code == ErrorCode::kInvalid ? 0 : 1);
  }
  int exit_status = -1;
  ASSERT_EQ(waitpid(child, &exit_status, 0), child);
  EXPECT_EQ(exit_status, 0);
  std::vector<std::byte> target(body.size());
  EXPECT_EQ(get_one(*client, name_space, digest, target).status, BlockStatus::kOk);
  EXPECT_EQ(target, body);
}

TEST(ClientSystem, ViewsStayRightThroughADaemonsRestartAndTheClientReconnectsByItself) {
  DaemonFixture daemon;
  ASSERT_TRUE(daemon.start());
  const auto client = daemon.connect();
  const client::Namespace name_space = open_test_namespace(*client);
  const BlockDigest digest = cli::trace_digest(1);
  std::vector<std::byte> body(3'000'000);
  const std::uint64_t payload = cli::payload_seed(name_space, digest, 0);
  cli::fill_payload(payload, 0, body);
  ASSERT_EQ(put_one(*client, name_space, digest, body).status, BlockStatus::kOk);
  client::BlockView view;
  client::KeyResult result;
  ASSERT_TRUE(client->get_views({.name_space = name_space,
                                 .digests = std::span(&digest, 1),
                                 .views = std::span(&view, 1),
                                 .results = std::span(&result, 1)}));
  ASSERT_EQ(result.status, BlockStatus::kOk);

  daemon.kill_now();
  ASSERT_TRUE(daemon.start());

  std::uint64_t offset = 0;
  for (std::uint32_t i = 0; i < view.piece_count; ++i) {
    EXPECT_TRUE(cli::is_payload(payload, offset, view.pieces[i]));
    offset += view.pieces[i].size();
  }
  EXPECT_EQ(offset, body.size());
  // The old slab is held by our view, so there is no room for a new one yet.
  EXPECT_TRUE(eventually(Milliseconds(5'000), [&] {
    return daemon.statistic(*client, "/clients/predecessor_bytes") > 0;
  }));
  client->release(std::span(&view, 1));
  EXPECT_TRUE(eventually(Milliseconds(5'000), [&] {
    return daemon.statistic(*client, "/pool/capacity_bytes") == 64 << 20U;
  })) << client->stats().json;
  EXPECT_EQ(put_one(*client, name_space, digest, body).status, BlockStatus::kOk);
  EXPECT_EQ(get_one(*client, name_space, digest, body).status, BlockStatus::kOk);
  EXPECT_TRUE(cli::is_payload(payload, 0, body));
  EXPECT_GE(client->server_info().reconnects, 1U);
}

TEST(ClientSystem, ReleasesThatWereLostWithTheSocketAreMadeGoodByResume) {
  DaemonFixture daemon;
  ASSERT_TRUE(daemon.start());
  const auto client = daemon.connect();
  const client::Namespace name_space = open_test_namespace(*client);
  const BlockDigest kept = cli::trace_digest(1);
  const BlockDigest dropped = cli::trace_digest(2);
  const std::vector<std::byte> body(500'000, std::byte{9});
  ASSERT_EQ(put_one(*client, name_space, kept, body).status, BlockStatus::kOk);
  ASSERT_EQ(put_one(*client, name_space, dropped, body).status, BlockStatus::kOk);
  const std::array<BlockDigest, 2> digests = {kept, dropped};
  std::array<client::BlockView, 2> views;
  std::array<client::KeyResult, 2> results;
  ASSERT_TRUE(client->get_views({.name_space = name_space,
                                 .digests = digests,
                                 .is_chain = false,
                                 .views = views,
                                 .results = results}));
  const double both = daemon.statistic(*client, "/clients/lent_bytes");
  ASSERT_GT(both, 0);
  cut_own_sockets();
  client->release(std::span(views).subspan(1));  // goes into a socket that is gone
  EXPECT_TRUE(eventually(Milliseconds(5'000), [&] {
    return daemon.statistic(*client, "/clients/lent_bytes") == both / 2 &&
           daemon.statistic(*client, "/clients/quarantined_bytes") == 0;
  })) << client->stats().json;
  EXPECT_EQ(std::memcmp(views[0].pieces[0].data(), body.data(), views[0].pieces[0].size()), 0);
  client->release(std::span(views).first(1));
  EXPECT_TRUE(eventually(Milliseconds(2'000),
                         [&] { return daemon.statistic(*client, "/clients/lent_bytes") == 0; }));
}

TEST(ClientSystem, ObjectsOverSixteenMebibytesComeBackWhole) {
  DaemonFixture daemon({.pool = "128MiB", .settings = {}});
  ASSERT_TRUE(daemon.start());
  const auto client = daemon.connect();
  const client::Namespace name_space = open_test_namespace(*client);
  const BlockDigest digest = cli::trace_digest(1);
  std::vector<std::byte> body((40U << 20U) + 12'345);
  cli::fill_payload(5, 0, body);
  ASSERT_EQ(put_one(*client, name_space, digest, body).status, BlockStatus::kOk);
  std::vector<std::byte> target(body.size());
  const auto result = get_one(*client, name_space, digest, target);
  EXPECT_EQ(result.status, BlockStatus::kOk);
  EXPECT_EQ(result.length, body.size());
  EXPECT_EQ(target, body);
}

TEST(ClientSystem, APurgeMakesEverythingAMissAndSticksUntilTheNamespaceIsOpenedAgain) {
  DaemonFixture daemon;
  ASSERT_TRUE(daemon.start());
  const auto client = daemon.connect();
  const client::Namespace before = open_test_namespace(*client);
  const BlockDigest digest = cli::trace_digest(1);
  std::vector<std::byte> body(100'000, std::byte{3});
  ASSERT_EQ(put_one(*client, before, digest, body).status, BlockStatus::kOk);
  const auto purged = client->purge(before);
  ASSERT_EQ(purged.status, BlockStatus::kOk);
  EXPECT_GT(purged.epoch, before.epoch);
  EXPECT_EQ(get_one(*client, before, digest, body).status, BlockStatus::kWrongNamespace);
  EXPECT_EQ(put_one(*client, before, digest, body).status, BlockStatus::kWrongNamespace);
  const client::Namespace after = open_test_namespace(*client);
  EXPECT_EQ(after.epoch, purged.epoch);
  EXPECT_EQ(get_one(*client, after, digest, body).status, BlockStatus::kMiss);
  daemon.kill_now();
  ASSERT_TRUE(daemon.start());
  EXPECT_GE(open_test_namespace(*daemon.connect()).epoch, purged.epoch);
}

}  // namespace
}  // namespace cairn::testing
