#include "tests/server/node_fixture.h"

#include "base/random.h"

#include <algorithm>
#include <array>
#include <cstring>

namespace cairn::server {

BlockDigest key(std::uint64_t number, std::size_t bytes) {
  std::array<std::byte, kBlockDigestBytesMax> raw{};
  std::memcpy(raw.data(), &number, sizeof(number));
  raw[bytes - 1] = std::byte{0x5A};
  return *BlockDigest::from(std::span(raw).first(bytes));
}

std::vector<BlockDigest> keys(std::uint64_t first, std::size_t count) {
  std::vector<BlockDigest> out;
  for (std::size_t i = 0; i < count; ++i)
    out.push_back(key(first + i));
  return out;
}

std::vector<std::byte> body(std::uint64_t seed, std::size_t bytes) {
  SeededRandom random(seed);
  std::vector<std::byte> out(bytes);
  for (std::size_t i = 0; i < bytes; i += sizeof(std::uint64_t)) {
    const std::uint64_t word = random.next_u64();
    std::memcpy(out.data() + i, &word, std::min(sizeof(word), bytes - i));
  }
  return out;
}

std::vector<std::uint32_t> checksums_of(std::span<const std::byte> payload) {
  std::vector<std::uint32_t> out;
  while (!payload.empty()) {
    const auto chunk = payload.first(std::min<std::size_t>(payload.size(), kChunkBytes.value()));
    out.push_back(crc32c(chunk));
    payload = payload.subspan(chunk.size());
  }
  return out;
}

void NodeTest::start(testing::SimDaemonOptions options) {
  daemon_.reset();
  options.seed += starts_++;
  daemon_ = std::make_unique<testing::SimDaemon>(host_, clock_, options);
  // The daemon uses what room a client has made before time goes on, and answers what the step has
  // brought before anybody is asked whether it is ready.
  network_.set_step([this] {
    if (daemon_) daemon_->turn();
    const bool may_go_on = network_.step();
    if (daemon_) daemon_->turn();
    return may_go_on;
  });
  run_for(Milliseconds(1));
}

std::unique_ptr<ScriptedClient> NodeTest::connect(std::optional<testing::SimProcessId> process) {
  auto client =
      std::make_unique<ScriptedClient>(host_, clock_, process ? *process : network_.spawn());
  EXPECT_TRUE(client->connect(daemon_->unix_address()));
  return client;
}

std::unique_ptr<ScriptedClient> NodeTest::connect_tcp() {
  auto client = std::make_unique<ScriptedClient>(host_, clock_, network_.spawn());
  EXPECT_TRUE(client->connect(daemon_->tcp_address()));
  return client;
}

std::unique_ptr<ScriptedClient> NodeTest::join_in() {
  auto client = connect();
  EXPECT_TRUE(client->hello().is_mapping_allowed);
  client->open();
  return client;
}

std::unique_ptr<ScriptedClient> NodeTest::join_in_tcp() {
  auto client = connect_tcp();
  EXPECT_FALSE(client->hello().is_mapping_allowed);
  client->open();
  return client;
}

wire::ReserveReply NodeTest::reserve(ScriptedClient& client,
                                     std::span<const BlockDigest> digests,
                                     std::size_t bytes,
                                     bool is_chain) {
  wire::Reserve request;
  request.context = client.context();
  request.placement.is_chain = is_chain;
  request.digests.assign(digests.begin(), digests.end());
  request.lengths.assign(digests.size(), static_cast<std::uint32_t>(bytes));
  return client.ask<wire::ReserveReply>(request);
}

void NodeTest::fill(ScriptedClient& client,
                    const wire::ReserveReply& reserved,
                    std::size_t index,
                    std::span<const std::byte> payload) {
  const wire::Grant& grant = reserved.grants.at(index);
  const auto extents = std::span(reserved.extents).subspan(grant.extent_first, grant.extent_count);
  for (const auto piece : client.payload(extents, static_cast<std::uint32_t>(payload.size()))) {
    std::memcpy(piece.data(), payload.data(), piece.size());
    payload = payload.subspan(piece.size());
  }
}

wire::CommitReply NodeTest::commit(ScriptedClient& client,
                                   const wire::ReserveReply& reserved,
                                   std::span<const std::vector<std::byte>> payloads) {
  wire::Commit request;
  request.context = client.context();
  for (std::size_t i = 0; i < reserved.grants.size(); ++i) {
    if (reserved.grants[i].status != BlockStatus::kOk) continue;
    fill(client, reserved, i, payloads[i]);
    const auto checksums = checksums_of(payloads[i]);
    request.entries.push_back(
        {.lend = reserved.grants[i].lend,
         .checksum_first = static_cast<std::uint32_t>(request.checksums.size()),
         .checksum_count = static_cast<std::uint32_t>(checksums.size())});
    request.checksums.insert(request.checksums.end(), checksums.begin(), checksums.end());
  }
  return client.ask<wire::CommitReply>(request);
}

std::vector<BlockStatus> NodeTest::put(ScriptedClient& client,
                                       std::span<const BlockDigest> digests,
                                       std::size_t bytes,
                                       std::uint64_t seed) {
  std::vector<std::vector<std::byte>> payloads;
  for (std::size_t i = 0; i < digests.size(); ++i)
    payloads.push_back(body(seed + i, bytes));
  const wire::ReserveReply reserved = reserve(client, digests, bytes);
  EXPECT_EQ(reserved.context.status, BlockStatus::kOk);
  const wire::CommitReply committed = commit(client, reserved, payloads);
  std::vector<BlockStatus> out;
  std::size_t next = 0;
  for (const wire::Grant& grant : reserved.grants)
    out.push_back(grant.status == BlockStatus::kOk ? committed.statuses.at(next++) : grant.status);
  return out;
}

wire::GetReply NodeTest::get(ScriptedClient& client,
                             std::span<const BlockDigest> digests,
                             bool is_chain) {
  wire::Get request;
  request.context = client.context();
  request.is_chain = is_chain;
  request.digests.assign(digests.begin(), digests.end());
  return client.ask<wire::GetReply>(request);
}

wire::LookupReply NodeTest::lookup(ScriptedClient& client,
                                   std::span<const BlockDigest> digests,
                                   wire::LookupKind kind) {
  wire::Lookup request;
  request.context = client.context();
  request.kind = kind;
  request.digests.assign(digests.begin(), digests.end());
  return client.ask<wire::LookupReply>(request);
}

std::vector<std::byte> NodeTest::bytes_of(ScriptedClient& client,
                                          const wire::GetReply& reply,
                                          std::size_t index) {
  const wire::Grant& grant = reply.grants.at(index);
  const auto extents = std::span(reply.extents).subspan(grant.extent_first, grant.extent_count);
  std::vector<std::byte> out;
  for (const auto piece : client.payload(extents, grant.length))
    out.insert(out.end(), piece.begin(), piece.end());
  return out;
}

void NodeTest::release(ScriptedClient& client, const wire::GetReply& reply) {
  wire::Release request;
  for (const wire::Grant& grant : reply.grants) {
    if (grant.lend != 0) request.entries.push_back({.lend = grant.lend});
  }
  client.send(request);
}

wire::HeldLend NodeTest::held(const wire::Grant& grant, std::span<const wire::WireExtent> extents) {
  const wire::WireExtent& first = extents[grant.extent_first];
  return {.slab = first.slab,
          .slab_generation = first.generation,
          .offset = first.offset,
          .lend = grant.lend};
}

}  // namespace cairn::server
