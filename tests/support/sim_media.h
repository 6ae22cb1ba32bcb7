// What a simulated disk holds: its bytes, and a volatile cache of writes that a crash may lose.
#pragma once

#include "base/random.h"
#include "base/units.h"
#include "tests/support/sim_image.h"

#include <cstddef>
#include <cstdint>
#include <deque>
#include <span>
#include <vector>

namespace cairn::testing {

// What becomes of the writes that were not synced.
enum class SimCrash : std::uint8_t {
  kRandom,  // each is kept, lost, or torn at 512 B or 4 KiB, whatever came after it
  kLoseAll,
  kKeepAll,
};

// A value: a copy is another disk with the same past. One thread's.
class SimMedia {
 public:
  static constexpr ByteCount kSector{512};

  // Unsynced writes beyond `cache` bytes become durable, oldest first, as a drive's do.
  SimMedia(ByteCount size, ByteCount cache)
      : image_(size),
        previous_(size),
        cache_max_(cache) {}
  ByteCount size() const noexcept { return image_.size(); }

  void read(ByteCount offset, std::span<std::byte> into) const { image_.read(offset, into); }
  // What the bytes were before the last write to each.
  void read_stale(ByteCount offset, std::span<std::byte> into) const {
    previous_.read(offset, into);
  }
  void write(ByteCount offset, std::span<const std::byte> from);
  // Durable at once.
  void poke(ByteCount offset, std::span<const std::byte> from) { image_.write(offset, from); }
  void flip_bit(ByteCount offset, unsigned bit);
  void sync() noexcept;
  void crash(Random& random, SimCrash mode);
  ByteCount unsynced() const noexcept { return cached_; }

 private:
  struct Write {
    ByteCount offset;
    std::vector<std::byte> before;
    std::vector<std::byte> after;
  };
  void keep_some(Random& random, const Write& write);

  SimImage image_;     // as reads see it
  SimImage previous_;  // each byte as it was before its last write
  ByteCount cache_max_;
  ByteCount cached_;
  std::deque<Write> cache_;
};

}  // namespace cairn::testing
