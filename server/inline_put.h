// A put whose payloads come in InlineData frames: the daemon copies them into reserved frames,
// checks the client's checksums over its own copy and commits what is whole.
#pragma once

#include "base/block_status.h"
#include "base/clock.h"
#include "server/lends.h"
#include "server/node_core.h"
#include "server/scratch.h"
#include "storage/store.h"
#include "transport/wire/messages.h"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace cairn::server {

// One connection's. What it has reserved counts as lent.
class InlinePut {
 public:
  struct Item {
    BlockStatus status = BlockStatus::kInvalid;  // kOk: reserved, its payload is awaited or whole
    BusyReason reason = BusyReason::kNone;
    storage::BlockRef ref;        // when kOk
    storage::ExtentList extents;  // when kOk
    std::uint32_t length = 0;
    std::uint32_t checksum_first = 0;
    std::uint32_t attribute_first = 0;
    std::uint32_t attribute_bytes = 0;
    bool is_awaited = false;     // set by InlinePut
    std::uint32_t received = 0;  // bytes, from the front
    std::uint32_t crc = 0;       // of the chunk that is being received
  };
  struct Start {
    std::uint64_t request_id = 0;
    Deadline deadline{MonotonicTime{}};
    storage::Scope scope;
    bool is_chain = true;
  };
  // Takes over the reservations of `items`, and their bytes in `account`, which outlives it. One
  // item a key of `request`.
  InlinePut(NodeCore& core,
            LentAccount& account,
            const Start& start,
            std::vector<Item> items,
            const wire::PutInline& request);
  // Aborts what has not been committed.
  ~InlinePut();
  InlinePut(const InlinePut&) = delete;
  InlinePut& operator=(const InlinePut&) = delete;

  std::uint64_t request_id() const noexcept { return start_.request_id; }
  bool has_passed(MonotonicTime now) const noexcept { return start_.deadline.has_passed(now); }
  // Bytes of an item come in order from its front; others make the item kInvalid. Bytes of an item
  // that is not awaited are dropped, as are those beyond the request's keys.
  void take(const wire::InlineData& data);
  // Nothing is awaited any more.
  bool is_whole() const noexcept { return awaited_ == 0; }
  // Commits what is whole and gives every other reservation back; keys that are awaited still get
  // `rest`. A chain is cut at its first failure. The statuses of all keys. Once.
  void finish(BlockStatus rest, Scratch& scratch, wire::StatusesReply& reply);

 private:
  // False: a chunk's checksum is wrong.
  bool copy(Item& item, std::span<const std::byte> bytes);
  void arrived(Item& item) noexcept;
  void fail(Item& item, BlockStatus status);
  void cut_chain() noexcept;
  void commit_whole(Scratch& scratch);

  NodeCore& core_;
  LentAccount& account_;
  const Start start_;
  std::vector<Item> items_;
  const std::vector<std::uint32_t> checksums_;
  const std::vector<std::byte> attributes_;
  std::size_t awaited_ = 0;
};

}  // namespace cairn::server
