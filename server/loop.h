// One event loop: the connections that were given to it, and on loop 0 the listeners, the pool, the
// sweep and the processes' exits.
#pragma once

#include "base/clock.h"
#include "server/connection.h"
#include "server/node_core.h"
#include "server/scratch.h"
#include "transport/channel.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

namespace cairn::server {

inline constexpr std::size_t kEventsPerTurn = 256;
inline constexpr std::size_t kAcceptsPerTurn = 16;
// Records looked at by a sweep in one turn: well under a millisecond.
inline constexpr std::uint32_t kSweepStepsPerTurn = 16'384;

// One thread's.
class Loop {
 public:
  using Token = transport::Poller::Token;

  Loop(NodeCore& core, transport::Poller& poller, std::size_t index);
  ~Loop();
  Loop(const Loop&) = delete;
  Loop& operator=(const Loop&) = delete;

  // Loop 0's.
  Status add_listener(std::unique_ptr<transport::Listener> listener);
  std::size_t run_once(MonotonicTime until) noexcept;

 private:
  static constexpr Token kListenerTokens = std::uint64_t{1} << 62U;

  bool is_first() const noexcept { return index_ == 0; }
  void take_mail(MonotonicTime now);
  void add_connection(std::unique_ptr<transport::Channel> channel, MonotonicTime now);
  void close(Token token);
  void turn(Token token, MonotonicTime now, std::size_t& handled);
  void tell_news(MonotonicTime now);
  void accept(std::size_t listener);
  void place(std::unique_ptr<transport::Channel> channel);
  void close_listeners();
  void housekeep(MonotonicTime now);
  void sweep();
  MonotonicTime due(MonotonicTime until, MonotonicTime now) const noexcept;

  NodeCore& core_;
  transport::Poller& poller_;
  const std::size_t index_;
  Scratch scratch_;
  std::unordered_map<Token, std::unique_ptr<Connection>> connections_;
  Token next_token_ = 1;
  std::vector<Token> again_;      // have more to do without waiting
  std::vector<Token> again_now_;  // this turn's
  std::vector<transport::Poller::Event> events_;
  MonotonicTime next_housekeeping_;
  std::size_t slabs_seen_ = 0;

  // Loop 0's.
  std::vector<std::unique_ptr<transport::Listener>> listeners_;
  std::size_t next_loop_ = 0;  // for the next channel
  bool is_sweeping_ = false;
  bool is_accept_failing_ = false;
};

}  // namespace cairn::server
