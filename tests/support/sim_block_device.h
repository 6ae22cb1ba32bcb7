// A disk in memory that does, from a seed, what disks do at their worst. SimDisk is the disk: it
// outlives the daemons that boot on it, each of which drives it by a SimBlockDevice.
#pragma once

#include "base/random.h"
#include "storage/nvme/block_device.h"
#include "tests/support/manual_clock.h"
#include "tests/support/sim_faults.h"
#include "tests/support/sim_media.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

namespace cairn::testing {

struct SimDiskOptions {
  ByteCount size = 16_MiB;
  ByteCount cache = 4_MiB;  // of unsynced writes
  std::uint64_t seed = 1;
  std::uint32_t depth = 64;
  // Each operation takes a random time between the two; those due at one moment complete in random
  // order.
  Nanoseconds latency_min{0};
  Nanoseconds latency_max{0};
  Nanoseconds slow_latency = Milliseconds(1'000);  // on top, by SimFault::kSlow
  Nanoseconds cancel_latency{0};                   // on top, for an operation that was cancelled
};

class SimBlockDevice;

// One thread's, with its devices; outlives them, as `clock` outlives it.
class SimDisk {
 public:
  SimDisk(ManualClock& clock, const SimDiskOptions& options)
      : SimDisk(clock, options, SimMedia(options.size, options.cache)) {}
  // A disk that holds what another one held.
  SimDisk(ManualClock& clock, const SimDiskOptions& options, SimMedia held);

  SimFaults faults;
  SimMedia media;

  // Switches the disk on. One device at a time lives; one that has crashed counts as gone.
  std::unique_ptr<SimBlockDevice> boot();
  // Power cut: operations in flight happen wholly, partly or not at all, the volatile cache meets
  // the fate of `mode`, and the device of this boot never completes anything again.
  void crash(SimCrash mode = SimCrash::kRandom);
  // A power cut at the `nth` write from now that reaches the media (1: the next): of it exactly
  // `kept` bytes survive (in sectors of 512 B), of the unsynced ones before it what `mode` says.
  void cut_power_at_write(std::uint64_t nth, ByteCount kept, SimCrash mode = SimCrash::kRandom);
  bool is_on() const noexcept { return device_ != nullptr; }
  // Nothing completes from here until thaw().
  void freeze() noexcept { is_frozen_ = true; }
  void thaw() noexcept { is_frozen_ = false; }
  std::uint64_t writes() const noexcept { return writes_; }  // that reached the media

 private:
  friend class SimBlockDevice;
  struct Cut {
    std::uint64_t write = 0;
    ByteCount kept;
    SimCrash mode = SimCrash::kRandom;
  };
  // False when the power went at this write.
  bool write(ByteCount offset, std::span<const std::byte> from);
  Nanoseconds draw_latency() noexcept;

  ManualClock& clock_;
  SimDiskOptions options_;
  SeededRandom random_;
  SimBlockDevice* device_ = nullptr;
  bool is_frozen_ = false;
  std::uint64_t writes_ = 0;
  std::optional<Cut> cut_;
};

// kind() "sim". A poll that may wait moves the clock to the next completion or to its deadline. It
// aborts when the memory of a write changes while it belongs to the device, and fills that of a
// read with rubbish until the read is done.
class SimBlockDevice final : public storage::BlockDevice {
 public:
  explicit SimBlockDevice(SimDisk& disk)
      : disk_(disk) {}
  ~SimBlockDevice() override;
  SimBlockDevice(const SimBlockDevice&) = delete;
  SimBlockDevice& operator=(const SimBlockDevice&) = delete;

  const char* kind() const noexcept override { return "sim"; }
  ByteCount size() const noexcept override { return disk_.media.size(); }
  std::uint32_t depth() const noexcept override { return disk_.options_.depth; }
  std::uint32_t in_flight() const noexcept override {
    return static_cast<std::uint32_t>(operations_.size());
  }
  storage::IoStats stats() const noexcept override { return stats_; }
  // After a power cut: kIo.
  Status submit_read(storage::IoId id,
                     ByteCount offset,
                     std::span<std::byte> into) noexcept override;
  Status submit_write(storage::IoId id,
                      ByteCount offset,
                      std::span<const std::byte> from) noexcept override;
  Status sync(storage::IoId id) noexcept override;
  void cancel(storage::IoId id) noexcept override;
  std::size_t poll(std::span<storage::IoCompletion> out, Deadline until) noexcept override;
  Status register_memory(std::span<std::byte> /*memory*/) noexcept override { return {}; }

 private:
  friend class SimDisk;
  struct Operation {
    storage::IoId id;
    storage::IoKind kind = storage::IoKind::kSync;
    ByteCount offset;
    std::span<std::byte> into;
    std::span<const std::byte> from;
    SimFault fault = SimFault::kNone;
    bool is_cancelled = false;
    std::uint32_t digest = 0;  // of `from`
    ByteCount moved;
    MonotonicTime due;
  };
  struct Done {
    bool is_complete = true;
    Result<ByteCount> result = ByteCount(0);
  };

  Status accept(Operation operation) noexcept;
  bool is_off() const noexcept { return disk_.device_ != this; }
  // The index of an operation that is due; nullopt: none is, and the clock may not move further.
  std::optional<std::size_t> wait_for_due(Deadline until) noexcept;
  std::optional<std::size_t> pick_due() noexcept;
  Done perform(Operation& operation) noexcept;
  Done move(Operation& operation) noexcept;
  Done move_part(Operation& operation) noexcept;
  Done read(Operation& operation) noexcept;
  Done write(Operation& operation) noexcept;
  Done fail(Operation& operation, int sys) noexcept;
  ByteCount random_part(ByteCount whole, ByteCount unit) noexcept;
  void lose_power() noexcept;

  SimDisk& disk_;
  std::vector<Operation> operations_;
  storage::IoStats stats_;
};

}  // namespace cairn::testing
