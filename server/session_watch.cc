// The part of the registry that loop 0 runs: it alone watches and closes process descriptors.
#include "server/log.h"
#include "server/session_registry.h"

#include <string>
#include <utility>

namespace cairn::server {

void SessionRegistry::update_watches(transport::Poller& poller) {
  if (!has_watch_changes_.load(std::memory_order_acquire)) return;
  std::vector<WatchChange> changes;
  {
    const MutexLock lock(mutex_);
    changes = std::exchange(watch_changes_, {});
    has_watch_changes_.store(false, std::memory_order_release);
  }
  for (const WatchChange& change : changes) {
    if (!change.is_new) {
      if (watched_.erase(change.number) > 0) poller.remove_descriptor(change.descriptor);
      parts_.processes->close(change.descriptor);
      continue;
    }
    const Status added = poller.add_descriptor(change.descriptor, kProcessTokens | change.number);
    if (added) {
      watched_.emplace(change.number, change.descriptor);
      continue;
    }
    log_event(LogLevel::kWarning,
              "process_unwatched",
              {{"errno", std::to_string(added.error().sys)}, {"instead", "asked_in_turn"}});
  }
}

void SessionRegistry::stop_watching(transport::Poller& poller) {
  for (const auto& [number, descriptor] : watched_)
    poller.remove_descriptor(descriptor);
  watched_.clear();
}

void SessionRegistry::process_is_readable(std::uint64_t number) {
  EndWork work;
  {
    const MutexLock lock(mutex_);
    const auto found = processes_.find(number);
    if (found == processes_.end() || found->second->has_exited) return;
    if (!parts_.processes->has_exited(found->second->descriptor)) return;
    process_exited(*found->second, work);
  }
  finish(work);
}

void SessionRegistry::check_unwatched() {
  std::vector<std::uint64_t> unwatched;
  {
    const MutexLock lock(mutex_);
    for (const auto& [number, process] : processes_) {
      if (!process->has_exited && !watched_.contains(number)) unwatched.push_back(number);
    }
  }
  for (const std::uint64_t number : unwatched)
    process_is_readable(number);
}

}  // namespace cairn::server
