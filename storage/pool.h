// The pool: the daemon's DRAM as slabs that clients map. It creates and populates slabs up to the
// configured size, minus what an earlier daemon's clients still hold, and grows as they let go.
#pragma once

#include "base/result.h"
#include "base/units.h"
#include "storage/pool_memory.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace cairn::storage {

struct PoolOptions {
  // Bytes of slabs, header pages included; 64 MiB to 16 TiB. Default 1 GiB.
  ByteCount size = 1_GiB;
  // Bytes of one slab, a power of two, 64 MiB to 1 GiB; the last slab may be smaller.
  ByteCount slab_bytes = 1_GiB;
  // Threads that make pages resident, 0 to 64; 0 populates inside step() (tests, simulation).
  std::uint32_t populate_threads = 2;

  // The name of the first field that is out of range, or nullopt.
  std::optional<const char*> validate() const noexcept;
};

// Slab numbers stay below it: the slabs of `options.size` and some that are smaller because an
// earlier daemon's clients held memory when they were made.
std::uint32_t slabs_max(const PoolOptions& options) noexcept;

struct Slab {
  std::uint32_t number = 0;      // index in Pool::slabs(), never reused
  std::uint32_t generation = 0;  // changes with every daemon start
  std::span<std::byte> bytes;
  int fd = -1;
};

// One thread's, except that populating threads run inside.
class Pool {
 public:
  // `memory` outlives the pool. Errors: kInvalid, kNoSpace, kIo. Returns before the slabs are
  // populated.
  static Result<std::unique_ptr<Pool>> open(const PoolOptions& options,
                                            PoolMemory& memory,
                                            std::uint32_t generation) noexcept;
  ~Pool();
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;

  // Slabs that became ready (populated) since the last call, each once. Also reclaims predecessors'
  // slabs and starts new slabs in the room they leave. Never waits for the populating threads.
  // Errors, each told once: kNoSpace, kIo: the pool stays as large as it is until a predecessor's
  // memory comes back.
  Result<std::vector<Slab>> step() noexcept;
  // True when everything that is configured is ready.
  bool is_complete() const noexcept;
  const PredecessorSlabs& predecessors() const noexcept;
  std::span<const Slab> ready_slabs() const noexcept;

 private:
  class Impl;
  explicit Pool(std::unique_ptr<Impl> impl) noexcept;
  std::unique_ptr<Impl> impl_;
};

}  // namespace cairn::storage
