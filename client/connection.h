// One socket of a session: connects, says hello or joins, resumes, binds, and after a loss tries
// again with growing pauses. What it hands on are the frames that belong to requests; pings, slab
// notices and its own handshake it handles itself.
#pragma once

#include "base/random.h"
#include "base/result.h"
#include "client/session.h"
#include "transport/channel.h"
#include "transport/wire/messages.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace cairn::client {

// One thread's, with the queue that owns it.
class Connection {
 public:
  // Request ids begin at `queue_number` << kQueueShift and are never reused.
  Connection(Session& session, std::uint32_t queue_number);
  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  // Connects when that is due and gives up a handshake that takes too long. May block as long as a
  // connect does: `connect_timeout` at first, kReconnectTimeout later.
  void step(MonotonicTime now);
  // The next frame for the queue, valid until the next call. nullopt: nothing has come, or the
  // socket is lost (take_loss()).
  std::optional<wire::FrameView> receive();
  // True when the bytes are queued or sent. False: queue full, or the socket is lost.
  bool send(std::span<const std::byte> frame);
  void flush();
  // Gives the socket up. `error`: what went wrong on it.
  void lose(Error error);
  // Leaves a session that another queue has replaced, to join the new one at once.
  void move_on();
  // True once after each loss of a socket.
  bool take_loss() noexcept { return std::exchange(has_lost_, false); }
  // Lets go in a forked child: closes descriptors, sends nothing.
  void abandon() noexcept { channel_.reset(); }

  bool is_ready() const noexcept { return state_ == State::kReady; }
  // Another queue has made a new session: only answers are awaited here.
  bool is_stale() const noexcept { return is_ready() && generation_ != session_.generation(); }
  bool is_mapped() const noexcept { return is_mapped_; }
  // True until its own session is remade: lends that it could not give back are settled by that.
  bool take_remade() noexcept { return std::exchange(was_remade_, false); }
  std::uint32_t generation() const noexcept { return generation_; }
  const wire::Limits& limits() const noexcept { return limits_; }
  std::uint64_t pool_bytes() const noexcept { return pool_bytes_; }
  std::uint64_t take_request_id() noexcept { return next_id_++; }
  // nullptr while there is no socket.
  transport::Channel* channel() noexcept { return channel_.get(); }
  // Changes with every socket: the number of a closed one may come back.
  std::uint32_t socket_serial() const noexcept { return socket_serial_; }
  // When step() has something to do; nullopt when only the socket matters.
  std::optional<MonotonicTime> next_due() const;
  // Waits until the socket may have something or `until` passes.
  bool wait(MonotonicTime until);

  const std::optional<Error>& last_error() const noexcept { return last_error_; }
  // The daemon's words when it refused the hello.
  const std::string& refusal() const noexcept { return refusal_; }
  // Lends that the session has to give back after a resume; taken by the queue.
  std::vector<GivenBack> take_back() { return std::exchange(back_, {}); }

 private:
  enum class State : std::uint8_t { kDown, kHello, kResume, kJoin, kReady };

  void connect(MonotonicTime now);
  Status say_hello();
  Status join();
  // False: the frame is for the queue.
  bool handle(const wire::FrameView& frame);
  void take_hello_reply(const wire::FrameView& frame);
  void take_join_reply(const wire::FrameView& frame);
  void take_resume_reply(const wire::FrameView& frame);
  void take_slab(const wire::FrameView& frame);
  void send_resumes(const std::vector<wire::Resume>& resumes);
  void become_ready();
  void bind_namespaces();
  void schedule_retry(MonotonicTime now);

  Session& session_;
  SeededRandom random_;
  std::unique_ptr<transport::Channel> channel_;
  // Until the next step(): whoever lost it may be reading a frame of it.
  std::unique_ptr<transport::Channel> lost_channel_;
  State state_ = State::kDown;
  ConnectPlan plan_;
  std::uint32_t generation_ = 0;
  std::uint32_t socket_serial_ = 0;
  bool is_mapped_ = false;
  bool has_lost_ = false;
  bool was_remade_ = false;
  wire::Limits limits_;
  std::uint64_t pool_bytes_ = 0;
  std::uint64_t next_id_;
  std::uint32_t failures_ = 0;  // since a request was last answered
  MonotonicTime next_attempt_;
  MonotonicTime handshake_due_;
  std::optional<MonotonicTime> waiting_since_;
  wire::FrameWriter writer_;
  wire::HelloReply hello_reply_;
  std::optional<Error> last_error_;
  std::string refusal_;
  std::vector<GivenBack> back_;
};

}  // namespace cairn::client
