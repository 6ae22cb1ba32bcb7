#include "storage/store_impl.h"

#include <algorithm>

namespace cairn::storage {

void Store::Impl::touch(std::span<const TouchTip> tips) noexcept {
  TouchOrder collected(records_);
  for (const TouchTip& tip : tips)
    collected.add(tip);
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
