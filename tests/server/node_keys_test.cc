// What moves no bytes: retain, prefetch, remove, hint, list, usage, stat, stats; and what is
// counted.
#include "tests/server/node_fixture.h"

#include <nlohmann/json.hpp>

#include <algorithm>

namespace cairn::server {
namespace {

using enum BlockStatus;
using Json = nlohmann::json;

class NodeKeys : public NodeTest {
 protected:
  template <typename Request>
  static Request make(const ScriptedClient& client, const std::vector<BlockDigest>& digests) {
    Request request;
    request.context = client.context();
    request.digests = digests;
    return request;
  }
  template <typename Request>
  static wire::JsonReply ask_json(ScriptedClient& client, Request request) {
    request.context = client.context();
    return client.ask<wire::JsonReply>(request);
  }
};

TEST_F(NodeKeys, RetainsWithinTheBudget) {
  const auto client = join_in();
  put(*client, keys(1, 1), 1'000);
  put(*client, keys(2, 1), 14'000'000);
  auto request = make<wire::Retain>(*client, {key(1), key(2), key(3)});
  request.duration_ms = 1'000;
  EXPECT_EQ(client->ask<wire::StatusesReply>(request).statuses, (std::vector{kOk, kQuota, kMiss}));
  EXPECT_EQ(daemon().store().stats().retained_bytes, 8_KiB);
  request.duration_ms = 0;
  client->ask<wire::StatusesReply>(request);
  EXPECT_EQ(daemon().store().stats().retained_bytes, ByteCount(0));
}

TEST_F(NodeKeys, PrefetchesWhatIsHereAlready) {
  const auto client = join_in();
  put(*client, keys(1, 1), 1'000);
  const auto request = make<wire::Prefetch>(*client, keys(1, 2));
  EXPECT_EQ(client->ask<wire::StatusesReply>(request).statuses, (std::vector{kOk, kMiss}));
}

TEST_F(NodeKeys, RemovesKeys) {
  const auto client = join_in();
  put(*client, keys(1, 2), 1'000);
  const auto request = make<wire::Remove>(*client, {key(1), key(9)});
  EXPECT_EQ(client->ask<wire::StatusesReply>(request).statuses, (std::vector{kOk, kMiss}));
  EXPECT_EQ(lookup(*client, keys(1, 2), wire::LookupKind::kSet).tiers,
            (std::vector<std::uint8_t>{0, 2}));
}

TEST_F(NodeKeys, TakesHintsWithoutAnAnswer) {
  const auto client = join_in();
  const std::uint64_t id = client->send(make<wire::Hint>(*client, keys(1, 2)));
  EXPECT_FALSE(client->wait_for(id).has_value());
  EXPECT_EQ(count(Operation::kHint, kOk), 2U);
  EXPECT_EQ(metrics().sessions.load(), 1U);
}

TEST_F(NodeKeys, ListsANamespacePieceByPiece) {
  const auto client = join_in();
  put(*client, keys(1, 10), 1'000);
  wire::List request;
  request.context = client->context();
  request.limit = 4;
  std::vector<BlockDigest> all;
  do {
    const auto reply = client->ask<wire::ListReply>(request);
    EXPECT_LE(reply.digests.size(), 4U);
    all.insert(all.end(), reply.digests.begin(), reply.digests.end());
    request.cursor = reply.next_cursor;
  } while (request.cursor != 0);
  std::ranges::sort(all);
  auto expected = keys(1, 10);
  std::ranges::sort(expected);
  EXPECT_EQ(all, expected);
  request.cursor = ~std::uint64_t{0};
  request.limit = ~std::uint32_t{0};
  EXPECT_EQ(client->ask<wire::ListReply>(request).context.status, kOk);
}

TEST_F(NodeKeys, DescribesABlock) {
  const auto client = join_in();
  put(*client, keys(1, 1), 1'000);
  get(*client, keys(1, 1));
  const Json stat =
      Json::parse(ask_json(*client, wire::Stat{.context = {}, .digest = key(1)}).json);
  EXPECT_EQ(stat["tier"], "dram");
  EXPECT_EQ(stat["length_bytes"], 1'000);
  EXPECT_EQ(stat["pins"], 1);
  EXPECT_EQ(stat["is_retained"], false);
  EXPECT_EQ(ask_json(*client, wire::Stat{.context = {}, .digest = key(2)}).context.status, kMiss);
  EXPECT_EQ(ask_json(*client, wire::Stat{.context = {}, .digest = key(2, 4)}).context.status,
            kInvalid);
}

TEST_F(NodeKeys, SaysWhatAClientHolds) {
  const auto client = join_in();
  put(*client, keys(1, 1), 1'000);
  get(*client, keys(1, 1));
  const Json usage = Json::parse(ask_json(*client, wire::Usage{}).json);
  EXPECT_EQ(usage["lent_bytes"], 8'192);
  EXPECT_EQ(usage["lent_max_bytes"], (48_MiB).value());
  EXPECT_EQ(usage["pool"]["resident_blocks"], 1);
}

TEST_F(NodeKeys, DescribesTheNodeToWhoeverAsks) {
  const auto client = connect();
  client->hello();
  wire::Stats request;
  request.context.remaining_ms = 100;
  const auto reply = client->ask<wire::JsonReply>(request);
  const Json stats = Json::parse(reply.json);
  EXPECT_EQ(stats["version"], "simulated");
  EXPECT_EQ(stats["policy"], "lru");
  EXPECT_EQ(stats["clients"]["sessions"], 1);
  EXPECT_EQ(stats["clients"]["connections"], 1);
  EXPECT_EQ(stats["is_paused"], false);
  EXPECT_EQ(Json::parse(daemon().node().stats_json())["traffic"], stats["traffic"]);
}

TEST_F(NodeKeys, CountsOperationsKeysAndLatencies) {
  const auto client = join_in();
  put(*client, keys(1, 3), 1'000);
  get(*client, keys(1, 4));
  EXPECT_EQ(count(Operation::kHello, kOk), 1U);
  EXPECT_EQ(count(Operation::kNamespaceOpen, kOk), 1U);
  EXPECT_EQ(count(Operation::kCommit, kOk), 3U);
  EXPECT_EQ(count(Operation::kGet, kOk), 3U);
  EXPECT_EQ(count(Operation::kGet, kMiss), 1U);
  EXPECT_EQ(metrics().put_bytes.load(), 3'000U);
  EXPECT_EQ(metrics().get_bytes.load(), 3'000U);
  const auto get_index = static_cast<std::size_t>(Operation::kGet);
  EXPECT_EQ(metrics().requests[get_index].load(), 1U);
  EXPECT_EQ(metrics().latency[get_index].counts()[0], 1U);
}

TEST_F(NodeKeys, CountsSmallPagesAsAFallback) {
  EXPECT_EQ(metrics().fallback_small_pages.load(), 1U);
}

}  // namespace
}  // namespace cairn::server
