#include "storage/eviction/lru.h"

#include "base/check.h"

#include <algorithm>
#include <utility>

namespace cairn::storage {

LruPolicy::LruPolicy(LazyMemory memory, std::uint32_t records_max) noexcept
    : memory_(std::move(memory)),
      links_(memory_.as<Link>()) {
  CAIRN_CHECK(links_.size() > records_max);
}

ByteCount LruPolicy::memory_for(std::uint32_t records_max) noexcept {
  return ByteCount((std::uint64_t{records_max} + 1) * sizeof(Link));
}

bool LruPolicy::is_linked(std::uint32_t index) const noexcept {
  return links_[index].colder != 0 || links_[index].hotter != 0 || links_[0].hotter == index;
}

void LruPolicy::link_hottest(std::uint32_t index) noexcept {
  const std::uint32_t hottest = links_[0].colder;
  links_[index] = {.colder = hottest, .hotter = 0};
  links_[hottest].hotter = index;
  links_[0].colder = index;
}

void LruPolicy::unlink(std::uint32_t index) noexcept {
  const Link link = links_[index];
  links_[link.colder].hotter = link.hotter;
  links_[link.hotter].colder = link.colder;
  links_[index] = {};
}

void LruPolicy::insert(RecordNumber block, const BlockTraits&) noexcept {
  const std::uint32_t index = block + 1;
  CAIRN_CHECK(index < links_.size() && !is_linked(index));
  link_hottest(index);
  highest_ = std::max(highest_, index);
  ++resident_;
}

void LruPolicy::touch(RecordNumber block) noexcept {
  const std::uint32_t index = block + 1;
  CAIRN_CHECK(index < links_.size() && is_linked(index));
  unlink(index);
  link_hottest(index);
}

void LruPolicy::remove(RecordNumber block) noexcept {
  const std::uint32_t index = block + 1;
  CAIRN_CHECK(index < links_.size() && is_linked(index));
  unlink(index);
  --resident_;
}

std::optional<RecordNumber> LruPolicy::victim(std::optional<RecordNumber> after) const noexcept {
  const std::uint32_t index = after ? *after + 1 : 0;
  CAIRN_CHECK(index < links_.size() && (index == 0 || is_linked(index)));
  const std::uint32_t next = links_[index].hotter;
  if (next == 0) return std::nullopt;
  return next - 1;
}

ByteCount LruPolicy::memory() const noexcept {
  return ByteCount((std::uint64_t{highest_} + 1) * sizeof(Link));
}

}  // namespace cairn::storage
