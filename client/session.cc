#include "client/session.h"

#include "client/slab_mapper.h"

#include <algorithm>
#include <utility>

namespace cairn::client {
namespace {

transport::Address parsed(const std::string& text) {
  auto address = transport::Address::parse(text);
  return address ? std::move(*address) : transport::Address{};
}

}  // namespace

World::World(const Environment& environment, Nanoseconds spin)
    : environment_(environment) {
  if (environment_.clock == nullptr) {
    clock_ = std::make_unique<SystemClock>();
    environment_.clock = clock_.get();
  }
  if (environment_.random == nullptr) {
    random_ = std::make_unique<SystemRandom>();
    environment_.random = random_.get();
  }
  if (environment_.connector == nullptr) {
    connector_ = transport::make_connector(*environment_.clock, spin);
    environment_.connector = connector_.get();
  }
  if (environment_.mapper == nullptr) {
    mapper_ = std::make_unique<SystemSlabMapper>();
    environment_.mapper = mapper_.get();
  }
  if (environment_.process == nullptr) {
    process_ = transport::make_process_watch();
    environment_.process = process_.get();
  }
}

Session::Session(ClientOptions options, const Environment& environment)
    : options_(std::move(options)),
      address_(parsed(options_.server)),
      world_(environment, options_.spin),
      copy_pool_(options_.copy_threads > 0 ? std::make_unique<CopyPool>(options_.copy_threads)
                                           : nullptr),
      slabs_(world_.mapper()) {}

Session::~Session() = default;

std::uint64_t Session::random_u64() {
  const MutexLock lock(mutex_);
  return world_.random().next_u64();
}

std::uint32_t Session::enter() noexcept {
  const MutexLock lock(mutex_);
  ++users_;
  return queues_made_++;
}

std::vector<GivenBack> Session::leave() {
  const MutexLock lock(mutex_);
  std::vector<GivenBack> back;
  if (--users_ > 0) return back;
  lends_.for_each([&](const HeldFrame& frame) {
    if (!frame.is_local) back.push_back({frame.lend, frame.is_reserved});
  });
  return back;
}

ConnectPlan Session::plan(std::uint32_t lost, bool is_patient) {
  const MutexLock lock(mutex_);
  ConnectPlan plan{.step = ConnectPlan::Step::kHello, .generation = generation(), .key = {}};
  if (phase_ == Phase::kResuming && is_patient) plan.step = ConnectPlan::Step::kWait;
  if (phase_ == Phase::kReady && lost != plan.generation) {
    plan.step = ConnectPlan::Step::kJoin;
    plan.key = key_;
  }
  return plan;
}

bool Session::publish(std::uint32_t generation,
                      const wire::HelloReply& reply,
                      Descriptor lock,
                      std::vector<wire::Resume>& resumes) {
  const MutexLock guard(mutex_);
  const std::uint32_t now = this->generation();
  if (generation != now) return false;
  if (old_keys_.size() == kOldSessionsMax) old_keys_.erase(old_keys_.begin());
  if (now > 0) old_keys_.push_back(key_);
  if (now > 0 && hello_.boot == reply.boot) {
    slabs_.replace_lock(std::move(lock));
  } else {
    slabs_.begin_daemon(std::move(lock));
  }
  key_ = {.id = reply.session, .secret = reply.secret};
  hello_ = reply;
  resumes = make_resumes();
  answers_left_ = resumes.size();
  phase_ = resumes.empty() ? Phase::kReady : Phase::kResuming;
  // Release: whoever sees the new number takes the lock before it uses anything of the session.
  generation_.store(now + 1, std::memory_order_release);
  return true;
}

std::vector<wire::Resume> Session::make_resumes() {
  wire::Resume resume;
  listed_.clear();
  was_reserved_.clear();
  lends_.for_each([&](const HeldFrame& frame) {
    if (frame.is_local) return;
    resume.held.push_back(slabs_.describe(frame));
    listed_.push_back(frame.lend);
    was_reserved_.push_back(frame.is_reserved);
  });
  kept_.assign(listed_.size(), false);
  std::vector<wire::Resume> resumes;
  for (const SessionKey& key : old_keys_) {
    resume.session = key.id;
    resume.secret = key.secret;
    resumes.push_back(resume);
  }
  return resumes;
}

Status Session::resumed(std::uint32_t generation,
                        const wire::ResumeReply& reply,
                        std::vector<GivenBack>& back) {
  const MutexLock lock(mutex_);
  if (generation != this->generation() || phase_ != Phase::kResuming) return {};
  if (reply.context.status == BlockStatus::kOk) {
    if (reply.kept.size() != listed_.size()) return Error{ErrorCode::kCorrupt, 0, "resume reply"};
    for (std::size_t i = 0; i < listed_.size(); ++i)
      kept_[i] = kept_[i] || reply.kept[i] != 0;
  }
  if (--answers_left_ == 0) finish_resume(back);
  return {};
}

void Session::finish_resume(std::vector<GivenBack>& back) {
  for (std::size_t i = 0; i < listed_.size(); ++i) {
    HeldFrame* const frame = lends_.find(listed_[i]);
    // Given back while the resume was under way, so the daemon now lends it to nobody.
    if (frame == nullptr && kept_[i]) back.push_back({listed_[i], was_reserved_[i]});
    if (frame != nullptr && !kept_[i]) frame->is_local = true;
  }
  listed_.clear();
  old_keys_.clear();
  phase_ = Phase::kReady;
}

bool Session::is_resuming(std::uint32_t generation) const {
  const MutexLock lock(mutex_);
  return generation == this->generation() && phase_ == Phase::kResuming;
}

void Session::invalidate(std::uint32_t generation) {
  const MutexLock lock(mutex_);
  if (generation == this->generation() && phase_ != Phase::kNone) phase_ = Phase::kBroken;
}

void Session::remember(const Namespace& name_space) {
  const MutexLock lock(mutex_);
  const auto known = std::ranges::find(namespaces_, name_space.digest, &Namespace::digest);
  if (known != namespaces_.end()) {
    *known = name_space;
  } else if (namespaces_.size() < wire::kSessionNamespacesMax) {
    namespaces_.push_back(name_space);
  }
}

std::vector<Namespace> Session::namespaces() const {
  const MutexLock lock(mutex_);
  return namespaces_;
}

Status Session::add_slab(std::uint32_t generation,
                         const wire::SlabNotice& notice,
                         Descriptor file) {
  const MutexLock lock(mutex_);
  if (generation != this->generation()) return Error{ErrorCode::kPeerGone, 0, "session"};
  return slabs_.add(notice, std::move(file));
}

Result<HeldFrame> Session::place(const wire::Grant& grant,
                                 const Lent& lent,
                                 std::uint32_t length,
                                 FramePieces& out) {
  HeldFrame frame{.lend = grant.lend, .is_reserved = lent.is_reserved};
  // decode() has checked that the run lies inside the reply.
  CAIRN_TRY(
      out,
      slabs_.find(lent.extents.subspan(grant.extent_first, grant.extent_count), length, frame));
  if (!lends_.insert(frame)) return Error{ErrorCode::kCorrupt, 0, "lend id given twice"};
  slabs_.hold(frame);
  return frame;
}

Status Session::adopt(std::uint32_t generation, const Lent& lent, std::span<FramePieces> out) {
  const MutexLock lock(mutex_);
  if (generation != this->generation()) return Error{ErrorCode::kPeerGone, 0, "session"};
  adopted_.clear();
  Status status;
  for (std::size_t i = 0; i < lent.grants.size() && status; ++i) {
    const wire::Grant& grant = lent.grants[i];
    out[i] = FramePieces{};
    if ((grant.status == BlockStatus::kOk) != (grant.lend != 0)) {
      status = Error{ErrorCode::kCorrupt, 0, "grant without a lend"};
    } else if (grant.lend != 0) {
      const auto frame =
          place(grant, lent, lent.lengths.empty() ? grant.length : lent.lengths[i], out[i]);
      if (frame) adopted_.push_back(*frame);
      if (!frame) status = frame.error();
    }
  }
  if (status && lends_.size() > wire::kSessionLendsMax) {
    status = Error{ErrorCode::kCorrupt, 0, "more lends than a session may have"};
  }
  if (status) return {};
  for (const HeldFrame& frame : adopted_) {
    lends_.erase(frame.lend);
    slabs_.drop(frame);
  }
  return status;
}

LendEnd Session::give_back(std::uint64_t lend) {
  const MutexLock lock(mutex_);
  const HeldFrame* const held = lends_.find(lend);
  if (held == nullptr) return LendEnd::kUnknown;
  const HeldFrame frame = *held;
  lends_.erase(lend);
  slabs_.drop(frame);
  // A lend that is in a resume under way is settled when the answer comes (finish_resume).
  return frame.is_local || phase_ == Phase::kResuming ? LendEnd::kLocal : LendEnd::kRemote;
}

void Session::defer(const GivenBack& back) {
  const MutexLock lock(mutex_);
  deferred_.push_back(back);
  has_deferred_.store(true, std::memory_order_relaxed);
}

std::vector<GivenBack> Session::take_deferred() {
  if (!has_deferred_.load(std::memory_order_relaxed)) return {};
  const MutexLock lock(mutex_);
  has_deferred_.store(false, std::memory_order_relaxed);
  return std::exchange(deferred_, {});
}

LendEnd Session::reservation(std::uint64_t lend) const {
  const MutexLock lock(mutex_);
  const HeldFrame* const frame = lends_.find(lend);
  if (frame == nullptr || !frame->is_reserved) return LendEnd::kUnknown;
  return frame->is_local ? LendEnd::kLocal : LendEnd::kRemote;
}

ServerInfo Session::info() const {
  const MutexLock lock(mutex_);
  const std::uint32_t made = generation();
  return {.session = key_.id,
          .boot_counter = hello_.boot.counter,
          .boot_incarnation = hello_.boot.incarnation,
          .pool_bytes = ByteCount(hello_.pool_bytes),
          .is_mapped = hello_.is_mapping_allowed,
          .reconnects = made > 0 ? made - 1 : 0};
}

wire::Limits Session::limits() const {
  const MutexLock lock(mutex_);
  return hello_.limits;
}

bool Session::allows_weak_keys() const {
  const MutexLock lock(mutex_);
  return hello_.allow_weak_keys;
}

}  // namespace cairn::client
