#include "storage/header_page.h"
#include "storage/store_impl.h"

#include <algorithm>

namespace cairn::storage {

std::optional<BlockRef> Store::Impl::resident_parent(BlockRef block) noexcept {
  const Record& record = records_[block.record];
  const ParentLink link = record.parent();
  // The record of a block that left meanwhile may hold anything.
  if (!record.pin_word().is_still(block.generation)) return std::nullopt;
  if (link.record == ParentLink::kNone) return std::nullopt;
  const bool is_live = link.record != ParentLink::kAbsent &&
                       records_[link.record].pin_word().view().is_live(link.generation);
  if (is_live) return BlockRef{link.record, link.generation};
  return find_lost_parent(block);
}

std::optional<BlockRef> Store::Impl::find_lost_parent(BlockRef block) noexcept {
  Record& record = records_[block.record];
  if (!record.pin_word().pin(block.generation)) return std::nullopt;
  BlockQuery query;
  query.slot = record.slot();
  query.epoch = record.epoch();
  const bool is_named = read_parent(record, query.digest);
  unpin(block);
  if (!is_named) return std::nullopt;
  query.hash = key_hash(query.slot, query.digest);
  const std::optional<BlockRef> parent = find(query);
  if (!parent || *parent == block) return std::nullopt;
  const MutexLock lock(mutex_);
  if (!record.pin_word().view().is_live(block.generation)) return std::nullopt;
  record.set_parent({parent->record, parent->generation});
  return parent;
}

bool Store::Impl::read_parent(const Record& record, DigestWords& parent) const noexcept {
  // Copied, since clients can write it: a page that they did write names nothing.
  std::array<std::byte, kHeaderPageBytes> page{};
  const std::span<const std::byte> shared = dram_.header_page(record.extents());
  std::copy_n(shared.begin(), page.size(), page.begin());
  const Result<HeaderPage> header = decode_header(page);
  if (!header || !header->parent || digest_words(header->digest) != record.digest()) return false;
  parent = digest_words(*header->parent);
  return true;
}

// Ancestors are collected without the mutex: links are read as they stand, and whoever has left by
// the time it would be touched is passed over.
void Store::Impl::touch(std::span<const TouchTip> tips) noexcept {
  TouchOrder collected;
  for (const TouchTip& tip : tips)
    collected.add(tip, [this](BlockRef block) { return resident_parent(block); });
  const std::vector<TouchTip> order = collected.take();
  bool has_touched = false;
  std::uint32_t last_insertion = 0;
  for (std::size_t at = 0; at < order.size(); at += kLockBatch) {
    const std::size_t end = std::min(at + kLockBatch, order.size());
    const MutexLock lock(mutex_);
    for (std::size_t i = at; i < end; ++i) {
      const TouchTip& step = order[i];
      if (!records_[step.ref.record].pin_word().view().is_live(step.ref.generation)) continue;
      // Inserted by this call and hotter than all before it already: touching it would only count
      // its arrival twice.
      const bool is_in_place = !has_touched && step.insertion > last_insertion;
      if (is_in_place) {
        last_insertion = step.insertion;
        continue;
      }
      policy_->touch(step.ref.record);
      has_touched = true;
    }
  }
}

}  // namespace cairn::storage
