#include "storage/rocksdb_files.h"

#include <cerrno>
#include <utility>

namespace cairn::storage {
namespace {

using rocksdb::FSDirectory;
using rocksdb::FSWritableFile;
using rocksdb::IODebugContext;
using rocksdb::IOOptions;
using rocksdb::IOStatus;
using rocksdb::Slice;
using Verification = rocksdb::DataVerificationInfo;

// What a file that could not be opened is opened as.
class NoFile final : public FSWritableFile {
 public:
  using FSWritableFile::Append;
  IOStatus Append(const Slice&, const IOOptions&, IODebugContext*) override {
    return IOStatus::OK();
  }
  IOStatus Truncate(std::uint64_t, const IOOptions&, IODebugContext*) override {
    return IOStatus::OK();
  }
  IOStatus Close(const IOOptions&, IODebugContext*) override { return IOStatus::OK(); }
  IOStatus Flush(const IOOptions&, IODebugContext*) override { return IOStatus::OK(); }
  IOStatus Sync(const IOOptions&, IODebugContext*) override { return IOStatus::OK(); }
};

class GuardedFile final : public rocksdb::FSWritableFileOwnerWrapper {
 public:
  GuardedFile(std::unique_ptr<FSWritableFile> file, WriteGuard& guard)
      : FSWritableFileOwnerWrapper(std::move(file)),
        guard_(guard) {}

  IOStatus Append(const Slice& data, const IOOptions& options, IODebugContext* debug) override {
    return guard_.run([&] { return target()->Append(data, options, debug); });
  }
  IOStatus Append(const Slice& data,
                  const IOOptions& options,
                  const Verification& verification,
                  IODebugContext* debug) override {
    return guard_.run([&] { return target()->Append(data, options, verification, debug); });
  }
  IOStatus PositionedAppend(const Slice& data,
                            std::uint64_t offset,
                            const IOOptions& options,
                            IODebugContext* debug) override {
    return guard_.run([&] { return target()->PositionedAppend(data, offset, options, debug); });
  }
  IOStatus PositionedAppend(const Slice& data,
                            std::uint64_t offset,
                            const IOOptions& options,
                            const Verification& verification,
                            IODebugContext* debug) override {
    return guard_.run(
        [&] { return target()->PositionedAppend(data, offset, options, verification, debug); });
  }
  IOStatus Truncate(std::uint64_t bytes, const IOOptions& options, IODebugContext* debug) override {
    return guard_.run([&] { return target()->Truncate(bytes, options, debug); });
  }
  IOStatus Close(const IOOptions& options, IODebugContext* debug) override {
    return guard_.run([&] { return target()->Close(options, debug); });
  }
  IOStatus Flush(const IOOptions& options, IODebugContext* debug) override {
    return guard_.run([&] { return target()->Flush(options, debug); });
  }
  IOStatus Sync(const IOOptions& options, IODebugContext* debug) override {
    return guard_.run([&] { return target()->Sync(options, debug); });
  }
  IOStatus Fsync(const IOOptions& options, IODebugContext* debug) override {
    return guard_.run([&] { return target()->Fsync(options, debug); });
  }
  IOStatus RangeSync(std::uint64_t offset,
                     std::uint64_t bytes,
                     const IOOptions& options,
                     IODebugContext* debug) override {
    return guard_.run([&] { return target()->RangeSync(offset, bytes, options, debug); });
  }

 private:
  WriteGuard& guard_;
};

class GuardedDirectory final : public rocksdb::FSDirectoryWrapper {
 public:
  GuardedDirectory(std::unique_ptr<FSDirectory> directory, WriteGuard& guard)
      : FSDirectoryWrapper(std::move(directory)),
        guard_(guard) {}

  IOStatus Fsync(const IOOptions& options, IODebugContext* debug) override {
    return guard_.run([&] { return FSDirectoryWrapper::Fsync(options, debug); });
  }
  IOStatus FsyncWithDirOptions(const IOOptions& options,
                               IODebugContext* debug,
                               const rocksdb::DirFsyncOptions& of_directory) override {
    return guard_.run(
        [&] { return FSDirectoryWrapper::FsyncWithDirOptions(options, debug, of_directory); });
  }

 private:
  WriteGuard& guard_;
};

}  // namespace

std::optional<Error> WriteGuard::failure() const noexcept {
  if (!has_failed()) return std::nullopt;
  const MutexLock lock(mutex_);
  return failure_;
}

void WriteGuard::fail(const IOStatus& status) {
  const MutexLock lock(mutex_);
  if (failure_) return;
  failure_ = status.IsNoSpace() ? Error{ErrorCode::kNoSpace, ENOSPC, "rocksdb files"}
                                : Error{ErrorCode::kIo, EIO, "rocksdb files"};
  has_failed_.store(true, std::memory_order_release);
}

template <typename Open>
IOStatus GuardedFiles::open(std::unique_ptr<FSWritableFile>* file, Open&& open_base) {
  std::unique_ptr<FSWritableFile> opened;
  IOStatus done = guard_.run([&] { return open_base(&opened); });
  if (!done.ok()) return done;
  if (opened == nullptr) opened = std::make_unique<NoFile>();
  *file = std::make_unique<GuardedFile>(std::move(opened), guard_);
  return done;
}

IOStatus GuardedFiles::NewWritableFile(const std::string& name,
                                       const rocksdb::FileOptions& options,
                                       std::unique_ptr<FSWritableFile>* file,
                                       IODebugContext* debug) {
  return open(file,
              [&](auto* made) { return target()->NewWritableFile(name, options, made, debug); });
}

IOStatus GuardedFiles::ReopenWritableFile(const std::string& name,
                                          const rocksdb::FileOptions& options,
                                          std::unique_ptr<FSWritableFile>* file,
                                          IODebugContext* debug) {
  return open(file,
              [&](auto* made) { return target()->ReopenWritableFile(name, options, made, debug); });
}

IOStatus GuardedFiles::ReuseWritableFile(const std::string& name,
                                         const std::string& old_name,
                                         const rocksdb::FileOptions& options,
                                         std::unique_ptr<FSWritableFile>* file,
                                         IODebugContext* debug) {
  return open(file, [&](auto* made) {
    return target()->ReuseWritableFile(name, old_name, options, made, debug);
  });
}

IOStatus GuardedFiles::NewDirectory(const std::string& name,
                                    const IOOptions& options,
                                    std::unique_ptr<FSDirectory>* directory,
                                    IODebugContext* debug) {
  std::unique_ptr<FSDirectory> opened;
  // It writes nothing, so a failure of it is an answer.
  IOStatus done = target()->NewDirectory(name, options, &opened, debug);
  if (done.ok()) *directory = std::make_unique<GuardedDirectory>(std::move(opened), guard_);
  return done;
}

IOStatus GuardedFiles::DeleteFile(const std::string& name,
                                  const IOOptions& options,
                                  IODebugContext* debug) {
  return guard_.run([&] { return target()->DeleteFile(name, options, debug); });
}

IOStatus GuardedFiles::RenameFile(const std::string& from,
                                  const std::string& to,
                                  const IOOptions& options,
                                  IODebugContext* debug) {
  return guard_.run([&] { return target()->RenameFile(from, to, options, debug); });
}

// The base's own logger would write to the base's files.
IOStatus GuardedFiles::NewLogger(const std::string& name,
                                 const IOOptions& options,
                                 std::shared_ptr<rocksdb::Logger>* logger,
                                 IODebugContext* debug) {
  // NOLINTNEXTLINE(bugprone-parent-virtual-call): the parent is what must not be asked
  return FileSystem::NewLogger(name, options, logger, debug);
}

IOStatus GuardedFiles::Truncate(const std::string& name,
                                std::size_t bytes,
                                const IOOptions& options,
                                IODebugContext* debug) {
  return guard_.run([&] { return target()->Truncate(name, bytes, options, debug); });
}

}  // namespace cairn::storage
