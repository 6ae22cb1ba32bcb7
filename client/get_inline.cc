// Gets whose bytes come in the socket, where the pool is not mapped.
#include "base/checksum.h"
#include "client/get_flow.h"
#include "client/queue_core.h"

#include <algorithm>

namespace cairn::client {

Answered GetFlow::begin_inline(QueueCore& core, Exchange& exchange, Batch& batch) {
  const wire::GetReply& reply = core.scratch().get_reply;
  batch.copies.clear(reply.checksums.size());
  std::ranges::copy(reply.checksums, batch.copies.checksums().begin());
  batch.items.resize(batch.keys.count);
  for (std::size_t i = 0; i < batch.items.size(); ++i) {
    const wire::Grant& grant = reply.grants[i];
    const std::size_t key = batch.keys.first + i;
    Item& item = batch.items[i];
    item = Item{};
    item.result = {.status = grant.status, .reason = grant.reason, .length = grant.length};
    if (grant.status != BlockStatus::kOk) continue;
    item.frame.length = grant.length;
    item.checksum_first = grant.checksum_first;
    exchange.inline_left += grant.length;
    const ObjectInfo object = find_object(
        std::span(reply.attributes).subspan(grant.attribute_first, grant.attribute_bytes));
    if (object.length > 0) item.result.length = object.length;
    if (object.length > 0 && !plan_.objects.empty()) plan_.objects[key] = object;
    item.is_taken = plan_.targets[key].size() >= item.result.length;
    if (!item.is_taken) item.result.status = BlockStatus::kTooLarge;
  }
  begin_batches(core);
  if (exchange.inline_left > 0) return Answered::kMore;
  complete(core, batch);
  return Answered::kLast;
}

Answered GetFlow::take_inline(QueueCore& core, Exchange& exchange, const wire::FrameView& frame) {
  Batch& batch = batches_[exchange.part];
  wire::InlineData data;
  if (!wire::decode(frame, data) || data.item >= batch.items.size()) return Answered::kBroken;
  Item& item = batch.items[data.item];
  // The bytes of a block come in order.
  if (data.offset != item.received || data.bytes.size() > item.frame.length - item.received) {
    return Answered::kBroken;
  }
  if (item.is_taken) take_bytes(batch, data.item, data.bytes);
  item.received = data.offset + static_cast<std::uint32_t>(data.bytes.size());
  exchange.inline_left -= data.bytes.size();
  if (exchange.inline_left > 0) return Answered::kMore;
  complete(core, batch);
  return Answered::kLast;
}

void GetFlow::take_bytes(Batch& batch, std::size_t i, std::span<const std::byte> bytes) {
  Item& item = batch.items[i];
  const std::span<std::byte> target = plan_.targets[batch.keys.first + i];
  std::uint64_t at = item.received;
  while (!bytes.empty()) {
    const std::uint64_t chunk = at / kChunkBytes.value();
    const std::uint64_t chunk_end =
        std::min<std::uint64_t>((chunk + 1) * kChunkBytes.value(), item.frame.length);
    const std::uint64_t step = std::min<std::uint64_t>(chunk_end - at, bytes.size());
    item.crc = extend_copy_with_crc32c(item.crc, target.subspan(at, step), bytes.first(step));
    at += step;
    bytes = bytes.subspan(step);
    if (at < chunk_end) continue;
    const std::uint32_t expected = *batch.copies.checksums_at(item.checksum_first + chunk);
    item.is_wrong = item.is_wrong || item.crc != expected;
    item.crc = 0;
  }
}

}  // namespace cairn::client
