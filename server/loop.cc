#include "server/loop.h"

#include "base/check.h"
#include "server/log.h"

#include <algorithm>
#include <string>
#include <utility>

namespace cairn::server {

Loop::Loop(NodeCore& core, transport::Poller& poller, std::size_t index)
    : core_(core),
      poller_(poller),
      index_(index),
      events_(kEventsPerTurn),
      next_housekeeping_(core.parts.clock->now()) {}

Loop::~Loop() {
  for (const auto& [token, connection] : connections_)
    poller_.remove(connection->channel());
  core_.connections.fetch_sub(connections_.size(), std::memory_order_relaxed);
  connections_.clear();
  close_listeners();
  if (is_first()) core_.registry.stop_watching(poller_);
}

std::size_t Loop::run_once(MonotonicTime until) noexcept {
  const Clock& clock = *core_.parts.clock;
  MonotonicTime now = clock.now();
  take_mail(now);
  if (is_first()) core_.registry.update_watches(poller_);
  if (is_first() && core_.is_stopping.load(std::memory_order_relaxed)) close_listeners();
  if (now >= next_housekeeping_) housekeep(now);
  if (is_sweeping_) sweep();
  tell_news(now);
  again_now_.swap(again_);
  const std::size_t count = poller_.wait(events_, due(until, now));
  now = clock.now();
  std::size_t handled = 0;
  for (const Token token : again_now_)
    turn(token, now, handled);
  again_now_.clear();
  for (std::size_t i = 0; i < count; ++i) {
    const Token token = events_[i].token;
    if ((token & SessionRegistry::kProcessTokens) != 0) {
      core_.registry.process_is_readable(token & ~SessionRegistry::kProcessTokens);
      core_.registry.update_watches(poller_);
    } else if ((token & kListenerTokens) != 0) {
      accept(static_cast<std::size_t>(token & ~kListenerTokens));
    } else {
      turn(token, now, handled);
    }
    ++handled;
  }
  return handled;
}

MonotonicTime Loop::due(MonotonicTime until, MonotonicTime now) const noexcept {
  if (!again_now_.empty() || is_sweeping_) return now;
  return std::min(until, next_housekeeping_);
}

// ---- connections ----

void Loop::take_mail(MonotonicTime now) {
  LoopMail::Contents mail = core_.mail[index_]->take();
  for (auto& channel : mail.channels)
    add_connection(std::move(channel), now);
  for (const Token token : mail.closes)
    close(token);
}

void Loop::add_connection(std::unique_ptr<transport::Channel> channel, MonotonicTime now) {
  const Token token = next_token_++;
  const Status added = poller_.add(*channel, token);
  if (!added) {
    core_.connections.fetch_sub(1, std::memory_order_relaxed);
    log_event(LogLevel::kError,
              "connection_not_watched",
              {{"peer", channel->peer().name}, {"errno", std::to_string(added.error().sys)}});
    return;
  }
  const SocketPlace place{.loop = index_, .token = token};
  connections_.emplace(
      token, std::make_unique<Connection>(core_, scratch_, std::move(channel), place, now));
}

void Loop::close(Token token) {
  const auto found = connections_.find(token);
  if (found == connections_.end()) return;
  poller_.remove(found->second->channel());
  connections_.erase(found);
  core_.connections.fetch_sub(1, std::memory_order_relaxed);
}

void Loop::turn(Token token, MonotonicTime now, std::size_t& handled) {
  const auto found = connections_.find(token);
  if (found == connections_.end()) return;
  const Connection::Turn turn = found->second->run(now);
  handled += turn.frames;
  if (turn.is_over) {
    close(token);
    return;
  }
  found->second->update_interest(poller_);
  if (turn.has_more) again_.push_back(token);
}

// Slabs that became ready are told of by the sockets that do so.
void Loop::tell_news(MonotonicTime now) {
  const std::size_t ready = core_.keeper.ready();
  if (ready == slabs_seen_) return;
  slabs_seen_ = ready;
  std::vector<Token> tokens;
  for (const auto& [token, connection] : connections_) {
    if (connection->has_news()) tokens.push_back(token);
  }
  std::size_t handled = 0;
  for (const Token token : tokens)
    turn(token, now, handled);
}

// ---- listeners ----

Status Loop::add_listener(std::unique_ptr<transport::Listener> listener) {
  CAIRN_CHECK(is_first());
  CAIRN_TRY_STATUS(poller_.add(*listener, kListenerTokens | listeners_.size()));
  listeners_.push_back(std::move(listener));
  return {};
}

void Loop::accept(std::size_t listener) {
  if (listener >= listeners_.size()) return;
  for (std::size_t i = 0; i < kAcceptsPerTurn; ++i) {
    auto channel = listeners_[listener]->accept();
    if (!channel) {
      if (!is_accept_failing_) {
        log_event(LogLevel::kError,
                  "accept_failed",
                  {{"address", listeners_[listener]->address().to_string()},
                   {"error", error_code_name(channel.error().code)},
                   {"errno", std::to_string(channel.error().sys)}});
      }
      is_accept_failing_ = true;
      return;
    }
    is_accept_failing_ = false;
    if (*channel == nullptr) return;
    place(*std::move(channel));
  }
}

void Loop::place(std::unique_ptr<transport::Channel> channel) {
  const std::size_t connections_max = kConnectionsPerSession * core_.options.sessions_max;
  const std::size_t before = core_.connections.fetch_add(1, std::memory_order_relaxed);
  if (before >= connections_max) {
    core_.connections.fetch_sub(1, std::memory_order_relaxed);
    add(core_.parts.metrics->hello_rejected_other);
    log_event(LogLevel::kWarning,
              "connection_refused",
              {{"peer", channel->peer().name}, {"why", "too many connections"}});
    return;
  }
  const std::size_t loop = next_loop_;
  next_loop_ = (next_loop_ + 1) % core_.mail.size();
  core_.mail[loop]->post_channel(std::move(channel));
}

void Loop::close_listeners() {
  for (const auto& listener : listeners_)
    poller_.remove(*listener);
  listeners_.clear();
}

// ---- now and then ----

void Loop::housekeep(MonotonicTime now) {
  next_housekeeping_ = now + core_.options.housekeeping;
  std::vector<Token> over;
  for (const auto& [token, connection] : connections_) {
    if (connection->housekeep(now)) {
      connection->update_interest(poller_);
    } else {
      over.push_back(token);
    }
  }
  for (const Token token : over)
    close(token);
  if (!is_first()) return;
  core_.registry.check_unwatched();
  sweep();
  if (!core_.keeper.step()) return;
  for (const auto& mail : core_.mail)
    mail->wake();
}

void Loop::sweep() {
  is_sweeping_ = !core_.parts.store->sweep(kSweepStepsPerTurn);
}

}  // namespace cairn::server
