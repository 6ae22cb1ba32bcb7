// The first half of a start: the pool's directory, whether the pool fits the machine, the pool.
#pragma once

#include "base/units.h"
#include "server/config.h"
#include "server/start_failure.h"
#include "storage/frame_tier.h"
#include "storage/pool.h"
#include "storage/pool_memory.h"
#include "storage/store.h"
#include "transport/channel.h"

#include <cstdint>
#include <memory>

namespace cairn::server {

// Memory of the daemon beside slabs and records: key-value store, sockets, replies.
inline constexpr ByteCount kDaemonMemory = 128_MiB;

// A pool in several slabs can be served before all of it is resident.
storage::PoolOptions pool_options(const Config& config) noexcept;
storage::StoreOptions store_options(const Config& config) noexcept;

// Locks pool.dir, removes what dead daemons left in it and refuses a pool that would not fit into
// what is left of the machine.
Started<std::unique_ptr<storage::PoolMemory>> open_pool_memory(const ConfigOutcome& outcome,
                                                               std::uint64_t incarnation);

// Lets the pool populate until it is complete or `until` has come, adding its slabs to `dram`.
// Errors: as Pool::step(); the slabs so far are added.
Status populate_pool(storage::Pool& pool,
                     storage::DramTier& dram,
                     transport::Poller& poller,
                     const Clock& clock,
                     MonotonicTime until);

}  // namespace cairn::server
