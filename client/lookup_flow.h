// Lookups: one message, asked again once when the socket was lost.
#pragma once

#include "client/flow.h"

namespace cairn::client {

class LookupFlow final : public Flow {
 public:
  static constexpr FlowKind kKind = FlowKind::kLookup;
  LookupFlow() noexcept
      : Flow(kKind) {}

  void start(const LookupRequest& request);
  bool send(QueueCore& core) override;
  Answered receive(QueueCore& core, Exchange& exchange, const wire::FrameView& frame) override;
  void lose(QueueCore& core) override;
  void end(QueueCore& core, BlockStatus status) override;

 private:
  LookupRequest request_;
  bool is_asked_ = false;
  bool was_lost_ = false;
};

}  // namespace cairn::client
