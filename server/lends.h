// Frames that a session's client may touch through its mapping, by lend id, and how much of the
// pool one process holds that way.
#pragma once

#include "base/check.h"
#include "base/units.h"
#include "storage/store.h"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace cairn::server {

// Never reused, nor by a later daemon: counted from the boot counter on (LendIds). 0: nothing.
using LendId = std::uint64_t;

enum class LendKind : std::uint8_t { kRead, kWrite };

struct Lend {
  LendId id = 0;
  storage::PinnedBlock block;   // kRead: pinned; kWrite: reserved
  storage::NamespaceSlot slot;  // of a kWrite
  std::uint32_t frame = 0;      // bytes, header page included
  LendKind kind = LendKind::kRead;

  ByteCount bytes() const noexcept { return ByteCount(frame); }
};

// Any thread. The boot counter is Unix milliseconds at least, so its successor starts beyond every
// id that fewer than 4 million lends a millisecond can reach.
class LendIds {
 public:
  explicit LendIds(std::uint64_t boot_counter) noexcept
      : next_((boot_counter << kBits) + 1) {}
  // The first of `count` new ids in a row.
  LendId take(std::size_t count) noexcept {
    // Relaxed: only that no two callers get one id matters.
    return next_.fetch_add(count, std::memory_order_relaxed);
  }

 private:
  static constexpr unsigned kBits = 22;
  std::atomic<LendId> next_;
};

// Bytes of frames that one process holds lent, reserved or in inline transfer. Any thread.
class LentAccount {
 public:
  // False, and nothing changes, if `max` would be exceeded.
  bool try_add(ByteCount bytes, ByteCount max) noexcept;
  void add(ByteCount bytes) noexcept;
  void sub(ByteCount bytes) noexcept;
  ByteCount bytes() const noexcept { return ByteCount(bytes_.load(std::memory_order_relaxed)); }

 private:
  // Relaxed throughout: a sum that guards a budget and orders nothing.
  std::atomic<std::uint64_t> bytes_{0};
};

// Lends by id: open addressing, linear probing, no allocation but growth. One thread at a time.
class LendTable {
 public:
  LendTable();
  std::size_t size() const noexcept { return size_; }
  ByteCount bytes() const noexcept { return bytes_; }
  // `lend.id` is not 0 and not in the table.
  void insert(const Lend& lend);
  // nullptr: unknown. Valid until the next insert() or erase().
  const Lend* find(LendId id) const noexcept;
  // `id` is in the table.
  void erase(LendId id) noexcept;
  // Every lend, in no order; the table is then empty.
  std::vector<Lend> take_all();

 private:
  static constexpr std::size_t kSlotsMin = 64;
  // Where the search for an id starts.
  std::size_t home_of(LendId id) const noexcept;
  std::size_t slot_of(LendId id) const noexcept;
  std::size_t next(std::size_t slot) const noexcept { return (slot + 1) & (slots_.size() - 1); }
  void resize(std::size_t slots);

  std::vector<Lend> slots_;  // a power of two; id 0: free
  std::size_t size_ = 0;
  ByteCount bytes_;
};

}  // namespace cairn::server
