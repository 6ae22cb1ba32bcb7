#include "client/connection.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <utility>

namespace cairn::client {
namespace {

constexpr unsigned kQueueShift = 40;
// How long poll() may be held up by a connect of its own accord.
constexpr Milliseconds kReconnectTimeout(50);
// How long a queue waits for another that is making the session before it makes one itself.
constexpr Milliseconds kMakerPatience(1000);
constexpr Milliseconds kMakerPoll(1);
constexpr std::uint32_t kDoublingsMax = 16;
constexpr wire::Limits kOwnLimits;

wire::Limits smaller(const wire::Limits& limits) {
  return {.message_bytes = std::min(limits.message_bytes, kOwnLimits.message_bytes),
          .lookup_keys = std::min(limits.lookup_keys, kOwnLimits.lookup_keys),
          .batch_keys = std::min(limits.batch_keys, kOwnLimits.batch_keys),
          .requests_in_flight = std::min(limits.requests_in_flight, kOwnLimits.requests_in_flight),
          .namespaces = std::min(limits.namespaces, kOwnLimits.namespaces),
          .inline_bytes = std::min(limits.inline_bytes, kOwnLimits.inline_bytes),
          .block_bytes = std::min(limits.block_bytes, kOwnLimits.block_bytes),
          .session_lends = std::min(limits.session_lends, kOwnLimits.session_lends)};
}

bool are_usable(const wire::Limits& limits) {
  return limits.lookup_keys > 0 && limits.batch_keys > 0 && limits.requests_in_flight > 0 &&
         limits.inline_bytes > 0 && limits.block_bytes > 0 && limits.session_lends > 0;
}

Error refusal_error(const wire::HelloReply& reply) {
  switch (reply.context.status) {
    case BlockStatus::kForbidden:
      return {ErrorCode::kPermission, 0, "the daemon refused the hello"};
    case BlockStatus::kInvalid:
      return {reply.version == 0 ? ErrorCode::kVersion : ErrorCode::kInvalid, 0, "hello"};
    default:
      return {ErrorCode::kPeerGone, 0, "the daemon takes no session now"};
  }
}

}  // namespace

Connection::Connection(Session& session, std::uint32_t queue_number)
    : session_(session),
      random_(session.random_u64()),
      next_id_((std::uint64_t{queue_number} << kQueueShift) + 1) {}

Connection::~Connection() = default;

void Connection::step(MonotonicTime now) {
  lost_channel_.reset();
  if (state_ == State::kDown) {
    if (now >= next_attempt_) connect(now);
  } else if (state_ != State::kReady && now >= handshake_due_) {
    lose({ErrorCode::kTimeout, 0, "hello"});
  }
}

void Connection::connect(MonotonicTime now) {
  if (!waiting_since_) waiting_since_ = now;
  plan_ = session_.plan(generation_, now < *waiting_since_ + kMakerPatience);
  if (plan_.step == ConnectPlan::Step::kWait) {
    next_attempt_ = now + kMakerPoll;
    return;
  }
  waiting_since_.reset();
  const bool is_first = generation_ == 0;
  const Milliseconds timeout =
      is_first ? session_.options().connect_timeout
               : std::min(session_.options().connect_timeout, kReconnectTimeout);
  auto channel = session_.world().connector().connect(session_.address(), timeout);
  if (!channel) {
    last_error_ = channel.error();
    schedule_retry(session_.world().clock().now());
    return;
  }
  channel_ = std::move(*channel);
  ++socket_serial_;
  handshake_due_ = session_.world().clock().now() + session_.options().connect_timeout;
  const Status said = plan_.step == ConnectPlan::Step::kJoin ? join() : say_hello();
  if (!said) lose(said.error());
}

Status Connection::say_hello() {
  state_ = State::kHello;
  const ClientOptions& options = session_.options();
  wire::Hello hello;
  hello.pid = static_cast<std::uint32_t>(::getpid());
  hello.numa_node = options.numa_node;
  hello.wants_mapping = options.map_pool && channel_->is_local();
  hello.client_name = options.name;
  hello.token = options.token;
  wire::encode(hello, take_request_id(), writer_);
  if (!channel_->is_local()) return channel_->send(writer_.finish());
  CAIRN_TRY(const int own, session_.world().process().open_own());
  const Descriptor pidfd(session_.world().process(), own);
  const int fds[] = {own};
  return channel_->send(writer_.finish(), fds);
}

Status Connection::join() {
  state_ = State::kJoin;
  wire::encode(
      wire::Join{.session = plan_.key.id, .secret = plan_.key.secret}, take_request_id(), writer_);
  return channel_->send(writer_.finish());
}

std::optional<wire::FrameView> Connection::receive() {
  while (channel_) {
    auto received = channel_->receive();
    if (!received) {
      lose(received.error());
      return std::nullopt;
    }
    if (!received->has_value()) return std::nullopt;
    const wire::FrameView frame = (*received)->frame;
    if (!handle(frame)) return frame;
  }
  return std::nullopt;
}

bool Connection::handle(const wire::FrameView& frame) {
  switch (frame.type) {
    case wire::MessageType::kPing:
      wire::encode(wire::Pong{}, frame.request_id, writer_);
      send(writer_.finish());
      return true;
    case wire::MessageType::kSlab:
      take_slab(frame);
      return true;
    case wire::MessageType::kHelloReply:
      take_hello_reply(frame);
      return true;
    case wire::MessageType::kJoinReply:
      take_join_reply(frame);
      return true;
    case wire::MessageType::kResumeReply:
      take_resume_reply(frame);
      return true;
    case wire::MessageType::kBindReply:
      return true;
    default:
      if (state_ == State::kReady) {
        failures_ = 0;
        return false;
      }
      lose({ErrorCode::kCorrupt, 0, "a reply before the hello's"});
      return true;
  }
}

void Connection::take_hello_reply(const wire::FrameView& frame) {
  if (state_ != State::kHello) return lose({ErrorCode::kCorrupt, 0, "hello reply"});
  if (!wire::decode(frame, hello_reply_)) return lose({ErrorCode::kCorrupt, 0, "hello reply"});
  if (hello_reply_.context.status != BlockStatus::kOk) {
    refusal_ = hello_reply_.message;
    return lose(refusal_error(hello_reply_));
  }
  if (hello_reply_.version != wire::kProtocolVersion) {
    return lose({ErrorCode::kVersion, 0, "hello reply"});
  }
  if (!are_usable(hello_reply_.limits)) return lose({ErrorCode::kCorrupt, 0, "hello limits"});
  hello_reply_.limits = smaller(hello_reply_.limits);
  hello_reply_.is_mapping_allowed =
      hello_reply_.is_mapping_allowed && session_.options().map_pool && channel_->is_local();
  Descriptor lock(session_.world().process(), channel_->take_descriptor());
  std::vector<wire::Resume> resumes;
  if (!session_.publish(plan_.generation, hello_reply_, std::move(lock), resumes)) {
    return move_on();
  }
  generation_ = plan_.generation + 1;
  was_remade_ = true;
  state_ = State::kResume;
  send_resumes(resumes);
  if (resumes.empty() && channel_) become_ready();
}

void Connection::send_resumes(const std::vector<wire::Resume>& resumes) {
  for (const wire::Resume& resume : resumes) {
    wire::encode(resume, take_request_id(), writer_);
    if (!send(writer_.finish())) return lose({ErrorCode::kPeerGone, 0, "resume"});
  }
}

void Connection::take_resume_reply(const wire::FrameView& frame) {
  wire::ResumeReply reply;
  if (state_ != State::kResume || !wire::decode(frame, reply)) {
    return lose({ErrorCode::kCorrupt, 0, "resume reply"});
  }
  const auto taken = session_.resumed(generation_, reply, back_);
  if (!taken) return lose(taken.error());
  if (session_.is_resuming(generation_)) return;
  become_ready();
}

void Connection::take_join_reply(const wire::FrameView& frame) {
  wire::JoinReply reply;
  if (state_ != State::kJoin || !wire::decode(frame, reply)) {
    return lose({ErrorCode::kCorrupt, 0, "join reply"});
  }
  if (reply.context.status != BlockStatus::kOk) {
    session_.invalidate(plan_.generation);
    return lose({ErrorCode::kPeerGone, 0, "join"});
  }
  generation_ = plan_.generation;
  become_ready();
}

void Connection::take_slab(const wire::FrameView& frame) {
  wire::SlabNotice notice;
  Descriptor file(session_.world().process(), channel_->take_descriptor());
  if (!wire::decode(frame, notice)) return lose({ErrorCode::kCorrupt, 0, "slab notice"});
  if (state_ == State::kHello) return lose({ErrorCode::kCorrupt, 0, "slab before the hello's"});
  const std::uint32_t generation = state_ == State::kJoin ? plan_.generation : generation_;
  const auto added = session_.add_slab(generation, notice, std::move(file));
  // A session that has moved on has no use for it.
  if (!added && added.error().code != ErrorCode::kPeerGone) lose(added.error());
}

void Connection::become_ready() {
  state_ = State::kReady;
  limits_ = session_.limits();
  const ServerInfo info = session_.info();
  is_mapped_ = info.is_mapped;
  pool_bytes_ = info.pool_bytes.value();
  // Also after a join: requests on this socket may come before the binds on the maker's.
  bind_namespaces();
}

void Connection::bind_namespaces() {
  wire::Bind bind;
  bind.context.remaining_ms = static_cast<std::uint32_t>(session_.options().deadline.count());
  for (const Namespace& name_space : session_.namespaces()) {
    bind.context.name_space = name_space.digest;
    bind.context.epoch = name_space.epoch;
    wire::encode(bind, take_request_id(), writer_);
    if (!send(writer_.finish())) return;
  }
}

bool Connection::send(std::span<const std::byte> frame) {
  if (!channel_) return false;
  const Status sent = channel_->send(frame);
  if (!sent && sent.error().code != ErrorCode::kBusy) lose(sent.error());
  return sent.has_value();
}

void Connection::flush() {
  if (!channel_ || channel_->queued() == ByteCount()) return;
  const Status flushed = channel_->flush();
  if (!flushed) lose(flushed.error());
}

void Connection::lose(Error error) {
  if (!channel_) return;
  last_error_ = error;
  if (state_ == State::kResume) session_.invalidate(generation_);
  has_lost_ = has_lost_ || state_ == State::kReady;
  state_ = State::kDown;
  lost_channel_ = std::move(channel_);
  schedule_retry(session_.world().clock().now());
}

void Connection::move_on() {
  has_lost_ = has_lost_ || state_ == State::kReady;
  state_ = State::kDown;
  lost_channel_ = std::move(channel_);
  next_attempt_ = session_.world().clock().now();
}

void Connection::schedule_retry(MonotonicTime now) {
  // The first attempt after a working session is made at once.
  if (failures_++ == 0) {
    next_attempt_ = now;
    return;
  }
  const ClientOptions& options = session_.options();
  const Nanoseconds pause = std::min<Nanoseconds>(
      options.backoff_max,
      options.backoff_min * (std::int64_t{1} << std::min(failures_ - 2, kDoublingsMax)));
  const auto half = static_cast<std::uint64_t>(pause.count() / 2);
  next_attempt_ = now + Nanoseconds(static_cast<std::int64_t>(half + random_.below(half + 1)));
}

std::optional<MonotonicTime> Connection::next_due() const {
  if (state_ == State::kReady) return std::nullopt;
  return state_ == State::kDown ? next_attempt_ : handshake_due_;
}

bool Connection::wait(MonotonicTime until) {
  transport::Connector& connector = session_.world().connector();
  if (channel_) return connector.wait(*channel_, until);
  connector.pause(until);
  return false;
}

}  // namespace cairn::client
