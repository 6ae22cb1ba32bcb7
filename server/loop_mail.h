// What other threads hand to a loop: channels to serve, connections to close, and those that shall
// tell their client of slabs from now on.
#pragma once

#include "base/mutex.h"
#include "transport/channel.h"

#include <memory>
#include <utility>
#include <vector>

namespace cairn::server {

// Any thread. Bounded by what it holds: channels by the node's bound on connections, closes by the
// sockets of the sessions that end.
class LoopMail {
 public:
  explicit LoopMail(transport::Poller& poller)
      : poller_(poller) {}

  void post_channel(std::unique_ptr<transport::Channel> channel) {
    {
      const MutexLock lock(mutex_);
      channels_.push_back(std::move(channel));
    }
    poller_.wake();
  }
  void post_close(transport::Poller::Token connection) {
    {
      const MutexLock lock(mutex_);
      closes_.push_back(connection);
    }
    poller_.wake();
  }
  void wake() noexcept { poller_.wake(); }

  struct Contents {
    std::vector<std::unique_ptr<transport::Channel>> channels;
    std::vector<transport::Poller::Token> closes;
  };
  Contents take() {
    const MutexLock lock(mutex_);
    return {.channels = std::exchange(channels_, {}), .closes = std::exchange(closes_, {})};
  }

 private:
  transport::Poller& poller_;
  Mutex mutex_;
  std::vector<std::unique_ptr<transport::Channel>> channels_ CAIRN_GUARDED_BY(mutex_);
  std::vector<transport::Poller::Token> closes_ CAIRN_GUARDED_BY(mutex_);
};

}  // namespace cairn::server
