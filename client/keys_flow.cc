#include "client/keys_flow.h"

#include "client/queue_core.h"

#include <algorithm>

namespace cairn::client {
namespace {

template <typename Message>
void fill(Message& message,
          const QueueCore& core,
          const Flow& flow,
          std::span<const BlockDigest> keys) {
  message.context = core.context_of(flow);
  message.digests.assign(keys.begin(), keys.end());
}

}  // namespace

void KeysFlow::start(const KeysRequest& request, wire::MessageType type, Milliseconds duration) {
  request_ = request;
  name_space = request.name_space;
  call = request.call;
  lookup = {};
  branch.reset();
  type_ = type;
  duration_ = duration;
  next_ = 0;
  asked_ = 0;
}

bool KeysFlow::send(QueueCore& core) {
  if (asked_ > 0) return true;
  if (next_ == request_.digests.size()) {
    core.finish(*this);
    return true;
  }
  return ask(core);
}

bool KeysFlow::ask(QueueCore& core) {
  if (!core.can_ask()) return false;
  const std::size_t count =
      std::min<std::size_t>(request_.digests.size() - next_, core.connection().limits().batch_keys);
  const auto keys = request_.digests.subspan(next_, count);
  const Exchange* asked = nullptr;
  if (type_ == wire::MessageType::kRemove) {
    wire::Remove message;
    fill(message, core, *this, keys);
    asked = core.ask(*this, type_, message);
  } else if (type_ == wire::MessageType::kPrefetch) {
    wire::Prefetch message;
    fill(message, core, *this, keys);
    asked = core.ask(*this, type_, message);
  } else {
    wire::Retain message;
    fill(message, core, *this, keys);
    message.duration_ms = static_cast<std::uint32_t>(duration_.count());
    asked = core.ask(*this, type_, message);
  }
  if (asked != nullptr) asked_ = count;
  return asked != nullptr;
}

Answered KeysFlow::receive(QueueCore& core, Exchange& /*exchange*/, const wire::FrameView& frame) {
  wire::StatusesReply& reply = core.scratch().statuses;
  if (!wire::decode(frame, reply)) return Answered::kBroken;
  const bool is_ok = reply.context.status == BlockStatus::kOk;
  if (is_ok && reply.statuses.size() != asked_) return Answered::kBroken;
  for (std::size_t i = 0; i < asked_; ++i) {
    KeyResult& result = request_.results[next_ + i];
    result = {};
    result.status = is_ok ? reply.statuses[i] : reply.context.status;
    result.reason = is_ok ? reply.reasons[i] : reply.context.reason;
  }
  next_ += asked_;
  asked_ = 0;
  return Answered::kLast;
}

void KeysFlow::lose(QueueCore& core) {
  if (asked_ > 0) end(core, BlockStatus::kPeerLost);
}

void KeysFlow::end(QueueCore& core, BlockStatus status) {
  for (KeyResult& result : request_.results.subspan(next_))
    result = {.status = status};
  core.finish(*this);
}

}  // namespace cairn::client
