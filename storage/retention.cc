#include "storage/retention.h"

namespace cairn::storage {

bool Retention::retain(RecordNumber block, ByteCount bytes, MonotonicTime until) {
  if (const auto found = entries_.find(block); found != entries_.end()) {
    Entry& entry = found->second;
    if (until <= entry.until) return true;
    by_time_.erase({entry.until.ns, block});
    entry.until = until;
    by_time_.insert({until.ns, block});
    return true;
  }
  if (bytes_ + bytes > budget_) return false;
  entries_.emplace(block, Entry{until, bytes});
  by_time_.insert({until.ns, block});
  bytes_ += bytes;
  return true;
}

void Retention::release(RecordNumber block) {
  const auto found = entries_.find(block);
  if (found == entries_.end()) return;
  bytes_ -= found->second.bytes;
  by_time_.erase({found->second.until.ns, block});
  entries_.erase(found);
}

bool Retention::is_retained(RecordNumber block, MonotonicTime now) const {
  if (entries_.empty()) return false;
  const auto found = entries_.find(block);
  return found != entries_.end() && now < found->second.until;
}

void Retention::expire(MonotonicTime now, std::size_t steps) {
  for (std::size_t i = 0; i < steps && !by_time_.empty(); ++i) {
    const auto [until_ns, block] = *by_time_.begin();
    if (until_ns > now.ns) return;
    release(block);
  }
}

ByteCount Retention::memory() const noexcept {
  // A node of each container: its value and four words of links and allocation.
  constexpr std::uint64_t kEntryBytes = sizeof(Entry) + 8 + 32 + 16 + 32;
  return ByteCount(entries_.size() * kEntryBytes);
}

}  // namespace cairn::storage
