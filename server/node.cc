#include "server/node.h"

#include "base/check.h"
#include "server/loop.h"
#include "server/node_core.h"
#include "server/stats_json.h"

#include <utility>
#include <vector>

namespace cairn::server {
namespace {

bool is_complete(const NodeParts& parts) {
  return parts.store != nullptr && parts.dram != nullptr && parts.pool != nullptr &&
         parts.pool_memory != nullptr && parts.namespaces != nullptr &&
         parts.processes != nullptr && parts.metrics != nullptr && parts.clock != nullptr &&
         parts.random != nullptr;
}

// The name of the first option that is out of range, or nullptr.
const char* first_bad(const NodeOptions& options) {
  const ByteCount batch_min = ByteCount(kHeaderBytes.value() * 2);
  if (options.lent_max < batch_min) return "lent_max";
  if (options.sessions_max == 0) return "sessions_max";
  if (options.tcp_ping <= Milliseconds(0)) return "tcp_ping";
  if (options.tcp_timeout <= options.tcp_ping) return "tcp_timeout";
  if (options.housekeeping <= Milliseconds(0)) return "housekeeping";
  return nullptr;
}

}  // namespace

class Node::Impl {
 public:
  Impl(const NodeOptions& options,
       const NodeParts& parts,
       std::span<transport::Poller* const> pollers)
      : core(options, parts, pollers) {
    for (const NamespaceEntry& entry : parts.namespaces->all())
      parts.store->set_epoch(entry.slot, entry.epoch);
    for (std::size_t i = 0; i < pollers.size(); ++i)
      loops.push_back(std::make_unique<Loop>(core, *pollers[i], i));
  }

  NodeCore core;
  std::vector<std::unique_ptr<Loop>> loops;
};

Result<std::unique_ptr<Node>> Node::create(const NodeOptions& options,
                                           const NodeParts& parts,
                                           std::span<transport::Poller* const> pollers) {
  CAIRN_CHECK(is_complete(parts));
  CAIRN_CHECK(!pollers.empty());
  if (const char* const bad = first_bad(options)) return Error{ErrorCode::kInvalid, 0, bad};
  return std::unique_ptr<Node>(new Node(std::make_unique<Impl>(options, parts, pollers)));
}

Node::Node(std::unique_ptr<Impl> impl) noexcept
    : impl_(std::move(impl)) {}

Node::~Node() = default;

Status Node::add_listener(std::unique_ptr<transport::Listener> listener) {
  return impl_->loops.front()->add_listener(std::move(listener));
}

std::size_t Node::run_once(std::size_t loop, MonotonicTime until) noexcept {
  CAIRN_CHECK(loop < impl_->loops.size());
  return impl_->loops[loop]->run_once(until);
}

void Node::begin_stop() noexcept {
  // Relaxed, here and below: a request may see the change one turn later.
  impl_->core.is_stopping.store(true, std::memory_order_relaxed);
  for (const auto& mail : impl_->core.mail)
    mail->wake();
}

void Node::set_paused(bool paused) noexcept {
  impl_->core.is_paused.store(paused, std::memory_order_relaxed);
}

std::string Node::stats_json() const {
  return node_stats_json(impl_->core);
}

}  // namespace cairn::server
