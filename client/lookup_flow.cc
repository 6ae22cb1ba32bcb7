#include "client/lookup_flow.h"

#include "client/queue_core.h"

#include <algorithm>

namespace cairn::client {

void LookupFlow::start(const LookupRequest& request) {
  request_ = request;
  name_space = request.name_space;
  call = request.call;
  lookup = {};
  branch.reset();
  is_asked_ = false;
  was_lost_ = false;
}

bool LookupFlow::send(QueueCore& core) {
  if (is_asked_) return true;
  wire::Lookup& message = core.scratch().lookup;
  message.context = core.context_of(*this);
  message.kind = request_.is_run ? wire::LookupKind::kRun : wire::LookupKind::kSet;
  message.hold_ms = static_cast<std::uint32_t>(request_.hold.count());
  message.gang.clear();
  for (const Namespace& member : request_.gang) {
    message.gang.push_back({.digest = member.digest, .epoch = member.epoch});
  }
  message.digests.assign(request_.digests.begin(), request_.digests.end());
  is_asked_ = core.ask(*this, wire::MessageType::kLookup, message) != nullptr;
  return is_asked_;
}

Answered LookupFlow::receive(QueueCore& core,
                             Exchange& /*exchange*/,
                             const wire::FrameView& frame) {
  wire::LookupReply& reply = core.scratch().lookup_reply;
  if (!wire::decode(frame, reply)) return Answered::kBroken;
  lookup.status = reply.context.status;
  lookup.reason = reply.context.reason;
  if (lookup.status == BlockStatus::kOk) {
    const std::size_t keys = request_.digests.size();
    if (reply.run > keys || reply.tiers.size() > keys) return Answered::kBroken;
    if (!request_.is_run && reply.tiers.size() != keys) return Answered::kBroken;
    lookup.run = reply.run;
    lookup.load_estimate = std::chrono::microseconds(reply.load_us);
    if (!request_.tiers.empty()) {
      std::ranges::fill(request_.tiers, std::uint8_t{0});
      std::ranges::copy(reply.tiers, request_.tiers.begin());
    }
  }
  core.finish(*this);
  return Answered::kLast;
}

void LookupFlow::lose(QueueCore& core) {
  if (!is_asked_) return;
  if (was_lost_) return end(core, BlockStatus::kPeerLost);
  was_lost_ = true;
  is_asked_ = false;
  core.want_send(*this);
}

void LookupFlow::end(QueueCore& core, BlockStatus status) {
  lookup = {};
  lookup.status = status;
  core.finish(*this);
}

}  // namespace cairn::client
