// A host of the simulated world: what outlives a daemon. Slabs and session locks are real (memfds
// of SimMachine), while the descriptors that name them travel through SimNetwork, so who holds them
// is decided by the simulated processes.
#pragma once

#include "storage/key_value.h"
#include "storage/pool_memory.h"
#include "tests/support/faulty_key_value.h"
#include "tests/support/sim_network.h"
#include "tests/support/sim_pool_memory.h"

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

namespace cairn::testing {

// Outlives every daemon and every mapping on it.
class SimHost {
 public:
  explicit SimHost(SimNetwork& network);

  SimNetwork& network() noexcept { return network_; }
  SimMachine& machine() noexcept { return machine_; }
  storage::KeyValue& key_value() noexcept { return faulty_key_value_; }
  FaultyKeyValue& key_value_faults() noexcept { return faulty_key_value_; }

  // A mapping of its own of the slab that a descriptor of kind kSlab with `subject` names. It stays
  // when the daemon goes.
  std::span<std::byte> map_slab(std::uint64_t subject);
  static void unmap_slab(std::span<std::byte> bytes);

  // Real locks are let go of whose descriptor no simulated process holds any more.
  void drop_free_locks();

 private:
  friend class SimHostMemory;

  struct SlabFile {
    storage::OwnedFd file;
    std::size_t bytes = 0;
  };

  SimNetwork& network_;
  SimMachine machine_;
  const std::unique_ptr<storage::KeyValue> key_value_;
  FaultyKeyValue faulty_key_value_{*key_value_};
  std::uint64_t next_slab_ = 1;
  std::map<std::uint64_t, SlabFile> slabs_;
  std::map<std::uint64_t, storage::OwnedFd> locks_;
};

// The pool memory of one daemon on a host: SimPoolMemory, with simulated descriptors.
class SimHostMemory final : public storage::PoolMemory {
 public:
  // Errors: kLocked while another daemon lives.
  static Result<std::unique_ptr<SimHostMemory>> start(SimHost& host, SimProcessId daemon);
  ~SimHostMemory() override;
  SimHostMemory(const SimHostMemory&) = delete;
  SimHostMemory& operator=(const SimHostMemory&) = delete;
  // The daemon is killed: nothing is tidied up.
  void crash();

  storage::PageKind page_kind() const noexcept override { return inner_->page_kind(); }
  Result<storage::SlabMemory> create_slab(std::uint32_t slab, ByteCount bytes) noexcept override;
  Status populate(std::uint32_t slab, ByteCount offset, ByteCount bytes) noexcept override {
    return inner_->populate(slab, offset, bytes);
  }
  void discard_slab(std::uint32_t slab) noexcept override;
  Result<storage::RecordsMemory> create_records(ByteCount bytes) noexcept override {
    return inner_->create_records(bytes);
  }
  Status populate_records(ByteCount offset, ByteCount bytes) noexcept override {
    return inner_->populate_records(offset, bytes);
  }
  Result<storage::OwnedFd> create_session_lock(std::uint64_t id,
                                               std::string_view description) noexcept override;
  void remove_session_lock(std::uint64_t id) noexcept override;
  Result<storage::PredecessorSlabs> reclaim_predecessors() noexcept override;

 private:
  SimHostMemory(SimHost& host, SimProcessId daemon, std::unique_ptr<SimPoolMemory> inner);
  void close_sent_locks();

  SimHost& host_;
  SimProcessId daemon_;
  std::unique_ptr<SimPoolMemory> inner_;
  std::map<std::uint32_t, std::uint64_t> subjects_;  // of slabs, by number
  std::vector<int> sent_locks_;  // the daemon's own copies, closed once they have been sent
};

}  // namespace cairn::testing
