// The seam between the NVMe tier and a device: reads and writes are submitted under an id that the
// caller chose, and polled for as records. Four implementations pass tests/contract: io_uring
// (uring_block_device.h), threads (thread_block_device.h), and in tests/support the simulated
// device and the wrapper that fails by plan.
#pragma once

#include "base/clock.h"
#include "base/result.h"
#include "base/units.h"

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace cairn::storage {

// Offsets, lengths and memory addresses of reads and writes are multiples of it.
inline constexpr ByteCount kIoGranule = 4_KiB;
// The system is asked for at most this much at once; a longer operation goes in pieces.
inline constexpr ByteCount kIoPieceMax = 1_MiB;
inline constexpr std::uint32_t kIoDepthMax = 4096;

using IoId = StrongId<struct IoIdTag>;
enum class IoKind : std::uint8_t { kRead, kWrite, kSync };

// The end of an operation. `result` holds the bytes moved, which is always the whole length asked
// for (0 for sync), or why it failed: then the memory of a read and the range of a write hold
// anything. Errors: kIo (`sys` is the errno; 0: the device ended before its size, as a truncated
// file does), kNoSpace, kTimeout (the device gave up, or the operation was cancelled: ECANCELED).
struct IoCompletion {
  IoId id;
  Result<ByteCount> result = ByteCount(0);
};

// How a cancelled operation ends that does not end as itself.
inline constexpr Error kIoCancelled{ErrorCode::kTimeout, ECANCELED, "cancelled"};

// Counted since the device was opened.
struct IoStats {
  std::uint64_t fixed_operations = 0;  // all of their memory was registered
  std::uint64_t plain_operations = 0;  // some of their memory was not
  std::uint64_t continued_pieces = 0;  // the system moved less than asked; the rest followed
  std::uint64_t retried_pieces = 0;    // EINTR or EAGAIN
  ByteCount registered;                // memory that the system knows
};

struct BlockDeviceOptions {
  std::string path;                           // a preallocated regular file or a block device
  std::uint32_t depth = 128;                  // operations in flight, 1 to 4096
  std::uint32_t threads = 8;                  // of the thread device alone, 1 to 64
  std::vector<std::span<std::byte>> buffers;  // as by register_memory(), which may refuse them
};

// One thread makes every call. That is the thread of the first submit or poll, so a device may be
// opened elsewhere. Destroying a device with operations in flight waits for them; then it must be
// that same thread.
class BlockDevice {
 public:
  BlockDevice() = default;
  BlockDevice(const BlockDevice&) = delete;
  BlockDevice& operator=(const BlockDevice&) = delete;
  virtual ~BlockDevice() = default;

  // How it works, for a gauge: "io_uring", "threads" ...
  virtual const char* kind() const noexcept = 0;
  // A multiple of kIoGranule.
  virtual ByteCount size() const noexcept = 0;
  virtual std::uint32_t depth() const noexcept = 0;
  // Accepted and not polled yet; at most depth().
  virtual std::uint32_t in_flight() const noexcept = 0;
  virtual IoStats stats() const noexcept = 0;

  // Each accepted operation gives one completion, in any order; a refused one changes nothing. The
  // memory belongs to the device until that completion has been polled. It may begin no earlier
  // than at the next poll(). Operations whose ranges overlap, if one writes, run in no given order.
  // Errors: kInvalid (empty, unaligned, beyond size()), kExists (the id is in flight), kBusy.
  virtual Status submit_read(IoId id, ByteCount offset, std::span<std::byte> into) noexcept = 0;
  virtual Status submit_write(IoId id,
                              ByteCount offset,
                              std::span<const std::byte> from) noexcept = 0;
  // As fdatasync: writes polled before this call are on stable storage when it completes.
  // Errors: kExists, kBusy.
  virtual Status sync(IoId id) noexcept = 0;
  // A hint that nobody waits for `id` any more. It still completes, as itself or with ECANCELED,
  // and keeps its memory until then. An id that is not in flight is ignored.
  virtual void cancel(IoId id) noexcept = 0;
  // Moves completions into `out` and says how many. Waits for the first one until `until`, which
  // may have passed: then it never blocks. May come back early with none, and does at once when
  // nothing is in flight.
  virtual std::size_t poll(std::span<IoCompletion> out, Deadline until) noexcept = 0;

  // Offers memory that operations will often use, so that the system need not map it each time; it
  // stays mapped as long as the device lives. Devices that gain nothing accept and ignore it. What
  // is refused can be used all the same. Errors: kNoSpace (RLIMIT_MEMLOCK or slots), kIo (memory
  // that cannot be pinned). Of memory refused in part the first part stays registered.
  virtual Status register_memory(std::span<std::byte> memory) noexcept = 0;
};

// The rules of submit_read and submit_write that need no device: kInvalid, or fine.
Status check_io(ByteCount offset, std::span<const std::byte> memory, ByteCount size) noexcept;
// `sys` as the error of a completion.
Error io_error(int sys, const char* what) noexcept;

}  // namespace cairn::storage
