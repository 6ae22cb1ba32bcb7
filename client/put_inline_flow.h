// Puts whose bytes go through the socket, where the pool is not mapped. One batch at a time; its
// data is queued no faster than the socket takes it.
#pragma once

#include "client/flow.h"
#include "client/put_flow.h"

#include <cstddef>
#include <cstdint>

namespace cairn::client {

class PutInlineFlow final : public Flow {
 public:
  static constexpr FlowKind kKind = FlowKind::kPutInline;
  PutInlineFlow() noexcept
      : Flow(kKind) {}

  void start(const Namespace& in, const CallOptions& options, const PutPlan& plan);
  bool send(QueueCore& core) override;
  Answered receive(QueueCore& core, Exchange& exchange, const wire::FrameView& frame) override;
  void lose(QueueCore& core) override;
  void end(QueueCore& core, BlockStatus status) override;

 private:
  bool begin(QueueCore& core);
  void fill(QueueCore& core);
  bool stream(QueueCore& core);
  bool is_stopped() const noexcept;

  PutPlan plan_;
  KeyRange keys_;  // of the batch under way; none while count is 0
  std::uint64_t request_id_ = 0;
  std::size_t sending_ = 0;     // key of the batch whose bytes are being sent
  std::size_t sent_bytes_ = 0;  // of it
  std::size_t cut_ = 0;
};

}  // namespace cairn::client
