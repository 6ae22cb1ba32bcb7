// Least recently used: the order of touches and nothing else. With leaf-first touches a chain
// leaves from its leaf.
#pragma once

#include "storage/eviction/policy.h"
#include "storage/lazy_memory.h"

#include <cstdint>
#include <span>

namespace cairn::storage {

// A doubly linked list in an array of 8 bytes a record number, touched as numbers come into use.
class LruPolicy final : public EvictionPolicy {
 public:
  LruPolicy(LazyMemory memory, std::uint32_t records_max) noexcept;

  std::string_view name() const noexcept override { return "lru"; }
  void insert(RecordNumber block, const BlockTraits& traits) noexcept override;
  void touch(RecordNumber block) noexcept override;
  void remove(RecordNumber block) noexcept override;
  std::optional<RecordNumber> victim(std::optional<RecordNumber> after) const noexcept override;
  std::size_t resident() const noexcept override { return resident_; }
  ByteCount memory() const noexcept override;

  static ByteCount memory_for(std::uint32_t records_max) noexcept;

 private:
  // Neighbours by index, which is record number + 1: index 0 is the list's own end, whose `hotter`
  // is the coldest block and whose `colder` the hottest. All zero: not in the list.
  struct Link {
    std::uint32_t colder = 0;
    std::uint32_t hotter = 0;
  };

  bool is_linked(std::uint32_t index) const noexcept;
  void link_hottest(std::uint32_t index) noexcept;
  void unlink(std::uint32_t index) noexcept;

  LazyMemory memory_;
  std::span<Link> links_;
  std::uint32_t highest_ = 0;
  std::size_t resident_ = 0;
};

}  // namespace cairn::storage
