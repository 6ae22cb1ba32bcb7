// Namespaces of a session: open, bind, purge, and who may ask what.
#include "tests/server/node_fixture.h"

#include <cerrno>
#include <string>

namespace cairn::server {
namespace {

using enum BlockStatus;

class NodeNamespace : public NodeTest {
 protected:
  static wire::NamespaceOpenReply open_raw(ScriptedClient& client, std::string fingerprint) {
    wire::NamespaceOpen request;
    request.context.remaining_ms = 1'000;
    request.fingerprint = std::move(fingerprint);
    return client.ask<wire::NamespaceOpenReply>(request);
  }
  static BlockStatus bind(ScriptedClient& client, const wire::RequestContext& context) {
    wire::Bind request;
    request.context = context;
    return client.ask<wire::BindReply>(request).context.status;
  }
  static wire::PurgeReply purge(ScriptedClient& client) {
    wire::Purge request;
    request.context = client.context();
    return client.ask<wire::PurgeReply>(request);
  }
};

TEST_F(NodeNamespace, IsOneForEverybodyWithTheSameFingerprint) {
  const auto one = connect();
  one->hello();
  const auto opened = one->open(R"({"model":"m","dtype":"bf16"})");
  const auto two = connect();
  two->hello();
  EXPECT_EQ(two->open(R"({ "dtype": "bf16", "model": "m" })").digest, opened.digest);
  put(*one, keys(1, 1), 1'000);
  EXPECT_EQ(lookup(*two, keys(1, 1)).run, 1U);
  two->open(R"({"model":"m","dtype":"fp8"})");
  EXPECT_EQ(lookup(*two, keys(1, 1)).run, 0U);
}

TEST_F(NodeNamespace, SaysWhatIsWrongWithAFingerprint) {
  const auto client = connect();
  client->hello();
  const auto refused = open_raw(*client, R"({"scale":1.5})");
  EXPECT_EQ(refused.context.status, kInvalid);
  EXPECT_FALSE(refused.message.empty());
  EXPECT_EQ(open_raw(*client, "[").context.status, kInvalid);
}

TEST_F(NodeNamespace, IsBusyWhileItCannotBeStoredAndOthersAreServed) {
  const auto client = join_in();
  put(*client, keys(1, 1), 1'000);
  host_.key_value_faults().fail_writes_after(0, {ErrorCode::kNoSpace, ENOSPC, "full"});
  const auto refused = open_raw(*client, R"({"new":1})");
  EXPECT_EQ(refused.context.status, kBusy);
  EXPECT_NE(refused.message.find("No space left"), std::string::npos) << refused.message;
  EXPECT_EQ(purge(*client).context.status, kBusy);
  EXPECT_EQ(metrics().data_dir_failing.load(), 1U);
  EXPECT_EQ(lookup(*client, keys(1, 1)).run, 1U);
  // What is known already needs no write, and says nothing of the disk.
  EXPECT_EQ(client->open().context.status, kOk);
  EXPECT_EQ(metrics().data_dir_failing.load(), 1U);
  host_.key_value_faults().heal();
  EXPECT_EQ(open_raw(*client, R"({"new":1})").context.status, kOk);
  EXPECT_EQ(metrics().data_dir_failing.load(), 0U);
}

TEST_F(NodeNamespace, MustBeOpenedBeforeItIsUsed) {
  const auto owner = join_in();
  put(*owner, keys(1, 1), 1'000);
  const auto stranger = connect();
  stranger->hello();
  stranger->context() = owner->context();
  EXPECT_EQ(lookup(*stranger, keys(1, 1)).context.status, kForbidden);
  EXPECT_EQ(get(*stranger, keys(1, 1)).context.status, kForbidden);
  stranger->context().epoch -= 1;
  EXPECT_EQ(lookup(*stranger, keys(1, 1)).context.status, kWrongNamespace);
  stranger->context().name_space.bytes[0] ^= std::byte{1};
  EXPECT_EQ(lookup(*stranger, keys(1, 1)).context.status, kWrongNamespace);
}

TEST_F(NodeNamespace, IsBoundByItsDigestAtItsEpoch) {
  const auto owner = join_in();
  const auto client = connect();
  client->hello();
  wire::RequestContext context = owner->context();
  EXPECT_EQ(bind(*client, context), kOk);
  client->context() = context;
  EXPECT_EQ(lookup(*client, keys(1, 1)).context.status, kOk);
  context.epoch += 1;
  EXPECT_EQ(bind(*client, context), kWrongNamespace);
  context.name_space.bytes[3] ^= std::byte{1};
  EXPECT_EQ(bind(*client, context), kWrongNamespace);
}

TEST_F(NodeNamespace, IsServedAtItsEpochOnceItsDigestWasBound) {
  const auto owner = join_in();
  put(*owner, keys(1, 1), 1'000);
  const auto client = connect();
  client->hello();
  wire::RequestContext stale = owner->context();
  stale.epoch -= 1;
  EXPECT_EQ(bind(*client, stale), kWrongNamespace);
  client->context() = stale;
  EXPECT_EQ(lookup(*client, keys(1, 1)).context.status, kWrongNamespace);
  client->context() = owner->context();
  EXPECT_EQ(lookup(*client, keys(1, 1)).run, 1U);
}

TEST_F(NodeNamespace, ServesNothingOfBeforeAPurge) {
  const auto client = join_in();
  const auto other = join_in();
  put(*client, keys(1, 2), 1'000);
  const wire::PurgeReply purged = purge(*client);
  EXPECT_EQ(purged.context.status, kOk);
  EXPECT_TRUE(purged.is_complete);
  EXPECT_GT(purged.epoch, client->context().epoch);
  EXPECT_EQ(lookup(*other, keys(1, 2)).context.status, kWrongNamespace);
  EXPECT_EQ(get(*other, keys(1, 2)).context.status, kWrongNamespace);
  EXPECT_EQ(reserve(*other, keys(1, 2), 1'000).context.status, kWrongNamespace);
  EXPECT_EQ(purge(*other).context.status, kWrongNamespace);
  EXPECT_EQ(other->open().epoch, purged.epoch);
  EXPECT_EQ(lookup(*other, keys(1, 2)).run, 0U);
  run_for(std::chrono::seconds(1));
  EXPECT_EQ(daemon().store().stats().resident_blocks, 0U);
}

TEST_F(NodeNamespace, KeepsItsEpochAcrossARestart) {
  const auto client = join_in();
  const wire::PurgeReply purged = purge(*client);
  network_.kill(client->process());
  start();
  const auto again = join_in();
  EXPECT_EQ(again->context().epoch, purged.epoch);
}

TEST_F(NodeNamespace, FillsATablePerSession) {
  const auto client = connect();
  client->hello();
  BlockStatus last = kOk;
  for (std::uint32_t i = 0; i <= wire::kSessionNamespacesMax; ++i)
    last = open_raw(*client, R"({"n":)" + std::to_string(i) + "}").context.status;
  EXPECT_EQ(last, kQuota);
  EXPECT_EQ(open_raw(*client, R"({"n":0})").context.status, kOk);
}

}  // namespace
}  // namespace cairn::server
