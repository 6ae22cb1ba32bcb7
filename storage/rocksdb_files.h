// The files of RocksDB behind a guard.
//
// RocksDB as distributions build it has its assertions on, and ends the process when it comes back
// to a file on which a write has failed: a full disk would stop the daemon. So it is never shown
// such a failure. From the first one on no file and no name of a file changes any more: whatever is
// written, renamed or removed "succeeds", and the owner of the database asks failure() before he
// believes any answer. (Empty folders, locks and room set aside ahead of a write are passed on.)
// What the disk holds then is what a power cut at that moment would have left; from that the
// database is opened anew.
#pragma once

#include "base/clock.h"
#include "base/mutex.h"
#include "base/result.h"
#include "storage/key_value.h"

#include <rocksdb/file_system.h>

#include <atomic>
#include <memory>
#include <optional>
#include <string>

namespace cairn::storage {

// Whether writes still reach the disk. Any thread.
class WriteGuard {
 public:
  // kNoSpace or kIo with the first failure.
  std::optional<Error> failure() const noexcept;
  // Runs `write` unless one has failed before. OK, or what is no failure of the disk: that the file
  // is not there, or that the file system cannot do such a thing.
  template <typename Write>
  rocksdb::IOStatus run(Write&& write) {
    if (has_failed_.load(std::memory_order_acquire)) return rocksdb::IOStatus::OK();
    rocksdb::IOStatus done = write();
    const bool is_answer =
        done.ok() || done.IsNotFound() || done.IsPathNotFound() || done.IsNotSupported();
    if (is_answer) return done;
    fail(done);
    return rocksdb::IOStatus::OK();
  }
  bool has_failed() const noexcept { return has_failed_.load(std::memory_order_acquire); }

 private:
  void fail(const rocksdb::IOStatus& status);

  std::atomic<bool> has_failed_{false};
  mutable Mutex mutex_;
  std::optional<Error> failure_ CAIRN_GUARDED_BY(mutex_);
};

class GuardedFiles final : public rocksdb::FileSystemWrapper {
 public:
  explicit GuardedFiles(const std::shared_ptr<rocksdb::FileSystem>& base)
      : FileSystemWrapper(base) {}
  const char* Name() const override { return "CairnGuardedFiles"; }
  const WriteGuard& guard() const noexcept { return guard_; }

  rocksdb::IOStatus NewWritableFile(const std::string& name,
                                    const rocksdb::FileOptions& options,
                                    std::unique_ptr<rocksdb::FSWritableFile>* file,
                                    rocksdb::IODebugContext* debug) override;
  rocksdb::IOStatus ReopenWritableFile(const std::string& name,
                                       const rocksdb::FileOptions& options,
                                       std::unique_ptr<rocksdb::FSWritableFile>* file,
                                       rocksdb::IODebugContext* debug) override;
  rocksdb::IOStatus ReuseWritableFile(const std::string& name,
                                      const std::string& old_name,
                                      const rocksdb::FileOptions& options,
                                      std::unique_ptr<rocksdb::FSWritableFile>* file,
                                      rocksdb::IODebugContext* debug) override;
  rocksdb::IOStatus NewDirectory(const std::string& name,
                                 const rocksdb::IOOptions& options,
                                 std::unique_ptr<rocksdb::FSDirectory>* directory,
                                 rocksdb::IODebugContext* debug) override;
  rocksdb::IOStatus DeleteFile(const std::string& name,
                               const rocksdb::IOOptions& options,
                               rocksdb::IODebugContext* debug) override;
  rocksdb::IOStatus RenameFile(const std::string& from,
                               const std::string& to,
                               const rocksdb::IOOptions& options,
                               rocksdb::IODebugContext* debug) override;
  rocksdb::IOStatus NewLogger(const std::string& name,
                              const rocksdb::IOOptions& options,
                              std::shared_ptr<rocksdb::Logger>* logger,
                              rocksdb::IODebugContext* debug) override;
  rocksdb::IOStatus Truncate(const std::string& name,
                             std::size_t bytes,
                             const rocksdb::IOOptions& options,
                             rocksdb::IODebugContext* debug) override;

 private:
  template <typename Open>
  rocksdb::IOStatus open(std::unique_ptr<rocksdb::FSWritableFile>* file, Open&& open_base);

  WriteGuard guard_;
};

// open_rocksdb() on a file system of the caller's, whose failures tests inject; `clock` says when a
// database whose files have failed is opened anew, and outlives the store.
Result<std::unique_ptr<KeyValue>> open_rocksdb_on(const std::shared_ptr<rocksdb::FileSystem>& files,
                                                  const std::string& directory,
                                                  const Clock& clock) noexcept;

}  // namespace cairn::storage
