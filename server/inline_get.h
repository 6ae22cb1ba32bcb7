// The payloads that follow the reply of a get in mode kInline: frames of at most 256 KiB, one at a
// time, so that they interleave with replies and wait while the client does not read.
#pragma once

#include "base/clock.h"
#include "server/lends.h"
#include "server/node_core.h"
#include "storage/store.h"
#include "transport/wire/frame.h"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace cairn::server {

// One connection's. What it holds pinned counts as lent.
class InlineGet {
 public:
  struct Item {
    std::uint32_t item = 0;  // in the request's digests
    storage::PinnedBlock block;
  };
  struct Start {
    std::uint64_t request_id = 0;
    Deadline deadline{MonotonicTime{}};
  };
  // Takes over the items' pins, and their bytes in `account`, which outlives it.
  InlineGet(NodeCore& core, LentAccount& account, const Start& start, std::vector<Item> items);
  // Unpins what has not been sent.
  ~InlineGet();
  InlineGet(const InlineGet&) = delete;
  InlineGet& operator=(const InlineGet&) = delete;

  std::uint64_t request_id() const noexcept { return start_.request_id; }
  bool has_passed(MonotonicTime now) const noexcept { return start_.deadline.has_passed(now); }
  bool is_done() const noexcept { return next_ == items_.size(); }
  // Encodes the next data frame; not when done.
  void encode_next(wire::FrameWriter& writer);

 private:
  void end_item();

  NodeCore& core_;
  LentAccount& account_;
  const Start start_;
  const std::vector<Item> items_;
  std::size_t next_ = 0;
  std::uint32_t offset_ = 0;  // in the payload of items_[next_]
};

}  // namespace cairn::server
