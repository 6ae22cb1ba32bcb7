// One socket of a client: frames in, replies out, and the inline transfers that are under way on
// it. Requests are answered in order and at once; inline data goes between the replies.
#pragma once

#include "base/block_key.h"
#include "base/clock.h"
#include "server/inline_get.h"
#include "server/inline_put.h"
#include "server/node_core.h"
#include "server/scratch.h"
#include "server/session.h"
#include "transport/channel.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

namespace cairn::server {

// Fairness: what one connection may do before others have their turn.
inline constexpr std::size_t kFramesPerTurn = 16;
inline constexpr std::size_t kInlineFramesPerTurn = 4;
// A client that does not read its replies is not read from: parked above, resumed below. The room
// that is left holds the replies and the data of one turn.
inline constexpr ByteCount kParkAbove = 2_MiB;
inline constexpr ByteCount kResumeBelow = 512_KiB;
// Inline data is queued only below it, so that replies find room.
inline constexpr ByteCount kInlineQueueMax = 1_MiB;
// Slab notices, each with a descriptor, are queued only below it.
inline constexpr ByteCount kNoticeQueueMax = 16_KiB;
// A connection that has not said hello, or has not taken its refusal, by then is closed.
inline constexpr Milliseconds kGreetingMax = Milliseconds(10'000);

// One loop's.
class Connection {
 public:
  Connection(NodeCore& core,
             Scratch& scratch,
             std::unique_ptr<transport::Channel> channel,
             const SocketPlace& place,
             MonotonicTime now);
  // Undoes inline transfers and leaves the session.
  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  struct Turn {
    bool is_over = false;   // close it
    bool has_more = false;  // give it another turn without waiting for its socket
    std::size_t frames = 0;
  };
  Turn run(MonotonicTime now);
  // Now and then: pings, time-outs, deadlines of transfers. False: close it.
  bool housekeep(MonotonicTime now);
  // Tells `poller` what to report, where that has changed.
  void update_interest(transport::Poller& poller);
  // Whether there are ready slabs that this socket has not told of; it tells in its next turn.
  bool has_news() const noexcept;

  transport::Channel& channel() noexcept { return *channel_; }
  const SocketPlace& place() const noexcept { return place_; }
  bool is_drained() const noexcept { return channel_->queued() == ByteCount(0); }

  // ---- for handlers ----
  Session* session() noexcept { return session_; }
  void join_session(Session* session) noexcept { session_ = session; }
  // False: the connection is broken and will be closed.
  bool send(std::span<const std::byte> frame, std::span<const int> fds = {}) noexcept;
  // Sends notices of ready slabs as far as the queue has room.
  void tell_slabs() noexcept;
  // The slot of a namespace that the session has opened.
  std::optional<storage::NamespaceSlot> find_namespace(const NamespaceDigest& digest);

  // Requests that are not answered whole yet.
  std::size_t unanswered() const noexcept { return gets_.size() + puts_.size(); }
  void start(std::unique_ptr<InlineGet> get) { gets_.push_back(std::move(get)); }
  void start(std::unique_ptr<InlinePut> put) { puts_.push_back(std::move(put)); }
  InlinePut* find_put(std::uint64_t request_id) noexcept;
  // Answers a put that is whole, or one that ends before; the transfer is then gone.
  bool finish_put(std::uint64_t request_id, BlockStatus rest);
  // Drops a get's remaining data; false: there is no such transfer.
  bool stop_get(std::uint64_t request_id);

 private:
  enum class Answer : std::uint8_t { kGoOn, kOver };

  Answer answer(const wire::FrameView& frame, MonotonicTime& now);
  void answer_frames(Turn& turn, MonotonicTime& now);
  bool send_inline_data(MonotonicTime now);
  bool end_overdue(MonotonicTime now);
  bool keep_alive(MonotonicTime now);
  void malformed(const char* what) noexcept;
  void receive_failed(const Error& error) noexcept;

  NodeCore& core_;
  Scratch& scratch_;
  const std::unique_ptr<transport::Channel> channel_;
  const SocketPlace place_;
  const MonotonicTime opened_;
  MonotonicTime heard_;   // when the last frame came
  MonotonicTime pinged_;  // when the last ping went
  std::uint64_t next_ping_ = 1;
  Session* session_ = nullptr;
  bool is_broken_ = false;
  bool is_closing_ = false;  // nothing is read any more; closed when all is sent
  bool is_parked_ = false;
  bool is_telling_ = false;  // notices wait for room; requests wait behind them
  bool wants_readable_ = true;
  bool wants_writable_ = false;
  // Every socket of a mapping session tells of every slab: what is lent on it must be known on it,
  // whoever reads the others and when.
  std::size_t slabs_told_ = 0;
  // The namespace of the last request: most clients use one for long.
  NamespaceDigest last_namespace_;
  std::optional<storage::NamespaceSlot> last_slot_;
  std::vector<std::unique_ptr<InlineGet>> gets_;
  std::size_t next_get_ = 0;
  std::vector<std::unique_ptr<InlinePut>> puts_;
};

}  // namespace cairn::server
