#include "base/check.h"
#include "tests/support/sim_block_device.h"

#include <algorithm>
#include <utility>

namespace cairn::testing {

SimDisk::SimDisk(ManualClock& clock, const SimDiskOptions& options, SimMedia held)
    : media(std::move(held)),
      clock_(clock),
      options_(options),
      random_(options.seed) {}

std::unique_ptr<SimBlockDevice> SimDisk::boot() {
  CAIRN_CHECK(device_ == nullptr);
  auto device = std::make_unique<SimBlockDevice>(*this);
  device_ = device.get();
  return device;
}

void SimDisk::crash(SimCrash mode) {
  if (device_ == nullptr) return;
  device_->lose_power();
  device_ = nullptr;
  media.crash(random_, mode);
}

void SimDisk::cut_power_at_write(std::uint64_t nth, ByteCount kept, SimCrash mode) {
  CAIRN_CHECK(nth > 0 && kept.value() % SimMedia::kSector.value() == 0);
  cut_ = Cut{.write = writes_ + nth, .kept = kept, .mode = mode};
}

bool SimDisk::write(ByteCount offset, std::span<const std::byte> from) {
  ++writes_;
  if (!cut_ || cut_->write != writes_) {
    media.write(offset, from);
    return true;
  }
  const Cut cut = *cut_;
  cut_.reset();
  device_ = nullptr;
  media.crash(random_, cut.mode);
  media.poke(offset, from.first(std::min(from.size(), static_cast<std::size_t>(cut.kept.value()))));
  return false;
}

Nanoseconds SimDisk::draw_latency() noexcept {
  const auto spread =
      static_cast<std::uint64_t>((options_.latency_max - options_.latency_min).count());
  return options_.latency_min + Nanoseconds(static_cast<std::int64_t>(random_.below(spread + 1)));
}

}  // namespace cairn::testing
