// What all loops of a node share.
#pragma once

#include "server/lends.h"
#include "server/loop_mail.h"
#include "server/node.h"
#include "server/pool_keeper.h"
#include "server/session_registry.h"

#include <atomic>
#include <cstddef>
#include <memory>
#include <span>
#include <vector>

namespace cairn::server {

// Connections at a time, as a multiple of NodeOptions::sessions_max; more are closed at accept.
inline constexpr std::size_t kConnectionsPerSession = 16;

// Any thread.
struct NodeCore {
  NodeCore(const NodeOptions& node_options,
           const NodeParts& node_parts,
           std::span<transport::Poller* const> pollers);

  bool is_serving() const noexcept {
    // Relaxed: a request may see the change one turn later.
    return !is_paused.load(std::memory_order_relaxed) &&
           !is_stopping.load(std::memory_order_relaxed);
  }
  ByteCount frame_bytes(const storage::ExtentList& extents) const noexcept;
  // Of a block of `length` bytes, before it has extents.
  ByteCount frame_bytes(std::uint32_t length) const noexcept;
  // Ends lends that were taken out of their session: frames go back to the store.
  void end_lends(std::span<const Lend> lends, LentAccount& account) noexcept;
  // As try_add on `account`, and counted in the node's metric.
  bool try_lend(LentAccount& account, ByteCount bytes) noexcept;
  void unlend(LentAccount& account, ByteCount bytes) noexcept;

  const NodeOptions options;
  const NodeParts parts;
  std::vector<std::unique_ptr<LoopMail>> mail;
  PoolKeeper keeper;
  SessionRegistry registry;
  LendIds lend_ids;
  std::atomic<bool> is_paused{false};
  std::atomic<bool> is_stopping{false};
  std::atomic<std::size_t> connections{0};
};

}  // namespace cairn::server
