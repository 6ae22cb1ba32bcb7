#include "storage/eviction/policy.h"

#include "storage/eviction/lru.h"

#include <utility>

namespace cairn::storage {

std::unique_ptr<EvictionPolicy> make_eviction_policy(std::string_view name,
                                                     std::uint32_t records_max) {
  if (name != "lru") return nullptr;
  auto memory = LazyMemory::map(LruPolicy::memory_for(records_max));
  if (!memory) return nullptr;
  return std::make_unique<LruPolicy>(std::move(*memory), records_max);
}

}  // namespace cairn::storage
