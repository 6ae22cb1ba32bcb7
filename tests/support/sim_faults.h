// What goes wrong on a simulated disk, by script or by chance.
#pragma once

#include "base/random.h"
#include "storage/nvme/block_device.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace cairn::testing {

enum class SimFault : std::uint8_t {
  kNone,
  kEio,          // any: fails; a write may have reached the media in part
  kNoSpace,      // write: fails, nothing written
  kTimeout,      // any: the device gives up (ETIMEDOUT)
  kShort,        // read, write: moves a part at first and the rest later
  kMisdirected,  // write: lands somewhere else, and succeeds
  kLost,         // write, sync: does nothing, and succeeds
  kTorn,         // write: a part lands, cut at 512 B or 4 KiB, and succeeds
  kStale,        // read: the bytes from before their last write
  kBitFlip,      // read: one bit of the answer is wrong; write: one bit on the media
  kSlow,         // any: takes slow_latency longer
};
inline constexpr std::size_t kSimFaults = 11;

// Whether `fault` can happen to such an operation.
bool can_happen(SimFault fault, storage::IoKind kind) noexcept;

// Chances in a million, of the operations to which each can happen.
class SimRates {
 public:
  std::uint32_t& operator[](SimFault fault) { return rates_.at(static_cast<std::size_t>(fault)); }
  std::uint32_t operator[](SimFault fault) const {
    return rates_.at(static_cast<std::size_t>(fault));
  }

 private:
  std::array<std::uint32_t, kSimFaults> rates_{};
};

// Decides the fault of each operation as it is accepted. One thread's.
class SimFaults {
 public:
  SimRates rates;

  // The `nth` accepted operation of `kind`, counted from 1 over all boots.
  void script(storage::IoKind kind, std::uint64_t nth, SimFault fault);
  SimFault next(storage::IoKind kind, Random& random);
  std::uint64_t accepted(storage::IoKind kind) const {
    return accepted_.at(static_cast<std::size_t>(kind));
  }
  std::uint64_t injected(SimFault fault) const {
    return injected_.at(static_cast<std::size_t>(fault));
  }

 private:
  struct Line {
    storage::IoKind kind = storage::IoKind::kRead;
    std::uint64_t nth = 0;
    SimFault fault = SimFault::kNone;
  };
  SimFault decide(storage::IoKind kind, std::uint64_t number, Random& random) const;

  std::vector<Line> script_;
  std::array<std::uint64_t, 3> accepted_{};
  std::array<std::uint64_t, kSimFaults> injected_{};
};

}  // namespace cairn::testing
