// A disk under RocksDB that fails: at the first write, the second, and so on.
#include "storage/rocksdb_files.h"

#include "tests/support/manual_clock.h"

#include <gtest/gtest.h>
#include <rocksdb/env.h>

#include <atomic>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <vector>

namespace cairn::storage {
namespace {

using rocksdb::FSWritableFile;
using rocksdb::IODebugContext;
using rocksdb::IOOptions;
using rocksdb::IOStatus;
using rocksdb::Slice;

// The longest pause before a failed database is opened anew.
constexpr Milliseconds kPauseMax(60'000);
constexpr std::uint64_t kNever = std::numeric_limits<std::uint64_t>::max();

// Fails every write after so many, until it is healed.
class Disk {
 public:
  explicit Disk(IOStatus failure)
      : failure_(std::move(failure)) {}
  void fail_after(std::uint64_t writes) { left_ = writes; }
  void heal() { left_ = kNever; }
  bool has_failed() const { return has_failed_; }
  IOStatus write() {
    if (left_ == kNever) return IOStatus::OK();
    if (left_ > 0) {
      --left_;
      return IOStatus::OK();
    }
    has_failed_ = true;
    return failure_;
  }

 private:
  const IOStatus failure_;
  std::atomic<std::uint64_t> left_{kNever};  // RocksDB's own threads write too
  std::atomic<bool> has_failed_{false};
};

class FailingFile final : public rocksdb::FSWritableFileOwnerWrapper {
 public:
  FailingFile(std::unique_ptr<FSWritableFile> file, Disk& disk)
      : FSWritableFileOwnerWrapper(std::move(file)),
        disk_(disk) {}
  using FSWritableFileOwnerWrapper::Append;
  IOStatus Append(const Slice& data, const IOOptions& options, IODebugContext* debug) override {
    IOStatus done = disk_.write();
    return done.ok() ? target()->Append(data, options, debug) : done;
  }
  IOStatus Sync(const IOOptions& options, IODebugContext* debug) override {
    IOStatus done = disk_.write();
    return done.ok() ? target()->Sync(options, debug) : done;
  }
  IOStatus Close(const IOOptions& options, IODebugContext* debug) override {
    IOStatus done = disk_.write();
    return done.ok() ? target()->Close(options, debug) : done;
  }

 private:
  Disk& disk_;
};

class FailingFiles final : public rocksdb::FileSystemWrapper {
 public:
  FailingFiles(const std::shared_ptr<rocksdb::FileSystem>& base, Disk& disk)
      : FileSystemWrapper(base),
        disk_(disk) {}
  const char* Name() const override { return "FailingFiles"; }
  IOStatus NewWritableFile(const std::string& name,
                           const rocksdb::FileOptions& options,
                           std::unique_ptr<FSWritableFile>* file,
                           IODebugContext* debug) override {
    IOStatus done = disk_.write();
    if (!done.ok()) return done;
    std::unique_ptr<FSWritableFile> made;
    IOStatus opened = target()->NewWritableFile(name, options, &made, debug);
    if (opened.ok()) *file = std::make_unique<FailingFile>(std::move(made), disk_);
    return opened;
  }
  IOStatus RenameFile(const std::string& from,
                      const std::string& to,
                      const IOOptions& options,
                      IODebugContext* debug) override {
    IOStatus done = disk_.write();
    return done.ok() ? target()->RenameFile(from, to, options, debug) : done;
  }

 private:
  Disk& disk_;
};

class FailingDisk {
 public:
  explicit FailingDisk(IOStatus failure)
      : disk(std::move(failure)) {}
  Result<std::unique_ptr<KeyValue>> open() { return open_rocksdb_on(files_, "/db", clock); }

  void remove_all() {
    std::vector<std::string> names;
    EXPECT_TRUE(memory_->GetChildren("/db", &names).ok());
    for (const std::string& name : names)
      memory_->DeleteFile("/db/" + name).PermitUncheckedError();
  }

  Disk disk;
  testing::ManualClock clock;

 private:
  const std::unique_ptr<rocksdb::Env> memory_{rocksdb::NewMemEnv(rocksdb::Env::Default())};
  const std::shared_ptr<rocksdb::FileSystem> files_ =
      std::make_shared<FailingFiles>(memory_->GetFileSystem(), disk);
};

Status put(KeyValue& store, const std::string& key, const std::string& value) {
  return store.write({{Table::kNamespaces, key, value}}, true);
}

// What was answered well is there, whatever fails before and after; what failed may be there or
// not, but never half.
void expect_kept(KeyValue& store, const std::vector<std::string>& kept, const std::string& value) {
  for (const std::string& key : kept) {
    const auto got = store.get(Table::kNamespaces, key);
    ASSERT_TRUE(got.has_value()) << key << ": " << got.error().what;
    ASSERT_TRUE(got->has_value()) << key;
    ASSERT_EQ(**got, value) << key;
  }
}

// True when the disk failed within the workload.
bool run_with_failure_at(std::uint64_t nth, const IOStatus& failure, const std::string& value) {
  constexpr int kWrites = 4;
  FailingDisk machine(failure);
  machine.disk.fail_after(nth);
  auto store = machine.open();
  if (!store) {
    EXPECT_TRUE(machine.disk.has_failed());
    EXPECT_EQ(store.error().code, failure.IsNoSpace() ? ErrorCode::kNoSpace : ErrorCode::kIo);
    machine.disk.heal();
    store = machine.open();
    EXPECT_TRUE(store.has_value()) << store.error().what;
    if (!store) return true;
  }
  std::vector<std::string> kept;
  for (int i = 0; i < kWrites; ++i) {
    const std::string key = "key" + std::to_string(i);
    if (put(**store, key, value)) {
      kept.push_back(key);
    } else {
      EXPECT_TRUE(machine.disk.has_failed());
      machine.disk.heal();
      machine.clock.advance(kPauseMax);
    }
  }
  machine.disk.heal();
  // A failure that nobody has been told of yet is told here; the call after it finds all.
  static_cast<void>((*store)->get(Table::kMeta, "any"));
  machine.clock.advance(kPauseMax);
  expect_kept(**store, kept, value);
  store->reset();
  store = machine.open();
  EXPECT_TRUE(store.has_value());
  if (store) expect_kept(**store, kept, value);
  return machine.disk.has_failed();
}

void sweep(const IOStatus& failure, const std::string& value, std::uint64_t step = 1) {
  constexpr std::uint64_t kMost = 2'000;
  std::uint64_t nth = 0;
  while (nth < kMost && run_with_failure_at(nth, failure, value)) {
    ASSERT_FALSE(::testing::Test::HasFailure()) << "after " << nth << " writes";
    nth += step;
  }
  EXPECT_GT(nth, 20U);
  EXPECT_LT(nth, kMost);
}

TEST(RocksdbFiles, AFullDiskAtEveryWriteLosesNothingThatWasPromised) {
  sweep(IOStatus::NoSpace("full"), "value");
}

TEST(RocksdbFiles, AnInputOutputErrorAtEveryWriteLosesNothingThatWasPromised) {
  sweep(IOStatus::IOError("broken"), "value");
}

// Values that fill a write buffer, so that flushes and new logs are under way as well. Every third
// write, since these take their time.
TEST(RocksdbFiles, NorDoesOneUnderAFlush) {
  sweep(IOStatus::NoSpace("full"), std::string(400'000, 'v'), 3);
}

TEST(RocksdbFiles, IsOpenedAnewOnceAPauseAndThePauseGrows) {
  FailingDisk machine(IOStatus::NoSpace("full"));
  auto store = machine.open();
  ASSERT_TRUE(store.has_value());
  ASSERT_TRUE(put(**store, "a", "1"));
  machine.disk.fail_after(0);
  EXPECT_EQ(put(**store, "b", "2").error().code, ErrorCode::kNoSpace);
  // A second after the first opening and a second after that one, both of which fail.
  for (int i = 0; i < 2; ++i) {
    machine.clock.advance(Milliseconds(1'000));
    EXPECT_EQ(put(**store, "c", "3").error().code, ErrorCode::kNoSpace);
  }
  machine.disk.heal();
  machine.clock.advance(Milliseconds(1'999));
  EXPECT_EQ((*store)->get(Table::kNamespaces, "a").error().code, ErrorCode::kNoSpace);
  machine.clock.advance(Milliseconds(1));
  EXPECT_TRUE(put(**store, "c", "3"));
  EXPECT_EQ((*store)->get(Table::kNamespaces, "a").value(), "1");
}

// A drive that comes back empty is not a store without rows.
TEST(RocksdbFiles, MakesNoNewDatabaseWhereOneWas) {
  FailingDisk machine(IOStatus::IOError("broken"));
  auto store = machine.open();
  ASSERT_TRUE(store.has_value());
  ASSERT_TRUE(put(**store, "a", "1"));
  machine.disk.fail_after(0);
  EXPECT_FALSE(put(**store, "b", "2"));
  machine.disk.heal();
  machine.remove_all();
  machine.clock.advance(kPauseMax);
  EXPECT_FALSE(put(**store, "c", "3"));
  EXPECT_FALSE((*store)->get(Table::kNamespaces, "a").has_value());
}

}  // namespace
}  // namespace cairn::storage
