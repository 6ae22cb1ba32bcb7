#include "server/inline_get.h"

#include "base/check.h"
#include "transport/wire/messages.h"

#include <algorithm>
#include <span>
#include <utility>

namespace cairn::server {

InlineGet::InlineGet(NodeCore& core,
                     LentAccount& account,
                     const Start& start,
                     std::vector<Item> items)
    : core_(core),
      account_(account),
      start_(start),
      items_(std::move(items)) {}

InlineGet::~InlineGet() {
  while (!is_done())
    end_item();
}

void InlineGet::end_item() {
  const storage::PinnedBlock& block = items_[next_].block;
  core_.parts.store->unpin(block.ref);
  core_.unlend(account_, core_.frame_bytes(block.extents));
  offset_ = 0;
  ++next_;
}

void InlineGet::encode_next(wire::FrameWriter& writer) {
  CAIRN_CHECK(!is_done());
  const Item& item = items_[next_];
  const storage::PayloadSpans spans =
      core_.parts.dram->payload(item.block.extents, ByteCount(item.block.length));
  std::size_t from = offset_;
  std::size_t at = 0;
  while (from >= spans.items[at].bytes) {
    from -= spans.items[at].bytes;
    ++at;
  }
  const std::span<const std::byte> rest = spans.items[at].host().subspan(from);
  const auto bytes = rest.first(std::min<std::size_t>(rest.size(), wire::kInlineBytesMax.value()));
  wire::encode(wire::InlineData{.item = item.item, .offset = offset_, .bytes = bytes},
               start_.request_id,
               writer);
  offset_ += static_cast<std::uint32_t>(bytes.size());
  if (offset_ == item.block.length) end_item();
}

}  // namespace cairn::server
