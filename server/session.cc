#include "server/session.h"

#include "base/check.h"

#include <algorithm>
#include <utility>

namespace cairn::server {

Session::Session(Traits traits, LentAccount* account)
    : traits_(std::move(traits)),
      account_(account) {}

std::size_t Session::claim_lends(std::size_t count) noexcept {
  std::size_t held = claims_.load(std::memory_order_relaxed);
  std::size_t taken = 0;
  do {
    taken = std::min<std::size_t>(count, wire::kSessionLendsMax - held);
  } while (!claims_.compare_exchange_weak(held, held + taken, std::memory_order_relaxed));
  return taken;
}

void Session::give_back_claims(std::size_t count) noexcept {
  CAIRN_CHECK(claims_.fetch_sub(count, std::memory_order_relaxed) >= count);
}

bool Session::add_lends(std::span<const Lend> lends) {
  const MutexLock lock(mutex_);
  if (has_ended()) return false;
  for (const Lend& lend : lends)
    lends_.insert(lend);
  return true;
}

void Session::take_lends(std::span<const LendId> ids,
                         std::optional<LendKind> kind,
                         std::span<Lend> out) {
  CAIRN_CHECK(out.size() == ids.size());
  std::size_t taken = 0;
  const MutexLock lock(mutex_);
  for (std::size_t i = 0; i < ids.size(); ++i) {
    const Lend* const lend = lends_.find(ids[i]);
    out[i] = lend != nullptr ? *lend : Lend{};
    if (lend == nullptr || (kind && lend->kind != *kind)) continue;
    lends_.erase(ids[i]);
    ++taken;
  }
  give_back_claims(taken);
}

bool Session::has_lend(LendId id) const {
  const MutexLock lock(mutex_);
  return lends_.find(id) != nullptr;
}

std::size_t Session::lend_count() const {
  const MutexLock lock(mutex_);
  return lends_.size();
}

bool Session::add_namespace(const NamespaceDigest& digest, storage::NamespaceSlot slot) {
  const MutexLock lock(mutex_);
  if (namespaces_.contains(digest)) return true;
  if (namespaces_.size() >= wire::kSessionNamespacesMax) return false;
  namespaces_.emplace(digest, slot);
  return true;
}

std::optional<storage::NamespaceSlot> Session::find_namespace(const NamespaceDigest& digest) const {
  const MutexLock lock(mutex_);
  const auto found = namespaces_.find(digest);
  if (found == namespaces_.end()) return std::nullopt;
  return found->second;
}

}  // namespace cairn::server
