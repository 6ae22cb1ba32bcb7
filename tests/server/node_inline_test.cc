// Bytes inside the control channel, for clients that map nothing.
#include "tests/server/node_fixture.h"

#include <algorithm>
#include <cstring>
#include <map>

namespace cairn::server {
namespace {

using enum BlockStatus;

class NodeInline : public NodeTest {
 protected:
  static wire::PutInline put_request(const ScriptedClient& client,
                                     std::span<const BlockDigest> digests,
                                     std::span<const std::vector<std::byte>> payloads) {
    wire::PutInline request;
    request.context = client.context();
    request.digests.assign(digests.begin(), digests.end());
    for (const auto& payload : payloads) {
      request.lengths.push_back(static_cast<std::uint32_t>(payload.size()));
      const auto checksums = checksums_of(payload);
      request.checksums.insert(request.checksums.end(), checksums.begin(), checksums.end());
    }
    return request;
  }
  static void send_data(ScriptedClient& client,
                        std::uint64_t id,
                        std::uint32_t item,
                        std::span<const std::byte> payload) {
    std::uint32_t offset = 0;
    while (offset < payload.size()) {
      const auto bytes = payload.subspan(
          offset, std::min<std::size_t>(payload.size() - offset, wire::kInlineBytesMax.value()));
      client.send_as(wire::InlineData{.item = item, .offset = offset, .bytes = bytes}, id);
      offset += static_cast<std::uint32_t>(bytes.size());
    }
  }
  static std::vector<BlockStatus> put_inline(ScriptedClient& client,
                                             std::span<const BlockDigest> digests,
                                             std::span<const std::vector<std::byte>> payloads) {
    const std::uint64_t id = client.send(put_request(client, digests, payloads));
    for (std::size_t i = 0; i < payloads.size(); ++i)
      send_data(client, id, static_cast<std::uint32_t>(i), payloads[i]);
    return client.reply<wire::StatusesReply>(id).statuses;
  }
  static wire::Get get_request(const ScriptedClient& client, std::span<const BlockDigest> digests) {
    wire::Get request;
    request.context = client.context();
    request.mode = wire::GetMode::kInline;
    request.digests.assign(digests.begin(), digests.end());
    return request;
  }
  // The payload of `item` of request `id`, from the frames that have come.
  static std::vector<std::byte> data_of(const ScriptedClient& client,
                                        std::uint64_t id,
                                        std::uint32_t item) {
    std::vector<std::byte> out;
    for (const KeptFrame& frame : client.frames()) {
      if (frame.type != wire::MessageType::kInlineData || frame.request_id != id) continue;
      wire::InlineData data;
      EXPECT_TRUE(wire::decode(frame.view(), data).has_value());
      if (data.item != item) continue;
      EXPECT_EQ(data.offset, out.size());
      EXPECT_LE(data.bytes.size(), wire::kInlineBytesMax.value());
      out.insert(out.end(), data.bytes.begin(), data.bytes.end());
    }
    return out;
  }
};

TEST_F(NodeInline, PutsAndGetsWithoutAMapping) {
  const auto client = join_in_tcp();
  const std::vector<std::vector<std::byte>> payloads = {body(1, 700'000), body(2, 5)};
  EXPECT_EQ(put_inline(*client, keys(1, 2), payloads), std::vector(2, kOk));
  EXPECT_EQ(lent_bytes(), 0U);
  const std::uint64_t id = client->send(get_request(*client, keys(1, 3)));
  const auto reply = client->reply<wire::GetReply>(id);
  client->listen_for(Milliseconds(50));
  ASSERT_EQ(reply.grants.size(), 3U);
  EXPECT_EQ(reply.grants[0].lend, 0U);
  EXPECT_EQ(reply.grants[2].status, kMiss);
  EXPECT_TRUE(reply.extents.empty());
  EXPECT_EQ(data_of(*client, id, 0), payloads[0]);
  EXPECT_EQ(data_of(*client, id, 1), payloads[1]);
  EXPECT_EQ(lent_bytes(), 0U);
  // The same bytes through a mapping.
  const auto mapped = join_in();
  EXPECT_EQ(bytes_of(*mapped, get(*mapped, keys(1, 1)), 0), payloads[0]);
}

TEST_F(NodeInline, KeepsNothingWhoseChecksumIsWrong) {
  const auto client = join_in_tcp();
  const std::vector<std::vector<std::byte>> payloads = {body(1, 1'000), body(2, 600'000)};
  wire::PutInline request = put_request(*client, keys(1, 2), payloads);
  request.placement.is_chain = false;
  request.checksums[2] ^= 1;  // the second chunk of the second block
  const std::uint64_t id = client->send(request);
  send_data(*client, id, 1, payloads[1]);
  send_data(*client, id, 0, payloads[0]);
  EXPECT_EQ(client->reply<wire::StatusesReply>(id).statuses, (std::vector{kOk, kInvalid}));
  EXPECT_EQ(lookup(*client, keys(2, 1)).run, 0U);
  EXPECT_EQ(lent_bytes(), 0U);
  EXPECT_EQ(daemon().store().stats().open_reservations, 0U);
}

TEST_F(NodeInline, CutsAChainOfPutsBehindItsFirstFailure) {
  const auto client = join_in_tcp();
  const std::vector<std::vector<std::byte>> payloads(3, body(1, 1'000));
  wire::PutInline request = put_request(*client, keys(1, 3), payloads);
  request.checksums[1] ^= 1;
  const std::uint64_t id = client->send(request);
  for (std::uint32_t i = 0; i < 3; ++i)
    send_data(*client, id, i, payloads[i]);
  EXPECT_EQ(client->reply<wire::StatusesReply>(id).statuses, (std::vector{kOk, kInvalid, kCut}));
  EXPECT_EQ(lookup(*client, keys(1, 3)).run, 1U);
}

TEST_F(NodeInline, TakesBytesInOrderOnly) {
  const auto client = join_in_tcp();
  const std::vector<std::vector<std::byte>> payloads(3, body(1, 1'000));
  wire::PutInline request = put_request(*client, keys(1, 3), payloads);
  request.placement.is_chain = false;
  const std::uint64_t id = client->send(request);
  const std::span<const std::byte> bytes(payloads[0]);
  client->send_as(wire::InlineData{.item = 0, .offset = 500, .bytes = bytes.first(500)}, id);
  const auto longer = body(1, 1'001);
  client->send_as(wire::InlineData{.item = 1, .offset = 0, .bytes = longer}, id);
  client->send_as(wire::InlineData{.item = 900, .offset = 0, .bytes = longer}, id);
  client->send_as(wire::InlineData{.item = 2, .offset = 0, .bytes = bytes.first(300)}, id);
  client->send_as(wire::InlineData{.item = 2, .offset = 300, .bytes = bytes.subspan(300)}, id);
  EXPECT_EQ(client->reply<wire::StatusesReply>(id).statuses,
            (std::vector{kInvalid, kInvalid, kOk}));
}

TEST_F(NodeInline, AnswersWhatIsThereWithoutItsBytes) {
  const auto client = join_in_tcp();
  const std::vector<std::vector<std::byte>> payloads = {body(1, 1'000)};
  EXPECT_EQ(put_inline(*client, keys(1, 1), payloads), std::vector(1, kOk));
  const std::vector<std::vector<std::byte>> others = {body(9, 1'000)};
  const std::uint64_t id = client->send(put_request(*client, keys(1, 1), others));
  EXPECT_EQ(client->reply<wire::StatusesReply>(id).statuses, std::vector{kExists});
  // Its data comes late and is dropped.
  send_data(*client, id, 0, others[0]);
  EXPECT_EQ(lookup(*client, keys(1, 1)).run, 1U);
}

TEST_F(NodeInline, CancelsAPutAndKeepsWhatWasWhole) {
  const auto client = join_in_tcp();
  const std::vector<std::vector<std::byte>> payloads(2, body(1, 1'000));
  const std::uint64_t id = client->send(put_request(*client, keys(1, 2), payloads));
  send_data(*client, id, 0, payloads[0]);
  client->send(wire::Cancel{id});
  EXPECT_EQ(client->reply<wire::StatusesReply>(id).statuses, (std::vector{kOk, kCancelled}));
  send_data(*client, id, 1, payloads[1]);
  EXPECT_EQ(lookup(*client, keys(1, 2)).run, 1U);
  EXPECT_EQ(lent_bytes(), 0U);
  client->send(wire::Cancel{id});
  client->send(wire::Cancel{987'654});
  EXPECT_EQ(lookup(*client, keys(1, 2)).run, 1U);
}

TEST_F(NodeInline, EndsAPutWhoseTimeIsOver) {
  const auto client = join_in_tcp();
  const std::vector<std::vector<std::byte>> payloads = {body(1, 1'000)};
  wire::PutInline request = put_request(*client, keys(1, 1), payloads);
  request.context.remaining_ms = 300;
  const std::uint64_t id = client->send(request);
  EXPECT_EQ(client->reply<wire::StatusesReply>(id).statuses, std::vector{kTimeout});
  EXPECT_EQ(metrics().requests_timed_out.load(), 1U);
  EXPECT_EQ(lent_bytes(), 0U);
}

TEST_F(NodeInline, UndoesAPutWhoseConnectionIsLost) {
  const auto client = join_in_tcp();
  const std::vector<std::vector<std::byte>> payloads(2, body(1, 1'000));
  const std::uint64_t id = client->send(put_request(*client, keys(1, 2), payloads));
  send_data(*client, id, 0, payloads[0]);
  run_for(Milliseconds(2));
  EXPECT_EQ(lent_bytes(), 2 * 8'192U);
  client->disconnect();
  run_for(Milliseconds(2));
  EXPECT_EQ(lent_bytes(), 0U);
  EXPECT_EQ(metrics().sessions.load(), 0U);
  EXPECT_EQ(daemon().store().stats().open_reservations, 0U);
}

TEST_F(NodeInline, DeclinesPutsWhilePaused) {
  const auto client = join_in_tcp();
  const std::vector<std::vector<std::byte>> payloads = {body(1, 1'000)};
  const std::uint64_t id = client->send(put_request(*client, keys(1, 1), payloads));
  run_for(Milliseconds(2));
  daemon().node().set_paused(true);
  send_data(*client, id, 0, payloads[0]);
  EXPECT_EQ(client->reply<wire::StatusesReply>(id).statuses, std::vector{kDeclined});
  const std::uint64_t refused = client->send(put_request(*client, keys(1, 1), payloads));
  EXPECT_EQ(client->reply<wire::StatusesReply>(refused).context.status, kDeclined);
  EXPECT_EQ(lent_bytes(), 0U);
}

TEST_F(NodeInline, HasAWindowOfUnansweredRequests) {
  const auto client = join_in_tcp();
  const std::vector<std::vector<std::byte>> payloads = {body(1, 1'000)};
  std::uint64_t last = 0;
  for (std::uint64_t i = 0; i < wire::kRequestsInFlightMax; ++i)
    last = client->send(put_request(*client, keys(i, 1), payloads));
  const wire::LookupReply refused = lookup(*client, keys(1, 1));
  EXPECT_EQ(refused.context.status, kBusy);
  EXPECT_EQ(refused.context.reason, BusyReason::kWindow);
  EXPECT_EQ(metrics().busy[static_cast<std::size_t>(BusyReason::kWindow)].load(), 1U);
  client->send(wire::Cancel{last});
  EXPECT_EQ(lookup(*client, keys(1, 1)).context.status, kOk);
}

TEST_F(NodeInline, BoundsWhatAClientHasReserved) {
  testing::SimDaemonOptions options;
  options.node.lent_max = 16_KiB;
  start(options);
  const auto client = join_in_tcp();
  const std::vector<std::vector<std::byte>> payloads(3, body(1, 1'000));
  wire::PutInline request = put_request(*client, keys(1, 3), payloads);
  request.placement.is_chain = false;
  const std::uint64_t id = client->send(request);
  for (std::uint32_t i = 0; i < 3; ++i)
    send_data(*client, id, i, payloads[i]);
  const auto reply = client->reply<wire::StatusesReply>(id);
  EXPECT_EQ(reply.statuses, (std::vector{kOk, kOk, kBusy}));
  EXPECT_EQ(reply.reasons.at(2), BusyReason::kLentLimit);
}

TEST_F(NodeInline, InterleavesDataWithReplies) {
  const auto client = join_in_tcp();
  const std::vector<std::vector<std::byte>> payloads(8, body(1, 4'000'000));
  EXPECT_EQ(put_inline(*client, keys(1, 8), payloads), std::vector(8, kOk));
  const std::uint64_t id = client->send(get_request(*client, keys(1, 8)));
  client->reply<wire::GetReply>(id);
  EXPECT_EQ(lookup(*client, keys(1, 8)).run, 8U);
  // The answer came before most of the data, which the socket does not hold.
  EXPECT_LT(data_of(*client, id, 7).size(), payloads[7].size());
  client->listen_for(Milliseconds(500));
  for (std::uint32_t i = 0; i < 8; ++i)
    EXPECT_EQ(data_of(*client, id, i), payloads[i]);
  EXPECT_EQ(lent_bytes(), 0U);
}

TEST_F(NodeInline, SharesTheSocketBetweenGets) {
  const auto client = join_in_tcp();
  const std::vector<std::vector<std::byte>> payloads(2, body(1, 8'000'000));
  EXPECT_EQ(put_inline(*client, keys(1, 2), payloads), std::vector(2, kOk));
  const std::uint64_t one = client->send(get_request(*client, keys(1, 1)));
  const std::uint64_t two = client->send(get_request(*client, keys(2, 1)));
  client->reply<wire::GetReply>(one);
  client->reply<wire::GetReply>(two);
  client->listen_for(Milliseconds(5));
  EXPECT_GT(data_of(*client, two, 0).size(), 0U);
  EXPECT_LT(data_of(*client, one, 0).size(), payloads[0].size());
  client->listen_for(Milliseconds(500));
  EXPECT_EQ(data_of(*client, one, 0), payloads[0]);
  EXPECT_EQ(data_of(*client, two, 0), payloads[1]);
}

TEST_F(NodeInline, StopsAGetThatIsCancelled) {
  const auto client = join_in_tcp();
  const std::vector<std::vector<std::byte>> payloads = {body(1, 16'000'000)};
  EXPECT_EQ(put_inline(*client, keys(1, 1), payloads), std::vector(1, kOk));
  const std::uint64_t id = client->send(get_request(*client, keys(1, 1)));
  client->send(wire::Cancel{id});
  client->listen_for(Milliseconds(500));
  EXPECT_LT(data_of(*client, id, 0).size(), payloads[0].size());
  EXPECT_EQ(lent_bytes(), 0U);
}

TEST_F(NodeInline, StopsAGetWhoseTimeIsOver) {
  const auto client = join_in();
  put(*client, keys(1, 1), 16'000'000);
  wire::Get request = get_request(*client, keys(1, 1));
  request.context.remaining_ms = 100;
  client->send(request);
  run_for(std::chrono::seconds(1));  // the client reads nothing
  EXPECT_EQ(lent_bytes(), 0U);
  EXPECT_EQ(metrics().requests_timed_out.load(), 1U);
}

TEST_F(NodeInline, ParksAClientThatDoesNotReadAndGoesOnWhenItDoes) {
  const auto client = join_in();
  constexpr std::uint64_t kRequests = 400;
  put(*client, keys(1, 1'000), 1'000);
  wire::List request;
  request.context = client->context();
  std::vector<std::uint64_t> ids;
  for (std::uint64_t i = 0; i < kRequests; ++i)
    ids.push_back(client->send(request));
  run_for(std::chrono::seconds(1));
  // Not everything was answered, so the rest was not read; others are served as ever.
  const auto list = static_cast<std::size_t>(Operation::kList);
  EXPECT_LT(metrics().requests[list].load(), kRequests);
  EXPECT_GT(metrics().requests[list].load(), kRequests / 8);
  EXPECT_EQ(lookup(*join_in(), keys(1, 1)).run, 1U);
  for (const std::uint64_t id : ids)
    EXPECT_EQ(client->reply<wire::ListReply>(id).digests.size(), 1'000U);
}

}  // namespace
}  // namespace cairn::server
