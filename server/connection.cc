#include "server/connection.h"

#include "base/check.h"
#include "server/handlers.h"
#include "server/log.h"
#include "server/text.h"

#include <algorithm>
#include <string>
#include <utility>

namespace cairn::server {

Connection::Connection(NodeCore& core,
                       Scratch& scratch,
                       std::unique_ptr<transport::Channel> channel,
                       const SocketPlace& place,
                       MonotonicTime now)
    : core_(core),
      scratch_(scratch),
      channel_(std::move(channel)),
      place_(place),
      opened_(now),
      heard_(now),
      pinged_(now) {}

Connection::~Connection() {
  gets_.clear();
  puts_.clear();
  if (session_ != nullptr) core_.registry.detach(*session_, place_);
}

Connection::Turn Connection::run(MonotonicTime now) {
  Turn turn;
  if (!is_drained() && !channel_->flush()) is_broken_ = true;
  if (is_telling_ || has_news()) tell_slabs();
  answer_frames(turn, now);
  const bool has_data = send_inline_data(now);
  const bool is_sent = is_closing_ && is_drained();
  turn.is_over = is_broken_ || is_sent;
  turn.has_more = turn.has_more || has_data;
  return turn;
}

void Connection::answer_frames(Turn& turn, MonotonicTime& now) {
  while (!is_broken_ && !is_closing_ && !is_telling_) {
    is_parked_ = channel_->queued() > (is_parked_ ? kResumeBelow : kParkAbove);
    if (is_parked_) return;
    if (turn.frames == kFramesPerTurn) {
      turn.has_more = true;
      return;
    }
    const auto received = channel_->receive();
    if (!received) return receive_failed(received.error());
    if (!received->has_value()) return;
    ++turn.frames;
    heard_ = now;
    if (answer((*received)->frame, now) == Answer::kOver) return;
  }
}

Connection::Answer Connection::answer(const wire::FrameView& frame, MonotonicTime& now) {
  if (session_ != nullptr && session_->has_ended()) {
    is_broken_ = true;
    return Answer::kOver;
  }
  if (has_news()) tell_slabs();
  Call call{.core = core_, .scratch = scratch_, .connection = *this, .frame = frame, .now = now};
  const Handled handled = dispatch(call);
  now = call.now;
  if (handled == Handled::kMalformed) malformed("message");
  if (handled == Handled::kClose) is_closing_ = true;
  return handled == Handled::kAnswered ? Answer::kGoOn : Answer::kOver;
}

void Connection::receive_failed(const Error& error) noexcept {
  if (error.code == ErrorCode::kPeerGone) {
    is_broken_ = true;
    return;
  }
  if (error.code == ErrorCode::kVersion && session_ == nullptr)
    add(core_.parts.metrics->hello_rejected_version);
  malformed(error.what);
}

void Connection::malformed(const char* what) noexcept {
  is_broken_ = true;
  add(core_.parts.metrics->frames_malformed);
  log_event(LogLevel::kWarning,
            "connection_closed_malformed",
            {{"peer", channel_->peer().name},
             {"session", session_ != nullptr ? hex_id(session_->traits().id) : "none"},
             {"what", what}});
}

bool Connection::send(std::span<const std::byte> frame, std::span<const int> fds) noexcept {
  // The queue has room by kParkAbove, so any failure is the socket's.
  if (!channel_->send(frame, fds)) is_broken_ = true;
  return !is_broken_;
}

bool Connection::has_news() const noexcept {
  return session_ != nullptr && session_->traits().is_mapping &&
         core_.keeper.ready() != slabs_told_;
}

void Connection::tell_slabs() noexcept {
  if (session_ == nullptr || !session_->traits().is_mapping) return;
  const std::size_t ready = core_.keeper.ready();
  is_telling_ = false;
  while (!is_broken_ && slabs_told_ < ready) {
    if (channel_->queued() > kNoticeQueueMax) {
      is_telling_ = true;
      return;
    }
    const PoolKeeper::Notice notice = core_.keeper.notice(slabs_told_);
    wire::encode(notice.message, 0, scratch_.writer);
    const int fd = notice.fd;
    const Status sent = channel_->send(scratch_.writer.finish(), std::span(&fd, 1));
    if (sent) {
      ++slabs_told_;
      continue;
    }
    // kBusy: this process has no descriptor left for the moment.
    is_telling_ = sent.error().code == ErrorCode::kBusy;
    is_broken_ = !is_telling_;
    return;
  }
}

std::optional<storage::NamespaceSlot> Connection::find_namespace(const NamespaceDigest& digest) {
  if (last_slot_ && digest == last_namespace_) return last_slot_;
  const auto slot = session_->find_namespace(digest);
  if (!slot) return std::nullopt;
  last_namespace_ = digest;
  last_slot_ = slot;
  return slot;
}

void Connection::update_interest(transport::Poller& poller) {
  const bool wants_writable = !is_drained();
  const bool wants_readable = !is_parked_ && !is_closing_ && !is_telling_;
  if (wants_writable != wants_writable_) poller.want_writable(*channel_, wants_writable);
  if (wants_readable != wants_readable_) poller.want_readable(*channel_, wants_readable);
  wants_writable_ = wants_writable;
  wants_readable_ = wants_readable;
}

// ---- inline transfers ----

bool Connection::send_inline_data(MonotonicTime now) {
  std::size_t frames = 0;
  while (!gets_.empty() && !is_broken_ && channel_->queued() < kInlineQueueMax) {
    if (frames++ == kInlineFramesPerTurn) return true;
    if (next_get_ >= gets_.size()) next_get_ = 0;
    InlineGet& get = *gets_[next_get_];
    if (!get.has_passed(now) && !get.is_done()) {
      get.encode_next(scratch_.writer);
      send(scratch_.writer.finish());
    }
    if (get.has_passed(now) || get.is_done()) {
      gets_.erase(gets_.begin() + static_cast<std::ptrdiff_t>(next_get_));
    } else {
      ++next_get_;
    }
  }
  return false;
}

InlinePut* Connection::find_put(std::uint64_t request_id) noexcept {
  const auto found = std::find_if(puts_.begin(), puts_.end(), [request_id](const auto& put) {
    return put->request_id() == request_id;
  });
  return found == puts_.end() ? nullptr : found->get();
}

bool Connection::finish_put(std::uint64_t request_id, BlockStatus rest) {
  const auto found = std::find_if(puts_.begin(), puts_.end(), [request_id](const auto& put) {
    return put->request_id() == request_id;
  });
  CAIRN_CHECK(found != puts_.end());
  const std::unique_ptr<InlinePut> put = std::move(*found);
  puts_.erase(found);
  wire::StatusesReply& reply = scratch_.statuses_reply;
  put->finish(rest, scratch_, reply);
  NodeMetrics& metrics = *core_.parts.metrics;
  auto& counters = metrics.keys[static_cast<std::size_t>(Operation::kPutInline)];
  for (std::size_t i = 0; i < reply.statuses.size(); ++i) {
    add(counters[static_cast<std::size_t>(reply.statuses[i])]);
    if (reply.statuses[i] == BlockStatus::kBusy)
      add(metrics.busy[static_cast<std::size_t>(reply.reasons[i])]);
  }
  wire::encode(reply, wire::MessageType::kPutInlineReply, request_id, scratch_.writer);
  return send(scratch_.writer.finish());
}

bool Connection::stop_get(std::uint64_t request_id) {
  return std::erase_if(
             gets_, [request_id](const auto& get) { return get->request_id() == request_id; }) > 0;
}

bool Connection::end_overdue(MonotonicTime now) {
  const std::size_t gets =
      std::erase_if(gets_, [now](const auto& get) { return get->has_passed(now); });
  add(core_.parts.metrics->requests_timed_out, gets);
  std::vector<std::uint64_t> overdue;
  for (const auto& put : puts_) {
    if (put->has_passed(now)) overdue.push_back(put->request_id());
  }
  for (const std::uint64_t request_id : overdue) {
    add(core_.parts.metrics->requests_timed_out);
    if (!finish_put(request_id, BlockStatus::kTimeout)) return false;
  }
  return true;
}

// ---- now and then ----

bool Connection::housekeep(MonotonicTime now) {
  const bool is_greeting = session_ == nullptr || is_closing_;
  const MonotonicTime since = is_closing_ ? heard_ : opened_;
  if (is_greeting && now - since > kGreetingMax) return false;
  if (session_ != nullptr && session_->has_ended()) return false;
  if (is_telling_) tell_slabs();
  return !is_broken_ && end_overdue(now) && keep_alive(now);
}

// Unix sockets have hang-up and process descriptors; on TCP silence is all there is.
bool Connection::keep_alive(MonotonicTime now) {
  if (channel_->is_local() || session_ == nullptr || is_closing_) return true;
  // A client whose replies are stuck cannot be heard: it is the queue that has to move.
  if (now - heard_ >= core_.options.tcp_timeout) return false;
  const MonotonicTime quiet_since = std::max(heard_, pinged_);
  if (now - quiet_since < core_.options.tcp_ping) return true;
  if (channel_->queued() > kParkAbove) return true;
  pinged_ = now;
  wire::encode(wire::Ping{}, next_ping_++, scratch_.writer);
  return send(scratch_.writer.finish());
}

}  // namespace cairn::server
