// The pool's memory as files of a directory on hugetlbfs or tmpfs, so that clients can map slabs
// and a later daemon can see who still does. docs/formats.md, "Pool directory", names the files.
#pragma once

#include "base/result.h"
#include "base/units.h"
#include "storage/pool_memory.h"

#include <cstdint>
#include <memory>
#include <string>

namespace cairn::storage {

struct DirectoryPoolOptions {
  // An existing directory, or the name of a new one in an existing directory.
  std::string directory = "/dev/shm/cairn";
  // This daemon's random 64-bit incarnation: it is in the names of its files.
  std::uint64_t incarnation = 0;
};

// Creates the directory if need be (mode 0700), locks it and looks at its file system: hugetlbfs
// gives kHuge; tmpfs gives kTransparentHuge where a trial mapping is really backed by huge pages,
// else kSmall. Errors: kNotFound (no parent directory), kPermission (not ours to write), kLocked
// (another daemon runs on it), kUnsupported (another file system), kVersion (written by a newer
// build), kCorrupt (FORMAT is not ours), kNoSpace, kIo.
//
// Destroying it is the orderly stop: its slabs, records and session files go, but for what a
// session whose lock is still held may map.
Result<std::unique_ptr<PoolMemory>> open_directory_pool_memory(
    const DirectoryPoolOptions& options) noexcept;

}  // namespace cairn::storage
