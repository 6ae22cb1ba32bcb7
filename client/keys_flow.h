// Remove, prefetch and retain: one status a key, batch after batch.
#pragma once

#include "client/flow.h"

#include <chrono>

namespace cairn::client {

class KeysFlow final : public Flow {
 public:
  static constexpr FlowKind kKind = FlowKind::kKeys;
  KeysFlow() noexcept
      : Flow(kKind) {}

  // `type`: kRemove, kPrefetch or kRetain; `duration` is a retention's.
  void start(const KeysRequest& request, wire::MessageType type, Milliseconds duration);
  bool send(QueueCore& core) override;
  Answered receive(QueueCore& core, Exchange& exchange, const wire::FrameView& frame) override;
  void lose(QueueCore& core) override;
  void end(QueueCore& core, BlockStatus status) override;

 private:
  bool ask(QueueCore& core);

  KeysRequest request_;
  wire::MessageType type_{};
  Milliseconds duration_{0};
  std::size_t next_ = 0;   // first key that has not ended
  std::size_t asked_ = 0;  // keys from there on that are asked about
};

}  // namespace cairn::client
