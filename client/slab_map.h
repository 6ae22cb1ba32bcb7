// The slabs of the pool as this process sees them: announced by the daemon, mapped when the first
// frame in them is lent, and, once their daemon is gone, unmapped when the last lend on them is
// given back.
#pragma once

#include "base/result.h"
#include "base/units.h"
#include "client/client.h"
#include "client/descriptor.h"
#include "client/frame_copy.h"
#include "client/lend_table.h"
#include "transport/wire/messages.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace cairn::client {

// Slab numbers are below it: 16 TiB in slabs of 64 MiB.
inline constexpr std::uint32_t kSlabsMax = 262'144;

// Not thread-safe.
class SlabMap {
 public:
  explicit SlabMap(SlabMapper& mapper) noexcept
      : mapper_(mapper) {}
  ~SlabMap();
  SlabMap(const SlabMap&) = delete;
  SlabMap& operator=(const SlabMap&) = delete;

  // What is announced from now on belongs to another daemon. `lock` tells later daemons that this
  // process lives; it is kept as long as a slab of its daemon is mapped.
  void begin_daemon(Descriptor lock);
  // The same daemon gave this process another session.
  void replace_lock(Descriptor lock);
  // A notice that is known already changes nothing. Errors: kCorrupt (no descriptor, an impossible
  // size), kTooLarge (kSlabsMax).
  Status add(const wire::SlabNotice& notice, Descriptor file);

  // Where a payload of `length` lies in the mapping, and in which slabs and where (`frame`); maps
  // what is needed. Errors: kCorrupt (extents that cannot be: outside their slab, of a slab never
  // announced, of wrong sizes), kIo, kNoSpace (a slab cannot be mapped).
  Result<FramePieces> find(std::span<const wire::WireExtent> extents,
                           std::uint32_t length,
                           HeldFrame& frame);
  void hold(const HeldFrame& frame) noexcept;
  void drop(const HeldFrame& frame) noexcept;
  wire::HeldLend describe(const HeldFrame& frame) const noexcept;
  std::size_t mapped_count() const noexcept;

 private:
  struct Slab {
    std::uint32_t number = 0;
    std::uint32_t generation = 0;
    std::uint32_t daemon = 0;
    ByteCount bytes;
    Descriptor file;  // until it is mapped
    std::span<std::byte> memory;
    std::uint64_t lends = 0;
    bool is_retired = false;
    std::vector<bool> is_populated;  // one a kPopulateStep
  };
  struct Daemon {
    Descriptor lock;
    std::uint32_t mapped = 0;
  };
  static constexpr std::uint32_t kNone = ~std::uint32_t{0};

  Result<std::uint32_t> place_of(const wire::WireExtent& extent);
  Status map(Slab& slab);
  void populate(Slab& slab, std::uint64_t begin, std::uint64_t end);
  void retire(std::uint32_t number);
  void forget_if_unused(std::uint32_t place) noexcept;

  SlabMapper& mapper_;
  std::vector<Slab> slabs_;
  std::vector<std::uint32_t> free_;     // places in slabs_
  std::vector<std::uint32_t> current_;  // by slab number: its place, or kNone
  std::vector<Daemon> daemons_;         // one a restart seen; the last is spoken to
};

}  // namespace cairn::client
