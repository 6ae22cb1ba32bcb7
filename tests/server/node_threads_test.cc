// The node as the daemon runs it: a thread a loop, real sockets, several clients at once. What the
// simulated world cannot show is whether threads meet; this runs under the thread sanitizer.
#include "client/client.h"
#include "server/client_process.h"
#include "server/node.h"
#include "storage/eviction/policy.h"
#include "storage/frame_tier.h"
#include "storage/key_value.h"
#include "tests/support/process_runner.h"
#include "tests/support/sim_pool_memory.h"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cstring>
#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace cairn::server {
namespace {

constexpr std::size_t kLoops = 3;
constexpr std::size_t kClients = 4;
constexpr int kRounds = 60;
constexpr std::size_t kBlockBytes = 20'000;

template <typename T>
T must(Result<T> result) {
  CAIRN_CHECK(result.has_value());
  return std::move(result).value();
}

BlockDigest key_of(std::uint32_t number) {
  std::array<std::byte, kBlockDigestBytesMin> bytes{};
  std::memcpy(bytes.data(), &number, sizeof(number));
  bytes.back() = std::byte{1};
  return *BlockDigest::from(bytes);
}

// A daemon's parts and its threads.
class ThreadedNode {
 public:
  ThreadedNode() {
    const storage::PoolOptions pool{.size = 64_MiB, .slab_bytes = 64_MiB, .populate_threads = 1};
    memory_ = must(machine_.start_daemon());
    tier_ = std::make_unique<storage::DramTier>(storage::DramTierOptions{
        .slab_bytes = pool.slab_bytes, .slabs_max = storage::slabs_max(pool)});
    pool_ = must(storage::Pool::open(pool, *memory_, 1));
    const storage::StoreOptions options{.records_max = 0, .pool_bytes = pool.size};
    const auto records = must(memory_->create_records(storage::Store::records_bytes(options)));
    auto policy = storage::make_eviction_policy("lru", storage::Store::records_max(options));
    store_ = must(storage::Store::open(options, *tier_, records, std::move(policy), clock_));
    key_value_ = must(storage::open_rocksdb({.directory = "", .in_memory = true}));
    namespaces_ = must(NamespaceRegistry::open(*key_value_, clock_));
    make_node();
    for (std::size_t loop = 0; loop < kLoops; ++loop) {
      threads_.emplace_back([this, loop] {
        while (!is_over_.load())
          node_->run_once(loop, clock_.now() + Milliseconds(20));
      });
    }
  }
  ~ThreadedNode() {
    is_over_.store(true);
    for (std::thread& thread : threads_)
      thread.join();
  }
  ThreadedNode(const ThreadedNode&) = delete;
  ThreadedNode& operator=(const ThreadedNode&) = delete;

  const std::string& address() const { return address_; }
  Node& node() { return *node_; }
  const NodeMetrics& metrics() const { return metrics_; }

 private:
  void make_node() {
    std::vector<transport::Poller*> pollers;
    for (std::size_t i = 0; i < kLoops; ++i) {
      pollers_.push_back(must(transport::make_asio_poller(clock_)));
      pollers.push_back(pollers_.back().get());
    }
    NodeOptions options;
    options.lent_max = 32_MiB;
    options.housekeeping = Milliseconds(5);
    node_ = must(Node::create(options,
                              {.store = store_.get(),
                               .dram = tier_.get(),
                               .pool = pool_.get(),
                               .pool_memory = memory_.get(),
                               .namespaces = namespaces_.get(),
                               .processes = &processes_,
                               .metrics = &metrics_,
                               .clock = &clock_,
                               .random = &random_},
                              pollers));
    const auto address = must(transport::Address::parse(address_));
    CAIRN_CHECK(node_->add_listener(must(transport::listen(address))).has_value());
  }

  SystemClock clock_;
  SystemRandom random_;
  testing::TempDir directory_;
  const std::string address_ = "unix:" + (directory_ / "socket");
  testing::SimMachine machine_;
  NodeMetrics metrics_;
  PidfdProcess processes_;
  std::unique_ptr<testing::SimPoolMemory> memory_;
  std::unique_ptr<storage::DramTier> tier_;
  std::unique_ptr<storage::Pool> pool_;
  std::unique_ptr<storage::Store> store_;
  std::unique_ptr<storage::KeyValue> key_value_;
  std::unique_ptr<NamespaceRegistry> namespaces_;
  std::vector<std::unique_ptr<transport::Poller>> pollers_;
  std::unique_ptr<Node> node_;
  std::atomic<bool> is_over_{false};
  std::vector<std::thread> threads_;
};

// Puts, gets and holds blocks that other clients put and get at the same time. Blocks read right.
std::uint64_t use(const std::string& address, std::uint32_t number) {
  auto client = must(client::Client::connect({.server = address, .map_pool = number != 0}));
  const auto name = must(client->open_namespace(R"({"n":1})"));
  std::uint64_t right = 0;
  std::vector<std::byte> body(kBlockBytes);
  std::vector<std::byte> target(kBlockBytes);
  for (int round = 0; round < kRounds; ++round) {
    const std::array<BlockDigest, 1> key = {key_of(static_cast<std::uint32_t>(round))};
    std::ranges::fill(body, static_cast<std::byte>(round));
    const std::array<std::span<const std::byte>, 1> sources = {body};
    const std::array<std::span<std::byte>, 1> targets = {target};
    std::array<client::KeyResult, 1> results;
    CAIRN_CHECK(client
                    ->put({.name_space = name,
                           .digests = key,
                           .sources = sources,
                           .placement = {},
                           .results = results,
                           .call = {}})
                    .has_value());
    CAIRN_CHECK(client
                    ->get({.name_space = name,
                           .digests = key,
                           .targets = targets,
                           .verify = {},
                           .results = results,
                           .call = {}})
                    .has_value());
    if (results[0].status == BlockStatus::kOk && target == body) ++right;
  }
  return right;
}

TEST(NodeThreads, ServeClientsFromAllLoopsAtOnce) {
  ThreadedNode node;
  std::atomic<std::uint64_t> right{0};
  std::vector<std::thread> clients;
  for (std::uint32_t i = 0; i < kClients; ++i)
    clients.emplace_back([&node, &right, i] { right += use(node.address(), i); });
  for (int i = 0; i < 20; ++i) {
    EXPECT_FALSE(node.node().stats_json().empty());
    std::this_thread::yield();
  }
  for (std::thread& client : clients)
    client.join();
  // All but what the pool was not ready for at the beginning.
  EXPECT_GT(right.load(), kClients * kRounds / 2);
  EXPECT_EQ(node.metrics().frames_malformed.load(), 0U);
}

}  // namespace
}  // namespace cairn::server
