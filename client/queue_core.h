// The inside of a queue: its socket, the requests under way, their deadlines and copies. The flows
// (flow.h) are the families of requests; what they share is here.
#pragma once

#include "base/result.h"
#include "client/connection.h"
#include "client/copy_pool.h"
#include "client/exchange.h"
#include "client/flow.h"
#include "client/queue.h"
#include "client/scratch.h"
#include "client/session.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace cairn::client {

// Keys of one message that lends frames, and how many one queue has lent for its own copies.
inline constexpr std::size_t kBatchKeys = 64;
inline constexpr std::size_t kLentKeysMax = 2 * kBatchKeys;
// Payload bytes of one batch, so that two batches of large blocks stay far below what a process may
// hold lent.
inline constexpr ByteCount kBatchBytesMax = 64_MiB;
// Payload bytes of a request's first batch and of a put's last one. The daemon works on the first
// reserve or get while nothing is copied, and on the last commit when all is: the less there is in
// them the better, while every batch costs a message. Larger blocks make batches of one block.
inline constexpr ByteCount kLeadBytesMax = 1_MiB;
inline constexpr ByteCount kTailBytesMax = 512_KiB;
// Keys of one request.
inline constexpr std::size_t kRequestKeysMax = 16'384;

class QueueCore {
 public:
  explicit QueueCore(std::shared_ptr<Session> session);
  // Gives back what it can, within kCloseTime.
  ~QueueCore();
  QueueCore(const QueueCore&) = delete;
  QueueCore& operator=(const QueueCore&) = delete;

  // ---- for Queue and Client ----
  bool is_child() const noexcept { return session_->is_child(); }
  Session& session() noexcept { return *session_; }
  Connection& connection() noexcept { return connection_; }
  Deadline deadline_of(const CallOptions& call) const;
  // Errors: kInvalid, kBusy, kTooLarge: what Queue::submit says of every request.
  Status admit(const CallOptions& call, std::size_t keys) const;
  // Takes `flow` (from make()) into the queue and begins it.
  Ticket accept(Flow& flow, Deadline deadline);
  void cancel(Ticket ticket);
  std::size_t poll(std::span<Completion> out);
  bool wait(MonotonicTime until);
  int fd();
  std::optional<MonotonicTime> next_due();
  std::size_t in_flight() const noexcept { return accepted_; }
  void release(std::span<const BlockView> views);
  void abort(std::span<const BlockReservation> reservations);
  // Tells the daemon of what was given back.
  void send_returns();

  // ---- for flows ----
  // A flow of the kind, new or used before.
  template <typename T>
  T& make();
  // Begins a flow on behalf of `parent`, which is told when it is done.
  void accept_child(Flow& child, Flow& parent, Deadline deadline);
  // Sends one request and awaits its answer. nullptr: not now.
  template <typename Message>
  Exchange* ask(Flow& flow, wire::MessageType type, const Message& message);
  // Sends a frame that belongs to a request under way. False: not now.
  template <typename Message>
  bool tell(std::uint64_t request_id, const Message& message);
  void finish(Flow& flow);
  // Ends it early, unless it is done.
  void end(Flow& flow, BlockStatus status);
  // The flow's copies are over: it may be returned.
  void settle(Flow& flow);
  void want_send(Flow& flow);
  wire::RequestContext context_of(const Flow& flow) const;

  bool can_ask() const noexcept { return connection_.is_ready() && !connection_.is_stale(); }
  bool is_mapped() const noexcept { return connection_.is_mapped(); }
  std::size_t batch_keys() const noexcept;
  // Payload bytes of the batch that begins with the request's key `first`.
  ByteCount batch_bytes(std::size_t first) const noexcept;
  // The share of kLentKeysMax that a flow's batches take.
  bool take_lent(std::size_t keys);
  void give_lent(std::size_t keys) noexcept;
  bool wants_check(Verify verify) noexcept;

  // Session::adopt. When it fails, the lends of the reply are given back.
  Status adopt(const Session::Lent& lent, std::span<FramePieces> out);
  // The memory of the lend is not touched any more.
  void give_back_view(std::uint64_t lend, bool is_corrupt);
  void give_back_reservation(std::uint64_t lend);
  // True: finished. False: flow.copied() will be called.
  bool copy(CopyBatch& batch, Flow& flow);
  Scratch& scratch() noexcept { return scratch_; }
  const Clock& clock() const noexcept { return session_->world().clock(); }
  MonotonicTime now() const noexcept { return clock().now(); }

 private:
  static constexpr std::size_t kSpareMax = 64;

  void turn();
  void read_frames();
  void dispatch(const wire::FrameView& frame);
  void disown(Flow& flow);
  Answered answer_nobody(Exchange& exchange, const wire::FrameView& frame);
  void give_back_grants(std::span<const wire::Grant> grants, bool is_reserved);
  void take_loss();
  void collect_copies();
  void expire();
  void tell_parents();
  void pump();
  void pump_all();
  void leave_stale(MonotonicTime time);
  void insert(Flow& flow, Deadline deadline);
  void recycle(Flow& flow);
  std::size_t report(std::span<Completion> out);
  void list(Flow& flow);
  bool owes_lends();
  void close();

  std::shared_ptr<Session> session_;
  const std::uint32_t number_;
  Connection connection_;
  Scratch scratch_;
  wire::FrameWriter writer_;
  ExchangeTable exchanges_;
  Exchange* current_ = nullptr;  // whose frame is being handled

  // Flows by place: a ticket names its place and serial.
  std::vector<std::unique_ptr<Flow>> flows_;
  std::vector<std::size_t> free_places_;
  std::array<std::vector<std::unique_ptr<Flow>>, kFlowKinds> spare_;
  std::uint64_t next_serial_ = 1;
  std::size_t accepted_ = 0;  // without children
  std::vector<Flow*> senders_;
  std::vector<Flow*> ended_;     // done or returned, not reported yet
  std::vector<Flow*> children_;  // done or returned, their parents not told yet
  MonotonicTime earliest_;       // no deadline of a flow is before it
  std::size_t lent_keys_ = 0;
  std::uint32_t sample_ = 0;
  std::vector<wire::ReleaseEntry> releases_;
  std::vector<std::uint64_t> aborts_;
  std::optional<MonotonicTime> stale_since_;
  MonotonicTime heard_;
  int poll_set_ = -1;  // with copy threads: an epoll descriptor over socket and copies
  std::uint32_t poll_set_serial_ = 0;  // of the socket in it
  Copier copier_;  // last: its destructor waits for threads that are inside flows
};

template <typename T>
T& QueueCore::make() {
  auto& spare = spare_[static_cast<std::size_t>(T::kKind)];
  std::unique_ptr<Flow> flow;
  if (spare.empty()) {
    flow = std::make_unique<T>();
  } else {
    flow = std::move(spare.back());
    spare.pop_back();
  }
  if (free_places_.empty()) {
    free_places_.push_back(flows_.size());
    flows_.emplace_back();
  }
  flow->place_ = free_places_.back();
  free_places_.pop_back();
  T& made = static_cast<T&>(*flow);
  flows_[flow->place_] = std::move(flow);
  return made;
}

template <typename Message>
Exchange* QueueCore::ask(Flow& flow, wire::MessageType type, const Message& message) {
  if (!can_ask()) return nullptr;
  const std::size_t limit = connection_.limits().requests_in_flight;
  if (exchanges_.size() >= limit) return nullptr;
  std::uint64_t id = connection_.take_request_id();
  // An old request that was never answered may still have the place.
  while (exchanges_.is_full(id, limit))
    id = connection_.take_request_id();
  wire::encode(message, id, writer_);
  if (!connection_.send(writer_.finish())) return nullptr;
  Exchange& exchange = exchanges_.add(id);
  exchange.flow = &flow;
  ++flow.exchanges_;
  exchange.request = type;
  return &exchange;
}

template <typename Message>
bool QueueCore::tell(std::uint64_t request_id, const Message& message) {
  wire::encode(message, request_id, writer_);
  return connection_.send(writer_.finish());
}

}  // namespace cairn::client
