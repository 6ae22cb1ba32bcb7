// A client process that does what chance tells it to, over the real SDK, and checks every byte and
// every ticket it gets.
#pragma once

#include "client/client.h"
#include "tests/sim/block_model.h"
#include "tests/support/sim_client.h"
#include "tests/support/sim_world.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace cairn::testing {

// What happened in a world, so that a world in which nothing does is noticed.
struct SimTally {
  std::array<std::uint64_t, kBlockStatusCount> keys{};
  std::uint64_t blocks_read = 0;
  std::uint64_t views_checked = 0;
  std::uint64_t commits = 0;
  std::uint64_t purges = 0;
  std::uint64_t reconnects = 0;

  void count(BlockStatus status) { ++keys[static_cast<std::size_t>(status)]; }
  std::uint64_t of(BlockStatus status) const { return keys[static_cast<std::size_t>(status)]; }
};

class SimUser final : public SimResident {
 public:
  struct Traits {
    std::string name;
    bool maps_pool = true;
    std::uint32_t queues = 1;
    SimTally* tally = nullptr;
  };
  // What went wrong is told to `report`, at once.
  using Report = std::function<void(const std::string&)>;

  SimUser(SimWorld& world, BlockModel& model, Traits traits, Report report);
  // The process ends in an orderly way, if it was not killed.
  ~SimUser() override;
  SimUser(const SimUser&) = delete;
  SimUser& operator=(const SimUser&) = delete;

  // Connects and opens the namespaces; false when the daemon cannot be had just now.
  bool begin();
  bool has_begun() const noexcept { return client_ != nullptr; }
  SimProcessId process() const noexcept { return process_.id(); }
  bool is_running() const { return process_.is_running(); }
  bool is_stopped() const { return process_.state() == SimProcessState::kStopped; }

  // One thing drawn at random.
  void act();
  // As kill -9.
  void kill();
  void turn() override;
  std::optional<MonotonicTime> next_due() override;

  // Everything held is still right; nothing that should have ended has not.
  void check();
  // Lets go of all views and reservations.
  void let_go();
  std::size_t under_way() const noexcept { return operations_.size(); }

 private:
  enum class Kind : std::uint8_t { kPut, kGet, kViews, kReserve, kCommit, kLookup, kKeys };
  struct Operation;
  struct HeldView {
    ModelKey key;
    client::BlockView view;
  };
  struct HeldReservation {
    ModelKey key;
    std::uint64_t body = 0;
    std::vector<std::byte> bytes;
    client::BlockReservation reservation;
    std::uint32_t queue = 0;
  };
  struct Name {
    client::Namespace handle;
    bool is_stale = false;
  };

  // ---- what it may do ----
  void put();
  void get();
  void get_views();
  void reserve();
  void go_on_with_reservation();
  void release_view();
  void look_up();
  void touch_keys();
  void cancel();
  void purge();
  void reopen();

  std::unique_ptr<Operation> new_operation(Kind kind, std::size_t keys);
  void draw_keys(Operation& operation, std::size_t count);
  std::size_t draw_length(std::uint32_t number);
  client::CallOptions draw_call(Operation& operation);
  template <typename Request>
  void submit(std::unique_ptr<Operation> operation, const Request& request);
  void submitted(std::unique_ptr<Operation> operation, Result<client::Ticket> ticket);

  // ---- what came of it ----
  void completed(std::uint32_t queue, const client::Completion& completion);
  void done(Operation& operation, const client::Completion& completion);
  void got(Operation& operation);
  void got_views(Operation& operation);
  void reserved(Operation& operation);
  void put_done(Operation& operation);
  void check_bytes(const ModelKey& key, std::span<const std::span<const std::byte>> pieces);
  void note(const Operation& operation, BlockStatus status);
  void fail(const std::string& what);

  SimWorld& world_;
  BlockModel& model_;
  const Traits traits_;
  const Report report_;
  SimClientProcess process_;
  std::unique_ptr<client::Client> client_;
  std::vector<std::unique_ptr<client::Queue>> queues_;
  std::vector<Name> names_;
  std::vector<std::unique_ptr<Operation>> operations_;
  std::vector<HeldView> views_;
  std::vector<HeldReservation> reservations_;
};

}  // namespace cairn::testing
