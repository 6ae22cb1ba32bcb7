// What all queues of a client share: the session with the daemon, the slabs it announced, the
// frames it lent, and the options. Sockets come and go (connection.h); a session is made by one of
// them with a hello, the others join it, and after a loss the next one makes a new session and
// takes over what is still held.
#pragma once

#include "base/block_status.h"
#include "base/mutex.h"
#include "client/client.h"
#include "client/copy_pool.h"
#include "client/descriptor.h"
#include "client/fork_guard.h"
#include "client/frame_copy.h"
#include "client/lend_table.h"
#include "client/slab_map.h"
#include "transport/channel.h"
#include "transport/wire/messages.h"

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace cairn::client {

// The world with every gap filled by the machine's own parts.
class World {
 public:
  World(const Environment& environment, Nanoseconds spin);
  const Clock& clock() const noexcept { return *environment_.clock; }
  Random& random() const noexcept { return *environment_.random; }
  transport::Connector& connector() const noexcept { return *environment_.connector; }
  SlabMapper& mapper() const noexcept { return *environment_.mapper; }
  transport::ProcessWatch& process() const noexcept { return *environment_.process; }

 private:
  std::unique_ptr<Clock> clock_;
  std::unique_ptr<Random> random_;
  std::unique_ptr<transport::Connector> connector_;
  std::unique_ptr<SlabMapper> mapper_;
  std::unique_ptr<transport::ProcessWatch> process_;
  Environment environment_;
};

struct SessionKey {
  std::uint64_t id = 0;
  wire::SessionSecret secret;
};

// How a queue that has no socket gets one.
struct ConnectPlan {
  enum class Step : std::uint8_t { kHello, kJoin, kWait };
  Step step = Step::kHello;
  std::uint32_t generation = 0;  // of the session when the plan was made
  SessionKey key;                // kJoin
};

// Where a lend stands when it is given back.
enum class LendEnd : std::uint8_t {
  kUnknown,  // not held
  kLocal,    // nobody else has to know
  kRemote,   // the daemon has to be told
};

// Sessions that are resumed at once, when resumes were lost on the way.
inline constexpr std::size_t kOldSessionsMax = 8;

struct GivenBack {
  std::uint64_t lend = 0;
  bool is_reserved = false;
};

// Thread-safe.
class Session {
 public:
  Session(ClientOptions options, const Environment& environment);
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  const ClientOptions& options() const noexcept { return options_; }
  const transport::Address& address() const noexcept { return address_; }
  const World& world() const noexcept { return world_; }
  bool is_child() const noexcept { return guard_.is_child(); }

  std::uint64_t random_u64();
  // False: the system gave fewer than the options ask for.
  bool has_copy_threads() const noexcept {
    return !copy_pool_ || copy_pool_->has(options_.copy_threads);
  }
  // nullptr without copy threads.
  CopyPool* copy_pool() const noexcept { return copy_pool_.get(); }

  // ---- users ----
  std::uint32_t enter() noexcept;  // a number for the queue, from 0
  // What is still lent, when the caller was the last user.
  std::vector<GivenBack> leave();

  // ---- making and joining ----
  // Changes whenever a socket has made a new session; 0 before the first.
  std::uint32_t generation() const noexcept { return generation_.load(std::memory_order_acquire); }
  // `lost`: the generation of the socket that was lost, 0 if there was none. `is_patient`: the
  // caller can wait for another queue that is making a session.
  ConnectPlan plan(std::uint32_t lost, bool is_patient);
  // The daemon answered the hello of a socket whose plan had `generation`. False: another queue was
  // first, join it. True: the caller is the maker; `resumes` are to be sent, in order, and each
  // answer given to resumed().
  bool publish(std::uint32_t generation,
               const wire::HelloReply& reply,
               Descriptor lock,
               std::vector<wire::Resume>& resumes);
  // One answer; its lends in the order of the resume. After the last: the session is ready, and
  // `back` has what the caller must give back to the daemon. Errors: kCorrupt (another number of
  // lends than asked).
  Status resumed(std::uint32_t generation,
                 const wire::ResumeReply& reply,
                 std::vector<GivenBack>& back);
  bool is_resuming(std::uint32_t generation) const;
  // The maker's socket was lost before the last answer, or a join was refused.
  void invalidate(std::uint32_t generation);

  // ---- namespaces ----
  void remember(const Namespace& name_space);
  std::vector<Namespace> namespaces() const;

  // ---- slabs and lends ----
  // Errors: as SlabMap::add; kPeerGone when the session has moved on.
  Status add_slab(std::uint32_t generation, const wire::SlabNotice& notice, Descriptor file);
  // Takes what a reply lends: out[i] is where grant i lies (nothing for those without a lend).
  // `lengths`: of the payloads, or empty to take the grants'. All or nothing. Errors: kPeerGone
  // (the session has moved on), kCorrupt (grants that cannot be), kIo, kNoSpace (not mapped).
  struct Lent {
    std::span<const wire::Grant> grants;
    std::span<const wire::WireExtent> extents;
    std::span<const std::uint32_t> lengths;
    bool is_reserved = false;
  };
  Status adopt(std::uint32_t generation, const Lent& lent, std::span<FramePieces> out);
  // The memory may not be touched any more.
  LendEnd give_back(std::uint64_t lend);
  // For the next queue that sends: what the daemon has to be told.
  void defer(const GivenBack& back);
  std::vector<GivenBack> take_deferred();
  // How a commit of `lend` would find it: kUnknown also when it is not lent for writing.
  LendEnd reservation(std::uint64_t lend) const;

  ServerInfo info() const;
  wire::Limits limits() const;
  bool allows_weak_keys() const;

 private:
  enum class Phase : std::uint8_t { kNone, kResuming, kReady, kBroken };

  Result<HeldFrame> place(const wire::Grant& grant,
                          const Lent& lent,
                          std::uint32_t length,
                          FramePieces& out) CAIRN_REQUIRES(mutex_);
  std::vector<wire::Resume> make_resumes() CAIRN_REQUIRES(mutex_);
  void finish_resume(std::vector<GivenBack>& back) CAIRN_REQUIRES(mutex_);

  const ClientOptions options_;
  transport::Address address_;
  const World world_;
  const ForkGuard guard_;
  const std::unique_ptr<CopyPool> copy_pool_;
  std::atomic<std::uint32_t> generation_{0};

  // Relaxed: a hint that saves the lock; the lock guards what it speaks of.
  std::atomic<bool> has_deferred_{false};

  mutable Mutex mutex_;  // no other lock is taken inside
  Phase phase_ CAIRN_GUARDED_BY(mutex_) = Phase::kNone;
  SessionKey key_ CAIRN_GUARDED_BY(mutex_);
  wire::HelloReply hello_ CAIRN_GUARDED_BY(mutex_);
  // Not known to be taken over yet; at most kOldSessionsMax.
  std::vector<SessionKey> old_keys_ CAIRN_GUARDED_BY(mutex_);
  std::vector<std::uint64_t> listed_ CAIRN_GUARDED_BY(mutex_);
  std::vector<bool> was_reserved_ CAIRN_GUARDED_BY(mutex_);  // one a listed lend
  std::vector<bool> kept_ CAIRN_GUARDED_BY(mutex_);          // the same
  std::size_t answers_left_ CAIRN_GUARDED_BY(mutex_) = 0;
  std::vector<Namespace> namespaces_ CAIRN_GUARDED_BY(mutex_);
  SlabMap slabs_ CAIRN_GUARDED_BY(mutex_);
  LendTable lends_ CAIRN_GUARDED_BY(mutex_);
  std::vector<HeldFrame> adopted_ CAIRN_GUARDED_BY(mutex_);
  std::vector<GivenBack> deferred_ CAIRN_GUARDED_BY(mutex_);
  std::uint32_t users_ CAIRN_GUARDED_BY(mutex_) = 0;
  std::uint32_t queues_made_ CAIRN_GUARDED_BY(mutex_) = 0;
};

}  // namespace cairn::client
