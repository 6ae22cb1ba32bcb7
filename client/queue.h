// The asynchronous core: submit a batch, wait on a descriptor, poll for what has ended. One thread
// owns a queue and makes every call; a client may have several, each with its own socket.
//
// A ticket has two ends. `done`: every result is written, by the deadline, always. `returned`: the
// caller's buffers are no longer touched and may be reused. Most tickets end both at once; one
// whose deadline passes while a copy thread is inside its buffer is done first and returned later.
#pragma once

#include "base/result.h"
#include "base/units.h"
#include "client/types.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <span>

namespace cairn::client {

using Ticket = StrongId<struct TicketTag>;

struct Completion {
  Ticket ticket;
  bool is_done = false;
  bool is_returned = false;
  LookupAnswer lookup;                // of a lookup
  std::optional<BlockDigest> branch;  // of a put or reserve: for the next batch of the same request
};

class Queue {
 public:
  ~Queue();
  Queue(const Queue&) = delete;
  Queue& operator=(const Queue&) = delete;

  // Each: errors kInvalid (a request that breaks its own rules, no deadline, a handle used in a
  // forked child), kBusy (window full), kTooLarge (more keys than a lookup or batch may have). A
  // request that was accepted ends in exactly one `done` and one `returned`, whatever the daemon
  // does.
  Result<Ticket> submit(const LookupRequest& request);
  Result<Ticket> submit(const GetRequest& request);
  Result<Ticket> submit(const GetViewsRequest& request);
  Result<Ticket> submit(const PutRequest& request);
  Result<Ticket> submit(const ReserveRequest& request);
  Result<Ticket> submit(const CommitRequest& request);
  Result<Ticket> submit_remove(const KeysRequest& request);
  Result<Ticket> submit_prefetch(const KeysRequest& request);
  Result<Ticket> submit_retain(const KeysRequest& request, Milliseconds duration);

  // One-way. Unknown or already released ones are ignored.
  void release(std::span<const BlockView> views);
  // Gives reservations back without publishing.
  void abort(std::span<const BlockReservation> reservations);
  // Its keys end kCancelled unless they have ended already. `done` still comes from poll().
  void cancel(Ticket ticket);

  // Reads what has come, copies, reconnects, ends what is overdue; never blocks for longer than the
  // copies it does. The number of completions written.
  std::size_t poll(std::span<Completion> out);
  // Waits until poll() may have something or `until` passes. True: poll.
  bool wait(Deadline until);
  // Becomes readable when poll() has work (level-triggered; may wake for nothing). Changes when the
  // queue reconnects: ask again after each poll(). -1 while disconnected: poll by next_due().
  int fd() const;
  // When poll() must be called at the latest for deadlines and reconnects.
  std::optional<MonotonicTime> next_due() const;
  std::size_t in_flight() const;

 private:
  friend class Client;
  class Impl;
  explicit Queue(std::unique_ptr<Impl> impl) noexcept;
  std::unique_ptr<Impl> impl_;
};

}  // namespace cairn::client
