#include "storage/nvme/block_file.h"

#include <fcntl.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/stat.h>

#include <cerrno>

namespace cairn::storage {
namespace {

constexpr std::uint32_t kThreadsMax = 64;

Error open_error(int sys) noexcept {
  switch (sys) {
    case ENOENT:
    case ENOTDIR:
      return {ErrorCode::kNotFound, sys, "open"};
    case EACCES:
    case EPERM:
    case EROFS:
      return {ErrorCode::kPermission, sys, "open"};
    case EISDIR:
      return {ErrorCode::kInvalid, sys, "open"};
    case EINVAL:
      return {ErrorCode::kUnsupported, sys, "O_DIRECT"};
    default:
      return {ErrorCode::kIo, sys, "open"};
  }
}

Result<ByteCount> size_of(int fd) noexcept {
  struct stat info {};
  if (::fstat(fd, &info) != 0) return Error{ErrorCode::kIo, errno, "fstat"};
  if (S_ISREG(info.st_mode)) return ByteCount(static_cast<std::uint64_t>(info.st_size));
  if (!S_ISBLK(info.st_mode)) return Error{ErrorCode::kInvalid, 0, "neither a file nor a device"};
  std::uint64_t bytes = 0;
  if (::ioctl(fd, BLKGETSIZE64, &bytes) != 0) return Error{ErrorCode::kIo, errno, "BLKGETSIZE64"};
  return ByteCount(bytes);
}

}  // namespace

Result<BlockFile> open_block_file(const BlockDeviceOptions& options) noexcept {
  if (options.depth == 0 || options.depth > kIoDepthMax)
    return Error{ErrorCode::kInvalid, 0, "depth"};
  if (options.threads == 0 || options.threads > kThreadsMax)
    return Error{ErrorCode::kInvalid, 0, "threads"};
  // Without O_NONBLOCK a path that is a pipe would hang here.
  OwnedFd fd(::open(options.path.c_str(), O_RDWR | O_DIRECT | O_CLOEXEC | O_NONBLOCK));
  if (fd.get() < 0) return open_error(errno);
  CAIRN_TRY(const ByteCount bytes, size_of(fd.get()));
  if (bytes < kIoGranule) return Error{ErrorCode::kInvalid, 0, "smaller than 4 KiB"};
  // io_uring gives EAGAIN for what would wait on a descriptor of O_NONBLOCK.
  const int flags = ::fcntl(fd.get(), F_GETFL);
  if (flags < 0 || ::fcntl(fd.get(), F_SETFL, flags & ~O_NONBLOCK) != 0)
    return Error{ErrorCode::kIo, errno, "fcntl"};
  return BlockFile{.fd = std::move(fd), .size = kIoGranule * (bytes / kIoGranule)};
}

}  // namespace cairn::storage
