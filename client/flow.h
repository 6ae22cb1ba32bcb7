// One request under way: a written state machine that the queue drives. A flow sends what it may,
// takes answers, and ends exactly once; the queue owns it, its deadline and its place in the order.
#pragma once

#include "base/block_status.h"
#include "base/clock.h"
#include "client/copy_batch.h"
#include "client/exchange.h"
#include "client/queue.h"
#include "client/types.h"
#include "transport/wire/messages.h"

#include <cstddef>
#include <cstdint>
#include <optional>

namespace cairn::client {

class QueueCore;

enum class FlowKind : std::uint8_t {
  kLookup,
  kGet,
  kPut,
  kPutInline,
  kReserve,
  kCommit,
  kKeys,
  kQuestion,
  kObjectGet,
  kObjectPut,
};
inline constexpr std::size_t kFlowKinds = 10;

enum class Answered : std::uint8_t {
  kMore,    // more frames of this exchange are to come
  kLast,    // the exchange is over
  kBroken,  // the daemon broke the protocol: the socket is given up
};

// What every flow has; the queue's own fields are at the end.
class Flow {
 public:
  explicit Flow(FlowKind kind) noexcept
      : kind_(kind) {}
  virtual ~Flow() = default;
  Flow(const Flow&) = delete;
  Flow& operator=(const Flow&) = delete;

  FlowKind kind() const noexcept { return kind_; }
  bool is_done() const noexcept { return is_done_; }

  // Sends what may be sent now. False: something is left that the window, the frames in use or the
  // socket hold back; the queue asks again.
  virtual bool send(QueueCore& core) = 0;
  // A frame that belongs to `exchange`.
  virtual Answered receive(QueueCore& core, Exchange& exchange, const wire::FrameView& frame) = 0;
  // Copy threads have finished `batch`; also after the flow has ended.
  virtual void copied(QueueCore& /*core*/, CopyBatch& /*batch*/) {}
  // The socket is gone and with it every exchange.
  virtual void lose(QueueCore& core) = 0;
  // Keys that have not ended end with `status`; then the flow calls core.finish().
  virtual void end(QueueCore& core, BlockStatus status) = 0;
  // Nothing of the flow's is under way any more that touches the caller's memory.
  virtual bool is_idle() const noexcept { return true; }
  // A flow that this one had started is done.
  virtual void child_done(QueueCore& /*core*/, Flow& /*child*/) {}

  // ---- the request's, set when it is accepted ----
  Namespace name_space;
  CallOptions call;
  Deadline deadline{MonotonicTime{}};
  LookupAnswer lookup;
  std::optional<BlockDigest> branch;

 private:
  friend class QueueCore;
  const FlowKind kind_;
  Ticket ticket_;
  std::size_t place_ = 0;
  Flow* parent_ = nullptr;
  std::size_t children_ = 0;   // not recycled yet
  std::size_t exchanges_ = 0;  // that await answers for it
  bool is_done_ = false;
  bool is_returned_ = false;
  bool is_done_told_ = false;
  bool is_listed_ = false;   // in the queue's ended_ or children_
  bool is_sending_ = false;  // in senders_
};

// A run of a request's keys.
struct KeyRange {
  std::size_t first = 0;
  std::size_t count = 0;
  std::size_t end() const noexcept { return first + count; }
};

}  // namespace cairn::client
