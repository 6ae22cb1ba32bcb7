// The machines on which the contract of BlockDevice is proved: a disk that keeps its bytes while
// one device after another is opened on it.
#pragma once

#include "storage/nvme/block_device.h"
#include "tests/support/faulty_block_device.h"
#include "tests/support/manual_clock.h"
#include "tests/support/process_runner.h"
#include "tests/support/sim_block_device.h"

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace cairn::testing {

inline constexpr ByteCount kDiskBytes = 8_MiB;

class BlockMachine {
 public:
  virtual ~BlockMachine() = default;
  virtual Result<std::unique_ptr<storage::BlockDevice>> open(std::uint32_t depth) = 0;
  virtual Clock& clock() = 0;
};

enum class RealDevice { kUring, kThreads };

// A small preallocated file.
class FileMachine final : public BlockMachine {
 public:
  explicit FileMachine(RealDevice device);
  Result<std::unique_ptr<storage::BlockDevice>> open(std::uint32_t depth) override;
  Result<std::unique_ptr<storage::BlockDevice>> open_with(
      const storage::BlockDeviceOptions& options);
  Clock& clock() override { return clock_; }
  std::string path() const { return directory_ / "disk"; }

 private:
  RealDevice device_;
  SystemClock clock_;
  TempDir directory_;
};

// Completes in random order, and moves what it moves in parts now and then.
class SimBlockMachine final : public BlockMachine {
 public:
  explicit SimBlockMachine(bool is_wrapped);
  Result<std::unique_ptr<storage::BlockDevice>> open(std::uint32_t depth) override;
  Clock& clock() override { return clock_; }

 private:
  bool is_wrapped_;
  ManualClock clock_;
  std::vector<std::unique_ptr<SimDisk>> disks_;  // the last holds what the others held
};

}  // namespace cairn::testing
