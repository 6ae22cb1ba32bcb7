// The seam between the pool and the machine: named slab files that clients may map, the daemon-only
// records file, session locks, and what an earlier daemon left behind. Two implementations pass
// tests/contract: DirectoryPoolMemory (hugetlbfs or tmpfs) and SimPoolMemory.
#pragma once

#include "base/memory.h"
#include "base/result.h"
#include "base/units.h"
#include "storage/records_memory.h"

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace cairn::storage {

enum class PageKind : std::uint8_t { kSmall, kTransparentHuge, kHuge };

// Closes a file descriptor; -1 owns nothing.
class OwnedFd {
 public:
  OwnedFd() = default;
  explicit OwnedFd(int fd)
      : fd_(fd) {}
  OwnedFd(OwnedFd&& other) noexcept
      : fd_(other.release()) {}
  OwnedFd& operator=(OwnedFd&& other) noexcept;
  OwnedFd(const OwnedFd&) = delete;
  OwnedFd& operator=(const OwnedFd&) = delete;
  ~OwnedFd();
  int get() const noexcept { return fd_; }
  int release() noexcept {
    const int fd = fd_;
    fd_ = -1;
    return fd;
  }

 private:
  int fd_ = -1;
};

// A mapped slab; lives until its PoolMemory removes it or is destroyed. `fd` stays PoolMemory's; a
// client gets a duplicate of it by SCM_RIGHTS.
struct SlabMemory {
  std::span<std::byte> bytes;
  int fd = -1;
};

// What an earlier daemon's slabs still occupy because a client that may map them is alive.
struct PredecessorSlabs {
  ByteCount bytes;
  // One line a holder for the log: "pid 123 (worker) session 0123abcd".
  std::vector<std::string> holders;
};

// Thread-safe only in populate() and populate_records(); everything else is one thread's.
class PoolMemory : public RecordsOwner {
 public:
  virtual PageKind page_kind() const noexcept = 0;

  // Creates and maps slab number `slab` of this daemon, zero filled, `bytes` long (a multiple of
  // the page size). Errors: kNoSpace, kIo, kExists (the number was used before).
  virtual Result<SlabMemory> create_slab(std::uint32_t slab, ByteCount bytes) noexcept = 0;
  // Makes [offset, offset + bytes) resident, so that a later touch cannot fail. Any thread; several
  // at once for different ranges. Errors: kNoSpace, kIo.
  virtual Status populate(std::uint32_t slab, ByteCount offset, ByteCount bytes) noexcept = 0;
  // Unmaps and removes a slab that no client was ever told of: its memory is given back.
  virtual void discard_slab(std::uint32_t slab) noexcept = 0;
  // Creates and maps the records file (sparse, zero filled, readable by this user alone). Once.
  virtual Result<RecordsMemory> create_records(ByteCount bytes) noexcept = 0;

  // Creates sessions/<id> holding `description`, takes a shared lock on it and gives the descriptor
  // that the client shall keep while it maps a slab. Errors: kExists, kNoSpace, kIo.
  virtual Result<OwnedFd> create_session_lock(std::uint64_t id,
                                              std::string_view description) noexcept = 0;
  // The session has ended in an orderly way: its file is removed.
  virtual void remove_session_lock(std::uint64_t id) noexcept = 0;

  // Removes the slabs of earlier daemons whose session locks are all free, and says what is left.
  // Never truncates or reuses one.
  virtual Result<PredecessorSlabs> reclaim_predecessors() noexcept = 0;
};

}  // namespace cairn::storage
