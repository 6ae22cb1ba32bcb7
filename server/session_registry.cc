#include "server/session_registry.h"

#include "base/check.h"
#include "server/log.h"
#include "server/text.h"

#include <algorithm>
#include <array>
#include <optional>

namespace cairn::server {
namespace {

// The time does not depend on where the first difference is.
bool is_same_secret(const wire::SessionSecret& left, const wire::SessionSecret& right) {
  volatile unsigned difference = 0;
  for (std::size_t i = 0; i < left.bytes.size(); ++i) {
    difference = difference |
                 static_cast<unsigned>(std::to_integer<unsigned>(left.bytes[i] ^ right.bytes[i]));
  }
  return difference == 0;
}

}  // namespace

SessionRegistry::SessionRegistry(const Parts& parts)
    : parts_(parts) {}

SessionRegistry::~SessionRegistry() {
  const MutexLock lock(mutex_);
  CAIRN_CHECK(ended_.empty());  // every connection was detached
  for (const auto& [number, process] : processes_) {
    if (process->descriptor >= 0) parts_.processes->close(process->descriptor);
  }
  for (const WatchChange& change : watch_changes_) {
    if (!change.is_new) parts_.processes->close(change.descriptor);
  }
}

Session::Traits SessionRegistry::new_traits(const Opening& opening) {
  Session::Traits traits;
  do {
    traits.id = parts_.random->next_u64();
  } while (traits.id == 0 || sessions_.contains(traits.id));
  for (std::size_t i = 0; i < traits.secret.bytes.size(); ++i) {
    traits.secret.bytes[i] = static_cast<std::byte>(parts_.random->below(256));
  }
  const bool has_process =
      opening.process_descriptor >= 0 &&
      parts_.processes->is_process_of(opening.process_descriptor, opening.peer) &&
      !parts_.processes->has_exited(opening.process_descriptor);
  traits.is_local = opening.is_local;
  traits.is_mapping = opening.is_local && opening.wants_mapping && has_process;
  traits.pid = opening.peer.pid;
  traits.claimed_pid = opening.claimed_pid;
  traits.name = opening.name;
  return traits;
}

// Owns nothing when the session may not map after all.
storage::OwnedFd SessionRegistry::make_lock(const Session::Traits& traits, std::uint32_t uid) {
  const std::string description = "pid " + std::to_string(traits.pid) + " uid " +
                                  std::to_string(uid) + " (" + traits.name + ") session " +
                                  hex_id(traits.id);
  auto made = parts_.keeper->lock_session(traits.id, description);
  if (made) return *std::move(made);
  log_event(LogLevel::kError,
            "session_lock_failed",
            {{"session", hex_id(traits.id)},
             {"error", error_code_name(made.error().code)},
             {"errno", std::to_string(made.error().sys)}});
  return {};
}

Result<SessionRegistry::Opened> SessionRegistry::open(const Opening& opening) {
  Session::Traits traits;
  bool has_room = false;
  {
    const MutexLock lock(mutex_);
    has_room = sessions_.size() + openings_ < parts_.sessions_max;
    if (has_room) traits = new_traits(opening);
    if (has_room) ++openings_;
  }
  if (!has_room) {
    if (opening.process_descriptor >= 0) parts_.processes->close(opening.process_descriptor);
    return Error{ErrorCode::kNoSpace, 0, "sessions_max"};
  }
  Opened opened;
  if (traits.is_mapping) opened.lock = make_lock(traits, opening.peer.uid);
  traits.is_mapping = opened.lock.get() >= 0;
  EndWork work;
  {
    const MutexLock lock(mutex_);
    --openings_;
    opened.session = add_session(std::move(traits), opening, work);
    parts_.metrics->sessions.store(sessions_.size(), std::memory_order_relaxed);
  }
  finish(work);
  add(parts_.metrics->sessions_opened);
  const Session::Traits& made = opened.session->traits();
  log_event(LogLevel::kInfo,
            "session_opened",
            {{"session", hex_id(made.id)},
             {"client", made.name},
             {"peer", opening.peer.name},
             {"mapping", made.is_mapping ? "yes" : "no"}});
  return opened;
}

Session* SessionRegistry::add_session(Session::Traits traits,
                                      const Opening& opening,
                                      EndWork& work) {
  Process* process = nullptr;
  if (traits.is_mapping) process = claim_process(opening, work);
  const bool is_descriptor_kept =
      process != nullptr && process->descriptor == opening.process_descriptor;
  if (!is_descriptor_kept && opening.process_descriptor >= 0)
    parts_.processes->close(opening.process_descriptor);
  const std::uint64_t id = traits.id;
  LentAccount* const account = process != nullptr ? &process->account : nullptr;
  auto session = std::make_unique<Session>(std::move(traits), account);
  session->process_ = process;
  session->sockets_.push_back(opening.socket);
  if (process != nullptr) process->sessions.push_back(session.get());
  const auto [place, is_new] = sessions_.emplace(id, std::move(session));
  CAIRN_CHECK(is_new);
  return place->second.get();
}

Process* SessionRegistry::find_process(std::uint32_t pid) {
  if (pid == 0) return nullptr;
  for (const auto& [number, process] : processes_) {
    if (process->pid == pid && !process->has_exited) return process.get();
  }
  return nullptr;
}

Process* SessionRegistry::claim_process(const Opening& opening, EndWork& work) {
  Process* const known = find_process(opening.peer.pid);
  if (known != nullptr) {
    if (!parts_.processes->has_exited(known->descriptor)) return known;
    // The number has passed on to another process before the news of the exit came.
    process_exited(*known, work);
  }
  make_room_for_process(work);
  auto process = std::make_unique<Process>();
  process->number = next_process_++;
  process->pid = opening.peer.pid;
  process->descriptor = opening.process_descriptor;
  watch_changes_.push_back({process->number, process->descriptor, true});
  has_watch_changes_.store(true, std::memory_order_release);
  parts_.mail[0]->wake();
  Process* const made = process.get();
  processes_.emplace(made->number, std::move(process));
  return made;
}

void SessionRegistry::make_room_for_process(EndWork& work) {
  if (processes_.size() < kProcessesPerSession * parts_.sessions_max) return;
  Process* oldest = nullptr;
  for (const auto& [number, process] : processes_) {
    if (process->sessions.empty() && (oldest == nullptr || number < oldest->number))
      oldest = process.get();
  }
  if (oldest == nullptr) return;
  work.locks.insert(work.locks.end(), oldest->stale_locks.begin(), oldest->stale_locks.end());
  let_go(*oldest);
  processes_.erase(oldest->number);
}

// Loop 0 stops watching the process and closes its descriptor.
void SessionRegistry::let_go(Process& process) {
  if (process.descriptor < 0) return;
  watch_changes_.push_back({process.number, process.descriptor, false});
  process.descriptor = -1;
  has_watch_changes_.store(true, std::memory_order_release);
  parts_.mail[0]->wake();
}

Result<Session*> SessionRegistry::join(const wire::Join& join,
                                       const SocketPlace& socket,
                                       bool is_local) {
  const MutexLock lock(mutex_);
  const auto found = sessions_.find(join.session);
  if (found == sessions_.end() || !is_same_secret(found->second->traits().secret, join.secret))
    return Error{ErrorCode::kPermission, 0, "session"};
  Session& session = *found->second;
  const bool is_allowed = !session.sockets_.empty() && (is_local || !session.traits().is_mapping);
  if (!is_allowed) return Error{ErrorCode::kPermission, 0, "session"};
  if (session.sockets_.size() >= kSessionSocketsMax)
    return Error{ErrorCode::kNoSpace, 0, "sockets of a session"};
  session.sockets_.push_back(socket);
  return &session;
}

void SessionRegistry::detach(Session& session, const SocketPlace& socket) {
  EndWork work;
  {
    const MutexLock lock(mutex_);
    std::erase(session.sockets_, socket);
    if (session.has_ended()) {
      erase_if_unused(session);
    } else if (session.sockets_.empty()) {
      if (session.lend_count() > 0) {
        orphan(session);
      } else {
        end(session, "client_left", work);
      }
    }
  }
  finish(work);
}

void SessionRegistry::orphan(Session& session) {
  std::size_t lends = 0;
  {
    const MutexLock state(session.mutex_);
    session.quarantined_ = session.lends_.bytes();
    lends = session.lends_.size();
  }
  add(parts_.metrics->quarantined_bytes, session.quarantined_.value());
  log_event(LogLevel::kWarning,
            "session_orphaned",
            {{"session", hex_id(session.traits().id)},
             {"client", session.traits().name},
             {"lends", std::to_string(lends)},
             {"quarantined_bytes", std::to_string(session.quarantined_.value())}});
}

void SessionRegistry::end(Session& session, const char* reason, EndWork& work) {
  std::vector<Lend> lends;
  ByteCount bytes;
  {
    const MutexLock state(session.mutex_);
    session.has_ended_.store(true, std::memory_order_release);
    bytes = session.lends_.bytes();
    lends = session.lends_.take_all();
  }
  session.account().sub(bytes);
  parts_.metrics->lent_bytes.fetch_sub(bytes.value(), std::memory_order_relaxed);
  parts_.metrics->quarantined_bytes.fetch_sub(session.quarantined_.value(),
                                              std::memory_order_relaxed);
  add(parts_.metrics->sessions_ended);
  work.ended.push_back({session.traits().id, reason, lends.size(), bytes});
  work.lends.insert(work.lends.end(), lends.begin(), lends.end());
  work.sockets.insert(work.sockets.end(), session.sockets_.begin(), session.sockets_.end());
  put_lock_aside(session, work);
  const auto place = sessions_.find(session.traits().id);
  CAIRN_CHECK(place != sessions_.end());
  ended_.push_back(std::move(place->second));
  sessions_.erase(place);
  parts_.metrics->sessions.store(sessions_.size(), std::memory_order_relaxed);
  erase_if_unused(session);
}

// The client may keep slabs mapped under the lock of a session that is over, so the lock stays as
// long as its process lives.
void SessionRegistry::put_lock_aside(Session& session, EndWork& work) {
  Process* const process = session.process_;
  if (process == nullptr) return;
  process->stale_locks.push_back(session.traits().id);
  const std::size_t keep = process->has_exited ? 0 : kProcessLocksMax;
  while (process->stale_locks.size() > keep) {
    work.locks.push_back(process->stale_locks.front());
    process->stale_locks.erase(process->stale_locks.begin());
  }
}

void SessionRegistry::erase_if_unused(Session& session) {
  if (!session.sockets_.empty()) return;
  Process* const process = session.process_;
  if (process != nullptr) {
    std::erase(process->sessions, &session);
    if (process->has_exited && process->sessions.empty()) processes_.erase(process->number);
  }
  std::erase_if(ended_, [&session](const auto& ended) { return ended.get() == &session; });
}

void SessionRegistry::process_exited(Process& process, EndWork& work) {
  process.has_exited = true;
  work.locks.insert(work.locks.end(), process.stale_locks.begin(), process.stale_locks.end());
  process.stale_locks.clear();
  let_go(process);
  log_event(LogLevel::kInfo,
            "process_gone",
            {{"pid", std::to_string(process.pid)},
             {"sessions", std::to_string(process.sessions.size())},
             {"reclaimed_bytes", std::to_string(process.account.bytes().value())}});
  const std::vector<Session*> sessions = process.sessions;
  const std::uint64_t number = process.number;
  for (Session* const session : sessions) {
    if (!session->has_ended()) end(*session, "process_exited", work);
  }
  // Ending the last one may have taken the process with it.
  const auto left = processes_.find(number);
  if (left != processes_.end() && left->second->sessions.empty()) processes_.erase(left);
}

bool SessionRegistry::may_inherit(const Session& heir, const Session& old) {
  if (!heir.traits().is_mapping) return false;
  if (heir.process_ == old.process_) return true;
  // Processes of another PID namespace have no number here; each session then has its own entry.
  return heir.traits().pid == 0 && old.traits().pid == 0 &&
         heir.traits().claimed_pid == old.traits().claimed_pid;
}

bool SessionRegistry::lies_at(const Lend& lend, const wire::HeldLend& place) const {
  std::array<storage::SlabExtent, kExtentsMax> extents;
  parts_.dram->slab_extents(lend.block.extents, extents);
  return extents[0].slab == place.slab && extents[0].generation == place.slab_generation &&
         extents[0].offset == place.offset;
}

std::vector<Lend> SessionRegistry::take_held(Session& old,
                                             Session& heir,
                                             const wire::Resume& request,
                                             std::span<std::uint8_t> kept) {
  std::vector<Lend> taken;
  taken.reserve(request.held.size());
  const MutexLock state(old.mutex_);
  for (std::size_t i = 0; i < request.held.size(); ++i) {
    const Lend* const lend = old.lends_.find(request.held[i].lend);
    if (lend == nullptr || !lies_at(*lend, request.held[i])) continue;
    if (heir.claim_lends(1) == 0) continue;
    taken.push_back(*lend);
    old.lends_.erase(lend->id);
    kept[i] = 1;
  }
  return taken;
}

Status SessionRegistry::resume(Session& heir,
                               const wire::Resume& request,
                               std::span<std::uint8_t> kept) {
  CAIRN_CHECK(kept.size() == request.held.size());
  EndWork work;
  std::size_t moved = 0;
  {
    const MutexLock lock(mutex_);
    const auto found = sessions_.find(request.session);
    if (found == sessions_.end() || heir.has_ended()) return {};
    Session& old = *found->second;
    const bool is_allowed = &old != &heir && is_same_secret(old.traits().secret, request.secret) &&
                            may_inherit(heir, old);
    if (!is_allowed) return Error{ErrorCode::kPermission, 0, "resume"};
    const std::vector<Lend> lends = take_held(old, heir, request, kept);
    ByteCount bytes;
    for (const Lend& lend : lends)
      bytes += lend.bytes();
    // The client holds these frames whatever the limit says now.
    heir.account().add(bytes);
    old.account().sub(bytes);
    CAIRN_CHECK(heir.add_lends(lends));
    moved = lends.size();
    end(old, "resumed", work);
  }
  finish(work);
  log_event(LogLevel::kInfo,
            "session_resumed",
            {{"session", hex_id(heir.traits().id)},
             {"old_session", hex_id(request.session)},
             {"listed", std::to_string(request.held.size())},
             {"kept", std::to_string(moved)}});
  return {};
}

bool SessionRegistry::is_lent_elsewhere(const Session& own, LendId lend) const {
  const MutexLock lock(mutex_);
  return std::any_of(sessions_.begin(), sessions_.end(), [&](const auto& entry) {
    return entry.second.get() != &own && entry.second->has_lend(lend);
  });
}

SessionRegistry::Figures SessionRegistry::figures() const {
  const MutexLock lock(mutex_);
  Figures out{.sessions = sessions_.size(), .orphaned = 0, .processes = processes_.size()};
  for (const auto& [id, session] : sessions_) {
    if (session->sockets_.empty()) ++out.orphaned;
  }
  return out;
}

void SessionRegistry::finish(EndWork& work) {
  for (const Lend& lend : work.lends) {
    if (lend.kind == LendKind::kRead) {
      parts_.store->unpin(lend.block.ref);
    } else {
      parts_.store->abort(lend.block.ref);
    }
  }
  for (const std::uint64_t lock : work.locks)
    parts_.keeper->unlock_session(lock);
  for (const SocketPlace& socket : work.sockets)
    parts_.mail[socket.loop]->post_close(socket.token);
  for (const EndWork::Ended& ended : work.ended) {
    log_event(LogLevel::kInfo,
              "session_ended",
              {{"session", hex_id(ended.session)},
               {"reason", ended.reason},
               {"lends", std::to_string(ended.lends)},
               {"released_bytes", std::to_string(ended.bytes.value())}});
  }
}

}  // namespace cairn::server
