// Which sessions there are, the processes behind them, and how both end. Lends of a session whose
// sockets are all gone stay lent until the client resumes or its process has exited: a lost socket
// and the time that passes mean nothing.
#pragma once

#include "base/mutex.h"
#include "base/random.h"
#include "base/result.h"
#include "server/lends.h"
#include "server/loop_mail.h"
#include "server/node.h"
#include "server/pool_keeper.h"
#include "server/session.h"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace cairn::server {

inline constexpr std::size_t kSessionSocketsMax = 64;
// Locks of ended sessions that a living process may still map slabs under; the oldest goes first.
inline constexpr std::size_t kProcessLocksMax = 64;
// Processes known at a time, as a multiple of NodeOptions::sessions_max: a process without a
// session stays known while it lives, for the locks of the sessions that it had.
inline constexpr std::size_t kProcessesPerSession = 4;

// A client process that may map the pool. Guarded by the registry's mutex but for `account`.
struct Process {
  std::uint64_t number = 0;  // never reused
  std::uint32_t pid = 0;     // as the kernel says, 0: unknown
  int descriptor = -1;
  bool has_exited = false;
  LentAccount account;
  std::vector<Session*> sessions;          // also ended ones whose sockets are not closed yet
  std::vector<std::uint64_t> stale_locks;  // of its ended sessions, oldest first
};

// Any thread, but for what is said to be loop 0's. Lock order: session.h.
class SessionRegistry {
 public:
  struct Parts {
    storage::Store* store = nullptr;
    storage::Tier* dram = nullptr;
    ClientProcess* processes = nullptr;
    NodeMetrics* metrics = nullptr;
    Random* random = nullptr;
    PoolKeeper* keeper = nullptr;
    std::span<const std::unique_ptr<LoopMail>> mail;
    std::uint32_t sessions_max = 0;
  };
  explicit SessionRegistry(const Parts& parts);
  ~SessionRegistry();
  SessionRegistry(const SessionRegistry&) = delete;
  SessionRegistry& operator=(const SessionRegistry&) = delete;

  struct Opening {
    SocketPlace socket;
    bool is_local = false;
    bool wants_mapping = false;
    transport::Channel::Peer peer;
    std::uint32_t claimed_pid = 0;
    int process_descriptor = -1;  // owned by the call; -1: none came
    std::string name;
  };
  struct Opened {
    Session* session = nullptr;
    storage::OwnedFd lock;  // for the client, when the session may map
  };
  // Errors: kNoSpace (sessions_max).
  Result<Opened> open(const Opening& opening);
  // Errors: kPermission (no such session, another secret, no socket of it is left, or a mapping
  // session over TCP), kNoSpace (kSessionSocketsMax).
  Result<Session*> join(const wire::Join& join, const SocketPlace& socket, bool is_local);
  // The connection at `socket` is closing and does not touch `session` any more.
  void detach(Session& session, const SocketPlace& socket);
  // Moves what `request` lists of the old session to `heir` and ends the old one. kept[i] is set
  // for what was moved. Errors: kPermission (another secret, or another process's session).
  Status resume(Session& heir, const wire::Resume& request, std::span<std::uint8_t> kept);

  // Whether a session other than `own` holds `lend`.
  bool is_lent_elsewhere(const Session& own, LendId lend) const;

  struct Figures {
    std::size_t sessions = 0;
    std::size_t orphaned = 0;
    std::size_t processes = 0;
  };
  Figures figures() const;

  // ---- loop 0's ----
  // Watches new processes in `poller` and lets go of those that are done with.
  void update_watches(transport::Poller& poller);
  // Before `poller` goes.
  void stop_watching(transport::Poller& poller);
  void process_is_readable(std::uint64_t number);
  // Of processes that could not be watched.
  void check_unwatched();
  static constexpr transport::Poller::Token kProcessTokens = std::uint64_t{1} << 63U;

 private:
  // What follows from ending sessions and is done without the registry's mutex.
  struct EndWork {
    struct Ended {
      std::uint64_t session = 0;
      const char* reason = "";
      std::size_t lends = 0;
      ByteCount bytes;
    };
    std::vector<Lend> lends;
    std::vector<SocketPlace> sockets;
    std::vector<std::uint64_t> locks;
    std::vector<Ended> ended;
  };
  struct WatchChange {
    std::uint64_t number = 0;
    int descriptor = -1;
    bool is_new = false;
  };

  Session::Traits new_traits(const Opening& opening) CAIRN_REQUIRES(mutex_);
  storage::OwnedFd make_lock(const Session::Traits& traits, std::uint32_t uid);
  Session* add_session(Session::Traits traits, const Opening& opening, EndWork& work)
      CAIRN_REQUIRES(mutex_);
  Process* claim_process(const Opening& opening, EndWork& work) CAIRN_REQUIRES(mutex_);
  Process* find_process(std::uint32_t pid) CAIRN_REQUIRES(mutex_);
  void make_room_for_process(EndWork& work) CAIRN_REQUIRES(mutex_);
  void let_go(Process& process) CAIRN_REQUIRES(mutex_);
  void process_exited(Process& process, EndWork& work) CAIRN_REQUIRES(mutex_);
  void orphan(Session& session) CAIRN_REQUIRES(mutex_);
  void end(Session& session, const char* reason, EndWork& work) CAIRN_REQUIRES(mutex_);
  void put_lock_aside(Session& session, EndWork& work) CAIRN_REQUIRES(mutex_);
  void erase_if_unused(Session& session) CAIRN_REQUIRES(mutex_);
  static bool may_inherit(const Session& heir, const Session& old);
  std::vector<Lend> take_held(Session& old,
                              Session& heir,
                              const wire::Resume& request,
                              std::span<std::uint8_t> kept);
  bool lies_at(const Lend& lend, const wire::HeldLend& place) const;
  void finish(EndWork& work);

  const Parts parts_;
  mutable Mutex mutex_;
  std::unordered_map<std::uint64_t, std::unique_ptr<Session>> sessions_ CAIRN_GUARDED_BY(mutex_);
  // Ended, with sockets that are not closed yet.
  std::vector<std::unique_ptr<Session>> ended_ CAIRN_GUARDED_BY(mutex_);
  std::unordered_map<std::uint64_t, std::unique_ptr<Process>> processes_ CAIRN_GUARDED_BY(mutex_);
  std::uint64_t next_process_ CAIRN_GUARDED_BY(mutex_) = 1;
  std::size_t openings_ CAIRN_GUARDED_BY(mutex_) = 0;  // sessions that are being made
  std::vector<WatchChange> watch_changes_ CAIRN_GUARDED_BY(mutex_);
  // Tells loop 0 without the mutex that there are changes.
  std::atomic<bool> has_watch_changes_{false};

  // Loop 0's: the descriptors that its poller watches, by process.
  std::unordered_map<std::uint64_t, int> watched_;
};

}  // namespace cairn::server
