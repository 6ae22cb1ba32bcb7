#include "server/inline_put.h"

#include "base/check.h"
#include "base/checksum.h"

#include <algorithm>
#include <span>
#include <utility>

namespace cairn::server {

InlinePut::InlinePut(NodeCore& core,
                     LentAccount& account,
                     const Start& start,
                     std::vector<Item> items,
                     const wire::PutInline& request)
    : core_(core),
      account_(account),
      start_(start),
      items_(std::move(items)),
      checksums_(request.checksums),
      attributes_(request.attributes) {
  for (Item& item : items_) {
    item.is_awaited = item.status == BlockStatus::kOk;
    if (item.is_awaited) ++awaited_;
  }
}

InlinePut::~InlinePut() {
  for (Item& item : items_) {
    if (item.status == BlockStatus::kOk) fail(item, BlockStatus::kCancelled);
  }
}

void InlinePut::arrived(Item& item) noexcept {
  if (item.is_awaited) --awaited_;
  item.is_awaited = false;
}

void InlinePut::fail(Item& item, BlockStatus status) {
  CAIRN_CHECK(item.status == BlockStatus::kOk);
  arrived(item);
  core_.parts.store->abort(item.ref);
  core_.unlend(account_, core_.frame_bytes(item.extents));
  item.status = status;
}

void InlinePut::take(const wire::InlineData& data) {
  if (data.item >= items_.size()) return;
  Item& item = items_[data.item];
  if (!item.is_awaited) return;
  const bool fits =
      data.offset == item.received && data.bytes.size() <= item.length - item.received;
  if (!fits || !copy(item, data.bytes)) {
    fail(item, BlockStatus::kInvalid);
    return;
  }
  if (item.received == item.length) arrived(item);
}

bool InlinePut::copy(Item& item, std::span<const std::byte> bytes) {
  const storage::PayloadSpans spans =
      core_.parts.dram->payload(item.extents, ByteCount(item.length));
  std::uint64_t span_begin = 0;
  std::size_t at = 0;
  while (!bytes.empty()) {
    while (item.received >= span_begin + spans.items[at].bytes)
      span_begin += spans.items[at++].bytes;
    const auto target = spans.items[at].host().subspan(item.received - span_begin);
    const std::uint64_t chunk_rest = kChunkBytes.value() - item.received % kChunkBytes.value();
    const auto step = std::min<std::uint64_t>({bytes.size(), target.size(), chunk_rest});
    item.crc = extend_copy_with_crc32c(item.crc,
                                       target.first(static_cast<std::size_t>(step)),
                                       bytes.first(static_cast<std::size_t>(step)));
    item.received += static_cast<std::uint32_t>(step);
    bytes = bytes.subspan(static_cast<std::size_t>(step));
    const bool is_chunk_whole = step == chunk_rest || item.received == item.length;
    if (!is_chunk_whole) continue;
    const std::uint64_t chunk = (item.received - 1) / kChunkBytes.value();
    if (item.crc != checksums_[item.checksum_first + chunk]) return false;
    item.crc = 0;
  }
  return true;
}

void InlinePut::cut_chain() noexcept {
  bool is_cut = false;
  for (Item& item : items_) {
    if (is_cut && item.status == BlockStatus::kOk) fail(item, BlockStatus::kCut);
    if (is_cut) item.status = BlockStatus::kCut;
    if (is_cut) item.reason = BusyReason::kNone;
    is_cut = is_cut || (item.status != BlockStatus::kOk && item.status != BlockStatus::kExists);
  }
}

void InlinePut::commit_whole(Scratch& scratch) {
  scratch.commit_items.clear();
  scratch.commit_places.clear();
  for (std::size_t i = 0; i < items_.size(); ++i) {
    const Item& item = items_[i];
    if (item.status != BlockStatus::kOk) continue;
    scratch.commit_places.push_back(i);
    scratch.commit_items.push_back(
        {.ref = item.ref,
         .checksums = std::span(checksums_).subspan(item.checksum_first, chunk_count(item.length)),
         .attributes = std::span(attributes_).subspan(item.attribute_first, item.attribute_bytes)});
  }
  scratch.commit_statuses.assign(scratch.commit_items.size(), BlockStatus::kInvalid);
  core_.parts.store->commit(start_.scope, scratch.commit_items, scratch.commit_statuses);
  for (std::size_t i = 0; i < scratch.commit_places.size(); ++i) {
    Item& item = items_[scratch.commit_places[i]];
    core_.unlend(account_, core_.frame_bytes(item.extents));
    item.status = scratch.commit_statuses[i];
    if (item.status == BlockStatus::kOk) add(core_.parts.metrics->put_bytes, item.length);
  }
}

void InlinePut::finish(BlockStatus rest, Scratch& scratch, wire::StatusesReply& reply) {
  const bool takes_puts = core_.is_serving();
  for (Item& item : items_) {
    if (item.is_awaited) fail(item, rest);
    if (!takes_puts && item.status == BlockStatus::kOk) fail(item, BlockStatus::kDeclined);
  }
  if (start_.is_chain) cut_chain();
  commit_whole(scratch);
  reply.context = {};
  reply.statuses.clear();
  reply.reasons.clear();
  for (const Item& item : items_) {
    reply.statuses.push_back(item.status);
    reply.reasons.push_back(item.reason);
  }
  items_.clear();
}

}  // namespace cairn::server
