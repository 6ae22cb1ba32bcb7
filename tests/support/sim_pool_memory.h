// A machine's pool directory in memory: slabs are memfds, session locks are real locks on memfds,
// so a test's client is alive exactly as long as it keeps the descriptor it was given. What a
// daemon leaves behind stays in the SimMachine for the next one to find.
#pragma once

#include "base/mutex.h"
#include "storage/pool_memory.h"

#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace cairn::testing {

// What the machine refuses. A test may change it at any time.
struct SimPoolFaults {
  // Bytes of slabs that the machine can hold; populating beyond them is kNoSpace.
  ByteCount space{std::numeric_limits<std::uint64_t>::max()};
  // The number of populate() calls that succeed; later ones fail with kIo.
  std::uint64_t populates_max = std::numeric_limits<std::uint64_t>::max();
  // The number of create_slab() calls that succeed; later ones fail with kIo.
  std::uint64_t creates_max = std::numeric_limits<std::uint64_t>::max();
};

class SimPoolMemory;

// Outlives every SimPoolMemory on it. One at a time may live: the directory has a lock.
class SimMachine {
 public:
  explicit SimMachine(storage::PageKind page_kind = storage::PageKind::kSmall)
      : page_kind_(page_kind) {}

  SimPoolFaults faults;

  // Errors: kLocked while another daemon lives.
  Result<std::unique_ptr<SimPoolMemory>> start_daemon();
  // Leaves `bytes` of slabs of an earlier daemon behind, held by a client that lives until
  // release_predecessor(). The answer names it.
  std::uint64_t add_predecessor(ByteCount bytes, std::string_view holder);
  void release_predecessor(std::uint64_t id);
  // Bytes of slabs that are made resident, of every daemon.
  ByteCount resident() const;

 private:
  friend class SimPoolMemory;

  struct Session {
    std::uint64_t id = 0;
    std::string description;
    storage::OwnedFd file;
  };
  struct Leftover {
    std::uint64_t id = 0;
    ByteCount bytes;
    ByteCount resident;
    std::vector<Session> sessions;
    storage::OwnedFd scripted_holder;
  };

  storage::PageKind page_kind_;
  bool has_daemon_ = false;
  std::uint64_t next_id_ = 1;
  std::vector<Leftover> leftovers_;
  mutable Mutex mutex_;                          // populate() comes from several threads
  ByteCount resident_ CAIRN_GUARDED_BY(mutex_);  // of slabs
  ByteCount records_resident_ CAIRN_GUARDED_BY(mutex_);
  std::uint64_t populates_ CAIRN_GUARDED_BY(mutex_) = 0;
};

class SimPoolMemory final : public storage::PoolMemory {
 public:
  explicit SimPoolMemory(SimMachine& machine);
  // An orderly stop: slabs that a session may map are left behind, others go.
  ~SimPoolMemory() override;
  SimPoolMemory(const SimPoolMemory&) = delete;
  SimPoolMemory& operator=(const SimPoolMemory&) = delete;
  // The daemon is killed: nothing is tidied up. No call but the destructor may follow.
  void crash();

  storage::PageKind page_kind() const noexcept override { return machine_.page_kind_; }
  Result<storage::SlabMemory> create_slab(std::uint32_t slab, ByteCount bytes) noexcept override;
  Status populate(std::uint32_t slab, ByteCount offset, ByteCount bytes) noexcept override;
  void discard_slab(std::uint32_t slab) noexcept override;
  Result<storage::RecordsMemory> create_records(ByteCount bytes) noexcept override;
  Status populate_records(ByteCount offset, ByteCount bytes) noexcept override;
  Result<storage::OwnedFd> create_session_lock(std::uint64_t id,
                                               std::string_view description) noexcept override;
  void remove_session_lock(std::uint64_t id) noexcept override;
  Result<storage::PredecessorSlabs> reclaim_predecessors() noexcept override;

 private:
  struct SimSlab {
    std::uint32_t number = 0;
    std::span<std::byte> bytes;
    storage::OwnedFd file;
    ByteCount resident;
  };
  void stop(bool is_orderly);
  void unmap_all();

  SimMachine& machine_;
  bool has_stopped_ = false;
  std::vector<SimSlab> slabs_;
  std::vector<std::uint32_t> used_numbers_;
  std::span<std::byte> records_;
  ByteCount records_resident_;
  std::vector<SimMachine::Session> sessions_;
};

}  // namespace cairn::testing
