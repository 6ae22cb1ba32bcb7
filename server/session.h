// A client's session: what it may touch, what it has opened, and who it is. Its sockets may lie on
// several loops, so its state is behind a mutex that is uncontended in practice.
//
// Lock order: SessionRegistry's mutex, then a session's (one at a time). PoolKeeper's and a loop's
// mail come after them, the store's own last; no call on the store is made under the first two.
#pragma once

#include "base/block_key.h"
#include "base/mutex.h"
#include "server/lends.h"
#include "storage/store.h"
#include "transport/channel.h"
#include "transport/wire/messages.h"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

namespace cairn::server {

// A connection: its loop, and its name there. Never reused.
struct SocketPlace {
  std::size_t loop = 0;
  transport::Poller::Token token = 0;
  friend bool operator==(const SocketPlace&, const SocketPlace&) noexcept = default;
};

struct Process;

// Any thread, but for what the registry's mutex guards. Lives until it has ended and its last
// socket has been detached.
class Session {
 public:
  struct Traits {
    std::uint64_t id = 0;
    wire::SessionSecret secret;
    bool is_local = false;    // made on a unix socket
    bool is_mapping = false;  // may hold lends
    std::uint32_t pid = 0;    // as the kernel says, 0: unknown
    std::uint32_t claimed_pid = 0;
    std::string name;  // for the log
  };
  // `account` outlives the session; nullptr: it has its own.
  Session(Traits traits, LentAccount* account);
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;
  ~Session() = default;

  const Traits& traits() const noexcept { return traits_; }
  LentAccount& account() noexcept { return account_ != nullptr ? *account_ : own_account_; }
  // Its client is gone or has a successor: sockets that are left are closed.
  bool has_ended() const noexcept { return has_ended_.load(std::memory_order_acquire); }

  // ---- lends ----
  // Room for up to `count` more lends within wire::kSessionLendsMax: how many were claimed. Each is
  // used by add_lends() or given back.
  std::size_t claim_lends(std::size_t count) noexcept;
  void give_back_claims(std::size_t count) noexcept;
  // False: the session has ended; nothing was added and the claims are gone.
  [[nodiscard]] bool add_lends(std::span<const Lend> lends);
  // out[i] is the lend that ids[i] names (id 0: unknown). Those of `kind`, or of any for nullopt,
  // are taken out; others stay.
  void take_lends(std::span<const LendId> ids, std::optional<LendKind> kind, std::span<Lend> out);
  bool has_lend(LendId id) const;
  std::size_t lend_count() const;

  // ---- namespaces ----
  // False: the table is full (wire::kSessionNamespacesMax).
  [[nodiscard]] bool add_namespace(const NamespaceDigest& digest, storage::NamespaceSlot slot);
  std::optional<storage::NamespaceSlot> find_namespace(const NamespaceDigest& digest) const;

 private:
  friend class SessionRegistry;

  const Traits traits_;
  LentAccount own_account_;
  LentAccount* const account_;
  std::atomic<bool> has_ended_{false};
  // Claims and lends; relaxed, a bound that orders nothing.
  std::atomic<std::size_t> claims_{0};

  mutable Mutex mutex_;
  LendTable lends_ CAIRN_GUARDED_BY(mutex_);
  std::unordered_map<NamespaceDigest, storage::NamespaceSlot> namespaces_ CAIRN_GUARDED_BY(mutex_);

  // Guarded by the registry's mutex.
  Process* process_ = nullptr;
  std::vector<SocketPlace> sockets_;
  ByteCount quarantined_;
};

}  // namespace cairn::server
