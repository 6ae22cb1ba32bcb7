// Room for a batch of new blocks, as reserve, commit (for its next batch) and put_inline ask for
// it.
#pragma once

#include "server/handlers.h"
#include "storage/store.h"
#include "transport/wire/messages.h"

#include <cstdint>
#include <optional>
#include <span>

namespace cairn::server {

struct ReserveBatch {
  storage::Scope scope;
  const wire::Placement& placement;
  std::span<const BlockDigest> digests;
  std::span<const std::uint32_t> lengths;
  std::size_t room = 0;  // reservations at most
};

// Fills scratch.reserve_outcomes, one a key; what is kOk is reserved and in the session's account.
// A chain is cut at its first key that is neither kOk nor kExists. The branch for the next batch.
std::optional<BlockDigest> reserve_batch(Call& call, const ReserveBatch& batch);

}  // namespace cairn::server
