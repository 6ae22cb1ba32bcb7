// The device where io_uring is forbidden, as container runtimes often do: pread and pwrite on a few
// threads. Slower, and otherwise alike.
#pragma once

#include "base/clock.h"
#include "storage/nvme/block_device.h"

#include <memory>

namespace cairn::storage {

// A device of kind() "threads", which gains nothing by register_memory(); `clock` outlives it and
// is the real one. Accepted operations begin at once. Errors: as open_block_file(), and kIo when no
// thread can be started (fewer than asked for are accepted).
Result<std::unique_ptr<BlockDevice>> open_thread_block_device(
    const Clock& clock, const BlockDeviceOptions& options) noexcept;

}  // namespace cairn::storage
