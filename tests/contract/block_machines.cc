#include "tests/contract/block_machines.h"

#include "base/check.h"
#include "storage/nvme/thread_block_device.h"
#include "storage/nvme/uring_block_device.h"
#include "storage/pool_memory.h"
#include "tests/support/seed.h"

#include <fcntl.h>

#include <utility>

namespace cairn::testing {

using storage::BlockDevice;
using storage::IoCompletion;

FileMachine::FileMachine(RealDevice device)
    : device_(device) {
  const storage::OwnedFd file(::open(path().c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0600));
  CAIRN_CHECK(file.get() >= 0);
  CAIRN_CHECK(::posix_fallocate(file.get(), 0, static_cast<off_t>(kDiskBytes.value())) == 0);
}

Result<std::unique_ptr<BlockDevice>> FileMachine::open(std::uint32_t depth) {
  return open_with({.path = path(), .depth = depth});
}

Result<std::unique_ptr<BlockDevice>> FileMachine::open_with(
    const storage::BlockDeviceOptions& options) {
  if (device_ == RealDevice::kUring) return storage::open_uring_block_device(clock_, options);
  return storage::open_thread_block_device(clock_, options);
}

namespace {

// A device and the wrapper that knows no fault: it may change nothing.
class WrappedSim final : public BlockDevice {
 public:
  WrappedSim(std::unique_ptr<SimBlockDevice> sim, const Clock& clock)
      : sim_(std::move(sim)),
        faulty_(*sim_, clock) {}
  const char* kind() const noexcept override { return faulty_.kind(); }
  ByteCount size() const noexcept override { return faulty_.size(); }
  std::uint32_t depth() const noexcept override { return faulty_.depth(); }
  std::uint32_t in_flight() const noexcept override { return faulty_.in_flight(); }
  storage::IoStats stats() const noexcept override { return faulty_.stats(); }
  Status submit_read(storage::IoId id,
                     ByteCount offset,
                     std::span<std::byte> into) noexcept override {
    return faulty_.submit_read(id, offset, into);
  }
  Status submit_write(storage::IoId id,
                      ByteCount offset,
                      std::span<const std::byte> from) noexcept override {
    return faulty_.submit_write(id, offset, from);
  }
  Status sync(storage::IoId id) noexcept override { return faulty_.sync(id); }
  void cancel(storage::IoId id) noexcept override { faulty_.cancel(id); }
  std::size_t poll(std::span<IoCompletion> out, Deadline until) noexcept override {
    return faulty_.poll(out, until);
  }
  Status register_memory(std::span<std::byte> memory) noexcept override {
    return faulty_.register_memory(memory);
  }

 private:
  std::unique_ptr<SimBlockDevice> sim_;
  FaultyBlockDevice faulty_;
};

}  // namespace

SimBlockMachine::SimBlockMachine(bool is_wrapped)
    : is_wrapped_(is_wrapped) {}

Result<std::unique_ptr<BlockDevice>> SimBlockMachine::open(std::uint32_t depth) {
  const SimDiskOptions options{.size = kDiskBytes,
                               .seed = test_seed() + disks_.size(),
                               .depth = depth,
                               .latency_max = Milliseconds(1)};
  SimMedia media(options.size, options.cache);
  if (!disks_.empty()) media = disks_.back()->media;
  disks_.push_back(std::make_unique<SimDisk>(clock_, options, std::move(media)));
  disks_.back()->faults.rates[SimFault::kShort] = 300'000;
  std::unique_ptr<SimBlockDevice> device = disks_.back()->boot();
  if (is_wrapped_) return std::unique_ptr<BlockDevice>(new WrappedSim(std::move(device), clock_));
  return std::unique_ptr<BlockDevice>(std::move(device));
}

}  // namespace cairn::testing
