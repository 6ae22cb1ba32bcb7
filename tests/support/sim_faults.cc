#include "tests/support/sim_faults.h"

#include "base/check.h"

namespace cairn::testing {

using storage::IoKind;

bool can_happen(SimFault fault, IoKind kind) noexcept {
  switch (fault) {
    case SimFault::kNone:
    case SimFault::kEio:
    case SimFault::kTimeout:
    case SimFault::kSlow:
      return true;
    case SimFault::kShort:
    case SimFault::kBitFlip:
      return kind != IoKind::kSync;
    case SimFault::kNoSpace:
    case SimFault::kMisdirected:
    case SimFault::kTorn:
      return kind == IoKind::kWrite;
    case SimFault::kLost:
      return kind != IoKind::kRead;
    case SimFault::kStale:
      return kind == IoKind::kRead;
  }
  return false;
}

void SimFaults::script(IoKind kind, std::uint64_t nth, SimFault fault) {
  CAIRN_CHECK(can_happen(fault, kind) && nth > accepted(kind));
  script_.push_back({.kind = kind, .nth = nth, .fault = fault});
}

SimFault SimFaults::next(IoKind kind, Random& random) {
  const std::uint64_t number = ++accepted_.at(static_cast<std::size_t>(kind));
  const SimFault fault = decide(kind, number, random);
  ++injected_.at(static_cast<std::size_t>(fault));
  return fault;
}

SimFault SimFaults::decide(IoKind kind, std::uint64_t number, Random& random) const {
  constexpr std::uint64_t kMillion = 1'000'000;
  for (const Line& line : script_) {
    if (line.kind == kind && line.nth == number) return line.fault;
  }
  for (std::size_t i = 1; i < kSimFaults; ++i) {
    const auto fault = static_cast<SimFault>(i);
    const std::uint32_t rate = rates[fault];
    if (rate > 0 && can_happen(fault, kind) && random.below(kMillion) < rate) return fault;
  }
  return SimFault::kNone;
}

}  // namespace cairn::testing
