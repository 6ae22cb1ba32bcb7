#include "tests/support/sim_daemon.h"

#include "base/check.h"
#include "storage/eviction/policy.h"

#include <utility>

namespace cairn::testing {
namespace {

// A wait in the simulated world's hook answers at once; this only names the next timer.
constexpr Nanoseconds kTurn = std::chrono::hours(1);
// A loop that has more to do than this many turns is left alone until the world has moved on.
constexpr int kTurnsAtOnce = 64;

transport::Address parse(const std::string& text) {
  auto address = transport::Address::parse(text);
  CAIRN_CHECK(address.has_value());
  return *std::move(address);
}

template <typename T>
T must(Result<T> result) {
  CAIRN_CHECK(result.has_value());
  return std::move(result).value();
}

}  // namespace

class SimDaemon::Processes final : public server::ClientProcess {
 public:
  Processes(SimNetwork& network, SimProcessId daemon)
      : network_(network),
        daemon_(daemon),
        watch_(network.make_process_watch(daemon)) {}

  bool is_process_of(int descriptor, const transport::Channel::Peer& peer) const noexcept override {
    return watch_->verify(descriptor, peer).has_value();
  }
  bool has_exited(int descriptor) const noexcept override { return watch_->has_exited(descriptor); }
  void close(int descriptor) noexcept override {
    // A killed daemon's descriptors went with it.
    if (network_.holds(daemon_, descriptor)) watch_->close(descriptor);
  }

 private:
  SimNetwork& network_;
  const SimProcessId daemon_;
  const std::unique_ptr<transport::ProcessWatch> watch_;
};

SimDaemon::SimDaemon(SimHost& host, ManualClock& clock, const SimDaemonOptions& options)
    : clock_(clock),
      network_(host.network()),
      process_(network_.spawn()),
      loops_(options.loops),
      unix_address_(parse(options.unix_address)),
      tcp_address_(parse(options.tcp_address)),
      random_(options.seed) {
  open_storage(host, options);
  open_node(host, options);
}

void SimDaemon::open_storage(SimHost& host, const SimDaemonOptions& options) {
  const storage::PoolOptions pool{
      .size = options.pool, .slab_bytes = 64_MiB, .populate_threads = 0};
  memory_ = must(SimHostMemory::start(host, process_));
  tier_ = std::make_unique<storage::DramTier>(storage::DramTierOptions{
      .slab_bytes = pool.slab_bytes, .slabs_max = storage::slabs_max(pool)});
  pool_ = must(storage::Pool::open(pool, *memory_, static_cast<std::uint32_t>(random_.next_u64())));
  const storage::StoreOptions store{.records_max = 0, .pool_bytes = options.pool};
  const auto records = must(memory_->create_records(storage::Store::records_bytes(store)));
  auto policy = storage::make_eviction_policy("lru", storage::Store::records_max(store));
  store_ = must(storage::Store::open(store, *tier_, records, std::move(policy), clock_));
}

void SimDaemon::open_node(SimHost& host, const SimDaemonOptions& options) {
  namespaces_ = must(server::NamespaceRegistry::open(host.key_value(), clock_));
  processes_ = std::make_unique<Processes>(network_, process_);
  std::vector<transport::Poller*> pollers;
  for (std::size_t i = 0; i < loops_; ++i) {
    pollers_.push_back(network_.make_poller(process_));
    pollers.push_back(pollers_.back().get());
  }
  server::NodeOptions node = options.node;
  node.boot = {.counter = clock_.unix_ms(), .incarnation = random_.next_u64()};
  node_ = must(server::Node::create(node,
                                    {.store = store_.get(),
                                     .dram = tier_.get(),
                                     .pool = pool_.get(),
                                     .pool_memory = memory_.get(),
                                     .namespaces = namespaces_.get(),
                                     .processes = processes_.get(),
                                     .metrics = &metrics_,
                                     .clock = &clock_,
                                     .random = &random_},
                                    pollers));
  for (const transport::Address& address : {unix_address_, tcp_address_})
    CAIRN_CHECK(node_->add_listener(must(network_.listen(process_, address))).has_value());
}

void SimDaemon::turn() {
  if (is_killed_) return;
  for (std::size_t loop = 0; loop < loops_; ++loop) {
    int turns = 0;
    while (node_->run_once(loop, clock_.now() + kTurn) > 0 && ++turns < kTurnsAtOnce) {
    }
  }
}

void SimDaemon::kill() {
  CAIRN_CHECK(!is_killed_);
  is_killed_ = true;
  network_.kill(process_);
  // Nobody hears of it any more when these go.
  close_parts();
  memory_->crash();
  memory_.reset();
}

void SimDaemon::close_parts() {
  node_.reset();
  pollers_.clear();
  store_.reset();
  pool_.reset();
  tier_.reset();
}

SimDaemon::~SimDaemon() {
  close_parts();
  memory_.reset();
  if (!is_killed_) network_.kill(process_);
}

}  // namespace cairn::testing
