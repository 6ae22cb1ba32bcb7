#include "client/put_inline_flow.h"

#include "base/checksum.h"
#include "client/queue_core.h"

#include <algorithm>

namespace cairn::client {
namespace {

// Payload bytes of one batch.
constexpr std::uint64_t kInlineBatchBytes = (4_MiB).value();
// Data is queued only below it, so that replies to others and releases are not held up.
constexpr ByteCount kQueueMax = 1_MiB;

bool is_there(BlockStatus status) noexcept {
  return status == BlockStatus::kOk || status == BlockStatus::kExists;
}

}  // namespace

void PutInlineFlow::start(const Namespace& in, const CallOptions& options, const PutPlan& plan) {
  name_space = in;
  call = options;
  lookup = {};
  branch = plan.placement.branch;
  plan_ = plan;
  keys_ = {};
  cut_ = plan.digests.size();
}

bool PutInlineFlow::is_stopped() const noexcept {
  return plan_.placement.is_chain && cut_ < plan_.digests.size();
}

bool PutInlineFlow::send(QueueCore& core) {
  if (keys_.count > 0) return stream(core);
  if (keys_.first < plan_.digests.size() && !is_stopped()) return begin(core);
  if (plan_.placement.is_chain) {
    for (std::size_t key = cut_ + 1; key < plan_.results.size(); ++key) {
      plan_.results[key] = {.status = BlockStatus::kCut};
    }
  }
  core.finish(*this);
  return true;
}

bool PutInlineFlow::begin(QueueCore& core) {
  if (!core.can_ask()) return false;
  const std::size_t most = std::min(core.batch_keys(), plan_.digests.size() - keys_.first);
  std::uint64_t bytes = 0;
  while (keys_.count < most) {
    bytes += plan_.sources[keys_.end()].size();
    if (keys_.count > 0 && bytes > kInlineBatchBytes) break;
    ++keys_.count;
  }
  fill(core);
  const Exchange* const exchange =
      core.ask(*this, wire::MessageType::kPutInline, core.scratch().put_inline);
  if (exchange == nullptr) {
    keys_.count = 0;
    return false;
  }
  request_id_ = exchange->request_id;
  sending_ = 0;
  sent_bytes_ = 0;
  return stream(core);
}

void PutInlineFlow::fill(QueueCore& core) {
  wire::PutInline& message = core.scratch().put_inline;
  message.context = core.context_of(*this);
  message.placement = placement_from(plan_.placement, plan_.digests, keys_.first, branch);
  const auto digests = plan_.digests.subspan(keys_.first, keys_.count);
  message.digests.assign(digests.begin(), digests.end());
  message.lengths.clear();
  message.checksums.clear();
  message.attribute_bytes.clear();
  message.attributes.clear();
  for (std::size_t key = keys_.first; key < keys_.end(); ++key) {
    std::span<const std::byte> source = plan_.sources[key];
    message.lengths.push_back(static_cast<std::uint32_t>(source.size()));
    while (!source.empty()) {
      const std::size_t step = std::min<std::size_t>(source.size(), kChunkBytes.value());
      message.checksums.push_back(crc32c(source.first(step)));
      source = source.subspan(step);
    }
    if (plan_.attributes.empty()) continue;
    const auto attributes = plan_.attributes[key];
    message.attribute_bytes.push_back(static_cast<std::uint32_t>(attributes.size()));
    message.attributes.insert(message.attributes.end(), attributes.begin(), attributes.end());
  }
}

bool PutInlineFlow::stream(QueueCore& core) {
  while (sending_ < keys_.count) {
    const auto source = plan_.sources[keys_.first + sending_].subspan(sent_bytes_);
    if (source.empty()) {
      ++sending_;
      sent_bytes_ = 0;
      continue;
    }
    transport::Channel* const channel = core.connection().channel();
    if (channel == nullptr || channel->queued() > kQueueMax) return false;
    const auto bytes =
        source.first(std::min<std::size_t>(source.size(), core.connection().limits().inline_bytes));
    const wire::InlineData data{.item = static_cast<std::uint32_t>(sending_),
                                .offset = static_cast<std::uint32_t>(sent_bytes_),
                                .bytes = bytes};
    if (!core.tell(request_id_, data)) return false;
    sent_bytes_ += bytes.size();
  }
  return true;
}

Answered PutInlineFlow::receive(QueueCore& core,
                                Exchange& /*exchange*/,
                                const wire::FrameView& frame) {
  wire::StatusesReply& reply = core.scratch().statuses;
  if (!wire::decode(frame, reply)) return Answered::kBroken;
  const bool is_ok = reply.context.status == BlockStatus::kOk;
  if (is_ok && reply.statuses.size() != keys_.count) return Answered::kBroken;
  for (std::size_t i = 0; i < keys_.count; ++i) {
    const std::size_t key = keys_.first + i;
    KeyResult& result = plan_.results[key];
    result.status = is_ok ? reply.statuses[i] : reply.context.status;
    result.reason = is_ok ? reply.reasons[i] : reply.context.reason;
    result.length = plan_.sources[key].size();
    if (!is_there(result.status)) cut_ = std::min(cut_, key);
  }
  keys_ = {.first = keys_.end(), .count = 0};
  return Answered::kLast;
}

void PutInlineFlow::lose(QueueCore& core) {
  if (keys_.count > 0) end(core, BlockStatus::kPeerLost);
}

void PutInlineFlow::end(QueueCore& core, BlockStatus status) {
  for (std::size_t key = keys_.first; key < plan_.results.size(); ++key) {
    plan_.results[key] = {.status = status};
  }
  core.finish(*this);
}

}  // namespace cairn::client
