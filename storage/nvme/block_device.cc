#include "storage/nvme/block_device.h"

#include <cerrno>

namespace cairn::storage {
namespace {

bool is_aligned(std::uint64_t value) noexcept {
  return value % kIoGranule.value() == 0;
}

}  // namespace

Status check_io(ByteCount offset, std::span<const std::byte> memory, ByteCount size) noexcept {
  if (memory.empty() || !is_aligned(memory.size())) return Error{ErrorCode::kInvalid, 0, "length"};
  if (!is_aligned(reinterpret_cast<std::uintptr_t>(memory.data())))
    return Error{ErrorCode::kInvalid, 0, "memory"};
  if (!is_aligned(offset.value())) return Error{ErrorCode::kInvalid, 0, "offset"};
  // Subtracting, for a sum could pass the end of 64 bits.
  if (offset > size || ByteCount(memory.size()) > size - offset)
    return Error{ErrorCode::kInvalid, 0, "beyond the end of the device"};
  return {};
}

Error io_error(int sys, const char* what) noexcept {
  switch (sys) {
    case ENOSPC:
    case EDQUOT:
      return {ErrorCode::kNoSpace, sys, what};
    case ETIMEDOUT:
    case ECANCELED:
      return {ErrorCode::kTimeout, sys, what};
    default:
      return {ErrorCode::kIo, sys, what};
  }
}

}  // namespace cairn::storage
