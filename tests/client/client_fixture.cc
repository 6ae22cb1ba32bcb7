#include "tests/client/client_fixture.h"

#include "base/checksum.h"

#include <cstring>
#include <string>
#include <utility>

namespace cairn::client {

BlockDigest key(std::uint64_t number) {
  std::array<std::byte, kBlockDigestBytesMax> bytes{};
  std::memcpy(bytes.data(), &number, sizeof(number));
  bytes.back() = std::byte{1};
  return *BlockDigest::from(bytes);
}

std::vector<BlockDigest> keys(std::uint64_t first, std::size_t count) {
  std::vector<BlockDigest> out;
  for (std::size_t i = 0; i < count; ++i)
    out.push_back(key(first + i));
  return out;
}

std::vector<std::byte> body(std::uint64_t seed, std::size_t bytes) {
  std::vector<std::byte> out(bytes);
  SeededRandom random(seed);
  for (std::size_t at = 0; at < bytes; at += sizeof(std::uint64_t)) {
    const std::uint64_t word = random.next_u64();
    std::memcpy(out.data() + at, &word, std::min(sizeof(word), bytes - at));
  }
  return out;
}

Blocks::Blocks(std::uint64_t first, std::size_t count, std::size_t bytes)
    : digests(keys(first, count)),
      results(count) {
  for (std::size_t i = 0; i < count; ++i) {
    payloads.push_back(body(first + i, bytes));
    buffers.emplace_back(bytes);
  }
  for (const auto& payload : payloads)
    sources.emplace_back(payload);
  for (auto& buffer : buffers)
    targets.emplace_back(buffer);
}

PutRequest Blocks::put_request(const Namespace& name_space) {
  return {.name_space = name_space,
          .digests = digests,
          .sources = sources,
          .placement = {},
          .results = results,
          .call = {}};
}

GetRequest Blocks::get_request(const Namespace& name_space) {
  return {.name_space = name_space,
          .digests = digests,
          .targets = targets,
          .is_chain = true,
          .verify = {},
          .results = results,
          .call = {}};
}

std::vector<BlockStatus> Blocks::statuses() const {
  std::vector<BlockStatus> out;
  for (const KeyResult& result : results)
    out.push_back(result.status);
  return out;
}

std::size_t Blocks::right() const {
  std::size_t count = 0;
  for (std::size_t i = 0; i < payloads.size(); ++i)
    count += payloads[i] == buffers[i] ? 1 : 0;
  return count;
}

ClientTest::ClientTest()
    : connector_(network_.make_connector(process_)),
      watch_(network_.make_process_watch(process_)),
      daemon_(std::make_unique<ScriptedDaemon>(network_, slabs_, boot_)) {
  network_.set_step([this] {
    if (daemon_) daemon_->turn();
    return network_.step();
  });
}

ClientTest::~ClientTest() {
  client_.reset();
}

Result<std::unique_ptr<Client>> ClientTest::try_connect(ClientOptions options,
                                                        std::string* message) {
  if (options.server == ClientOptions{}.server) options.server = "unix:/sim/d.sock";
  return Client::connect(options,
                         {.clock = &clock_,
                          .random = &random_,
                          .connector = connector_.get(),
                          .mapper = &slabs_,
                          .process = watch_.get()},
                         message);
}

void ClientTest::connect(ClientOptions options) {
  auto client = try_connect(std::move(options));
  ASSERT_TRUE(client.has_value());
  client_ = std::move(*client);
  auto opened = client_->open_namespace(R"({"model":"m"})");
  ASSERT_TRUE(opened.has_value());
  ns_ = *opened;
}

void ClientTest::restart_daemon() {
  daemon_->kill();
  daemon_ = std::make_unique<ScriptedDaemon>(network_, slabs_, ++boot_);
}

Completion ClientTest::finish(Queue& queue, Ticket ticket) {
  Completion done;
  for (int rounds = 0; rounds < 100'000; ++rounds) {
    Completion completion;
    while (queue.poll(std::span(&completion, 1)) > 0)
      records_.push_back(completion);
    bool is_returned = false;
    std::erase_if(records_, [&](const Completion& record) {
      if (record.ticket != ticket) return false;
      if (record.is_done) done = record;
      is_returned = is_returned || record.is_returned;
      return true;
    });
    if (is_returned) return done;
    queue.wait(Deadline(queue.next_due().value_or(clock_.now() + Milliseconds(10))));
  }
  ADD_FAILURE() << "the ticket never ended";
  return done;
}

}  // namespace cairn::client
