// Which blocks shall stay for a time. Wishes inside a budget: eviction honours them as long as
// anything else can go. Pure: time is an argument.
#pragma once

#include "base/clock.h"
#include "base/units.h"
#include "storage/eviction/policy.h"

#include <cstdint>
#include <set>
#include <unordered_map>
#include <utility>

namespace cairn::storage {

// One thread at a time: the store calls under its mutex.
class Retention {
 public:
  explicit Retention(ByteCount budget) noexcept
      : budget_(budget) {}

  // Retains until `until`, or longer if it already was. False when `bytes` more do not fit the
  // budget; then nothing changes.
  bool retain(RecordNumber block, ByteCount bytes, MonotonicTime until);
  // Nothing happens if it was not retained.
  void release(RecordNumber block);
  bool is_retained(RecordNumber block, MonotonicTime now) const;
  // Forgets what has run out, at most `steps` of them.
  void expire(MonotonicTime now, std::size_t steps);

  std::size_t size() const noexcept { return entries_.size(); }
  ByteCount bytes() const noexcept { return bytes_; }
  ByteCount memory() const noexcept;

 private:
  struct Entry {
    MonotonicTime until;
    ByteCount bytes;
  };

  ByteCount budget_;
  ByteCount bytes_;
  std::unordered_map<RecordNumber, Entry> entries_;
  std::set<std::pair<std::int64_t, RecordNumber>> by_time_;
};

}  // namespace cairn::storage
