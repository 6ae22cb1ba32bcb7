// The file or raw device under a BlockDevice.
#pragma once

#include "base/result.h"
#include "base/units.h"
#include "storage/nvme/block_device.h"
#include "storage/pool_memory.h"

namespace cairn::storage {

struct BlockFile {
  OwnedFd fd;
  ByteCount size;  // rounded down to kIoGranule
};

// Opens it for reading and writing past the page cache. Errors: kNotFound, kPermission, kInvalid
// (an option out of range; neither file nor device, or smaller than a granule), kUnsupported (no
// O_DIRECT there), kIo.
Result<BlockFile> open_block_file(const BlockDeviceOptions& options) noexcept;

}  // namespace cairn::storage
