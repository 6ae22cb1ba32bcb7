// The device as io_uring drives it: O_DIRECT, a registered file, fixed buffers, one ring that its
// thread alone enters. Needs Linux 6.1.
#pragma once

#include "base/clock.h"
#include "storage/nvme/block_device.h"

#include <memory>

namespace cairn::storage {

// A device of kind() "io_uring"; `clock` outlives it and is the real one. Accepted operations begin
// with the next poll(), so that many share one system call. Of options.buffers those that are
// refused go unregistered: stats() tells, register_memory() says why. Errors: as open_block_file(),
// kUnsupported (this kernel or a seccomp filter refuses io_uring, or a flag that is needed: fall
// back to threads and say so), kNoSpace (RLIMIT_MEMLOCK), kIo.
Result<std::unique_ptr<BlockDevice>> open_uring_block_device(
    const Clock& clock, const BlockDeviceOptions& options) noexcept;

}  // namespace cairn::storage
