#include "server/daemon.h"

#include "base/random.h"
#include "server/admin.h"
#include "server/client_process.h"
#include "server/data_directory.h"
#include "server/log.h"
#include "server/metrics_export.h"
#include "server/namespaces.h"
#include "server/node.h"
#include "server/pool_setup.h"
#include "server/settings.h"

#include <sys/stat.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

namespace cairn::server {
namespace {

// A loop looks this often whether it shall end; begin_stop() wakes it anyway.
constexpr Milliseconds kLoopTurn{1'000};
constexpr Milliseconds kDrainStep{10};

StartFailure step_failure(const std::string& step, const Error& error) {
  return {kExitFailed, step + ": " + plain_words(error)};
}

StartFailure listen_failure(const ConfigOutcome& outcome, const char* key, const Error& error) {
  const std::string& value = std::string_view(key) == "listen.unix"  ? outcome.config.listen_unix
                             : std::string_view(key) == "listen.tcp" ? outcome.config.listen_tcp
                                                                     : outcome.config.admin_listen;
  const std::string why =
      error.code == ErrorCode::kExists ? "another process listens there" : plain_words(error);
  return {kExitFailed, std::string(key) + " = " + value + " (" + outcome.origin(key) + "): " + why};
}

// The directory of a socket, if only its last part is missing.
void make_socket_directory(const std::string& path) {
  const std::string directory = path.substr(0, path.rfind('/'));
  // A failure is told by the bind that follows, which names what is missing.
  if (!directory.empty()) static_cast<void>(::mkdir(directory.c_str(), 0755));
}

}  // namespace

// Members in the order of opening, so that they close in reverse.
class Daemon::Impl final : private AdminPages {
 public:
  explicit Impl(const ConfigOutcome& outcome)
      : outcome_(outcome) {}
  ~Impl() override { stop(); }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  std::optional<StartFailure> start() {
    if (auto failure = open_state()) return failure;
    if (auto failure = open_store()) return failure;
    if (auto failure = open_node()) return failure;
    if (auto failure = open_admin()) return failure;
    run_loops();
    finish_ready_line();
    return std::nullopt;
  }

  void stop() noexcept {
    if (loops_.empty()) return;
    log_event(LogLevel::kInfo, "stopping", {});
    is_serving_ = false;
    node_->begin_stop();
    drain();
    is_ending_ = true;
    for (const auto& poller : pollers_)
      poller->wake();
    for (std::thread& loop : loops_)
      loop.join();
    loops_.clear();
    admin_.reset();
    node_.reset();
    log_event(LogLevel::kInfo, "stopped", {});
  }

  const std::string& ready_line() const noexcept { return ready_line_; }

 private:
  std::string metrics() const override {
    return metrics_text(metrics_,
                        store_->stats(),
                        {CAIRN_VERSION, std::string(store_->policy_name()), started_unix_ms_});
  }
  const char* why_unhealthy() const override { return is_serving_ ? nullptr : "stopping"; }

  const Config& config() const noexcept { return outcome_.config; }

  std::optional<StartFailure> open_state() {
    boot_.incarnation = random_.next_u64();
    auto memory = open_pool_memory(outcome_, boot_.incarnation);
    if (!memory) return std::move(memory).error();
    pool_memory_ = *std::move(memory);
    auto data = DataDirectory::open(config().data_dir, outcome_.origin("data_dir"));
    if (!data) return std::move(data).error();
    data_ = *std::move(data);
    const Result<std::uint64_t> counter = next_boot_counter(data_->key_value(), clock_);
    if (!counter) return data_failure(counter.error());
    boot_.counter = *counter;
    auto namespaces = NamespaceRegistry::open(data_->key_value(), clock_);
    if (!namespaces) return data_failure(namespaces.error());
    namespaces_ = *std::move(namespaces);
    return std::nullopt;
  }

  StartFailure data_failure(const Error& error) const {
    return directory_failure({"data_dir", config().data_dir, outcome_.origin("data_dir"), ""},
                             error);
  }

  std::optional<StartFailure> open_store() {
    for (std::uint32_t i = 0; i < config().loops; ++i) {
      auto poller = transport::make_asio_poller(clock_, config().spin);
      if (!poller) return step_failure("event loop", poller.error());
      pollers_.push_back(*std::move(poller));
    }
    const storage::PoolOptions pool_shape = pool_options(config());
    // The low half is enough: a slab's name holds the incarnation, the generation only tells the
    // slabs of one daemon from those of the next.
    auto pool =
        storage::Pool::open(pool_shape, *pool_memory_, static_cast<std::uint32_t>(boot_.counter));
    if (!pool) return step_failure("pool", pool.error());
    pool_ = *std::move(pool);
    dram_.emplace(storage::DramTierOptions{.slab_bytes = pool_shape.slab_bytes,
                                           .slabs_max = storage::slabs_max(pool_shape)});
    const storage::StoreOptions shape = store_options(config());
    auto records = pool_memory_->create_records(storage::Store::records_bytes(shape));
    if (!records) return step_failure("records", records.error());
    auto policy =
        storage::make_eviction_policy(config().eviction_policy, storage::Store::records_max(shape));
    auto store = storage::Store::open(shape, *dram_, *records, std::move(policy), clock_);
    if (!store) return step_failure("store", store.error());
    store_ = *std::move(store);
    const MonotonicTime until = clock_.now() + kPopulateWait;
    const Status populated = populate_pool(*pool_, *dram_, *pollers_[0], clock_, until);
    if (!populated) return step_failure("pool", populated.error());
    return std::nullopt;
  }

  std::optional<StartFailure> open_node() {
    NodeOptions options;
    options.lent_max =
        config().lent_max == ByteCount(0) ? lent_max_for(config().dram_size) : config().lent_max;
    options.allow_weak_keys = config().allow_weak_keys;
    options.boot = boot_;
    options.version = CAIRN_VERSION;
    const NodeParts parts{.store = store_.get(),
                          .dram = &*dram_,
                          .pool = pool_.get(),
                          .pool_memory = pool_memory_.get(),
                          .namespaces = namespaces_.get(),
                          .processes = &processes_,
                          .metrics = &metrics_,
                          .clock = &clock_,
                          .random = &random_};
    std::vector<transport::Poller*> pollers;
    for (const auto& poller : pollers_)
      pollers.push_back(poller.get());
    auto node = Node::create(options, parts, pollers);
    if (!node) return step_failure("node", node.error());
    node_ = *std::move(node);
    make_socket_directory(config().listen_unix);
    if (auto failure = listen("listen.unix", "unix:", config().listen_unix)) return failure;
    return listen("listen.tcp", "", config().listen_tcp);
  }

  std::optional<StartFailure> listen(const char* key,
                                     const std::string& prefix,
                                     const std::string& value) {
    if (value.empty()) return std::nullopt;
    const auto address = transport::Address::parse(prefix + value);
    if (!address) return listen_failure(outcome_, key, address.error());
    auto listener = transport::listen(*address);
    if (!listener) return listen_failure(outcome_, key, listener.error());
    const std::string bound = (*listener)->address().to_string();
    if (const Status added = node_->add_listener(*std::move(listener)); !added) {
      return listen_failure(outcome_, key, added.error());
    }
    addresses_.push_back({prefix.empty() ? "tcp" : "unix", bound.substr(prefix.size())});
    return std::nullopt;
  }

  std::optional<StartFailure> open_admin() {
    if (config().admin_listen.empty()) return std::nullopt;
    const auto address = transport::Address::parse(config().admin_listen);
    if (!address) return listen_failure(outcome_, "admin.listen", address.error());
    auto admin = AdminEndpoint::open(*address, *this);
    if (!admin) return listen_failure(outcome_, "admin.listen", admin.error());
    admin_ = *std::move(admin);
    addresses_.push_back({"admin", admin_->address().to_string()});
    return std::nullopt;
  }

  void run_loops() {
    for (std::size_t i = 0; i < pollers_.size(); ++i) {
      loops_.emplace_back([this, i] {
        // Relaxed: a loop may see the end one turn later.
        while (!is_ending_.load(std::memory_order_relaxed)) {
          node_->run_once(i, clock_.now() + kLoopTurn);
        }
      });
    }
  }

  void finish_ready_line() {
    ready_line_ = "ready";
    for (const auto& [name, address] : addresses_)
      ready_line_.append(" ").append(name).append("=").append(address);
    ready_line_ += " pool=" + exact_bytes_text(config().dram_size);
    started_unix_ms_ = clock_.unix_ms();
    is_serving_ = true;
  }

  // Waits on a poller of its own: the others belong to their loops.
  void drain() noexcept {
    const auto poller = transport::make_asio_poller(clock_);
    if (!poller) return;
    std::array<transport::Poller::Event, 1> none{};
    const Deadline deadline = Deadline::after(clock_, kStopDrain);
    while (metrics_.sessions.load(std::memory_order_relaxed) > 0) {
      const MonotonicTime now = clock_.now();
      if (deadline.has_passed(now)) return;
      (*poller)->wait(none, now + kDrainStep);
    }
  }

  const ConfigOutcome outcome_;
  const SystemClock clock_;
  SystemRandom random_;
  PidfdProcess processes_;
  NodeMetrics metrics_;
  wire::BootId boot_;
  std::atomic<bool> is_serving_{false};
  std::atomic<bool> is_ending_{false};
  std::atomic<std::uint64_t> started_unix_ms_{0};
  std::vector<std::pair<std::string, std::string>> addresses_;
  std::string ready_line_;

  std::unique_ptr<storage::PoolMemory> pool_memory_;
  std::optional<DataDirectory> data_;
  std::unique_ptr<NamespaceRegistry> namespaces_;
  std::vector<std::unique_ptr<transport::Poller>> pollers_;
  std::unique_ptr<storage::Pool> pool_;
  std::optional<storage::DramTier> dram_;
  std::unique_ptr<storage::Store> store_;
  std::unique_ptr<Node> node_;
  std::unique_ptr<AdminEndpoint> admin_;
  std::vector<std::thread> loops_;
};

Daemon::Daemon(std::unique_ptr<Impl> impl) noexcept
    : impl_(std::move(impl)) {}

Daemon::~Daemon() = default;

Started<std::unique_ptr<Daemon>> Daemon::start(const ConfigOutcome& outcome) {
  auto impl = std::make_unique<Impl>(outcome);
  if (auto failure = impl->start()) return tl::unexpected(*std::move(failure));
  return std::unique_ptr<Daemon>(new Daemon(std::move(impl)));
}

const std::string& Daemon::ready_line() const noexcept {
  return impl_->ready_line();
}

void Daemon::stop() noexcept {
  impl_->stop();
}

}  // namespace cairn::server
