// Which block leaves first. A policy is a pure object: no I/O, no clock, no lock; the same objects
// run in the daemon, in the simulator and as shadow caches. It knows records by number and never
// sees their bytes.
#pragma once

#include "base/units.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>

namespace cairn::storage {

using RecordNumber = std::uint32_t;

// What a policy may know of a block that becomes resident.
struct BlockTraits {
  ByteCount bytes;                // what dropping it frees, header page included
  std::uint32_t position = 0;     // in its chain, root = 0
  std::uint64_t branch_hash = 0;  // hash of its branch's digest
  std::uint64_t key_hash = 0;     // for ghosts: of namespace and digest
};

// One thread at a time: the store calls under the pool's mutex. A number is resident from insert()
// to remove(). Touch order is the caller's duty: leaf first, root last, so that a parent is never
// colder than its child.
class EvictionPolicy {
 public:
  EvictionPolicy() = default;
  EvictionPolicy(const EvictionPolicy&) = delete;
  EvictionPolicy& operator=(const EvictionPolicy&) = delete;
  virtual ~EvictionPolicy() = default;

  virtual std::string_view name() const noexcept = 0;
  virtual void insert(RecordNumber block, const BlockTraits& traits) noexcept = 0;
  virtual void touch(RecordNumber block) noexcept = 0;
  virtual void remove(RecordNumber block) noexcept = 0;
  // The block to drop first, or the next one after `after` (a resident block that victim() gave
  // before and that could not be dropped). nullopt: no further block. Changes nothing.
  virtual std::optional<RecordNumber> victim(std::optional<RecordNumber> after) const noexcept = 0;
  virtual std::size_t resident() const noexcept = 0;
  // Memory the policy holds, for the budget.
  virtual ByteCount memory() const noexcept = 0;
};

// `records_max` bounds the record numbers. nullptr for a name that is no policy; known: "lru".
std::unique_ptr<EvictionPolicy> make_eviction_policy(std::string_view name,
                                                     std::uint32_t records_max);

}  // namespace cairn::storage
