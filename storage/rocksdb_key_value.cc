#include "storage/rocksdb_key_value.h"

#include "base/clock.h"
#include "base/mutex.h"
#include "storage/key_value.h"
#include "storage/rocksdb_files.h"

#include <rocksdb/cache.h>
#include <rocksdb/db.h>
#include <rocksdb/env.h>
#include <rocksdb/filter_policy.h>
#include <rocksdb/table.h>
#include <rocksdb/write_batch.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <exception>
#include <memory>
#include <utility>

namespace cairn::storage {
namespace {

constexpr std::array<const char*, kTableCount> kTableNames = {"meta", "seg", "heat", "ns", "pin"};
constexpr int kOpenFilesMax = 64;
constexpr ByteCount kWriteBufferBytes = 1_MiB;
constexpr ByteCount kInfoLogBytes = 1_MiB;
constexpr std::size_t kInfoLogsMax = 2;
// Between two openings of a database whose files have failed, the first time and at most: each
// failed one may leave files behind that only a good one removes.
constexpr Milliseconds kReopenPauseMin(1'000);
constexpr Milliseconds kReopenPauseMax(60'000);

Error error_of(const rocksdb::Status& status, const char* what) {
  return {status.IsCorruption() ? ErrorCode::kCorrupt : ErrorCode::kIo, 0, what};
}

// RocksDB tells a lock that is held only by its text; the contract suite watches these words.
bool is_lock_failure(const rocksdb::Status& status) {
  const std::string text = status.ToString();
  return text.find("lock file") != std::string::npos ||
         text.find("lock hold by current process") != std::string::npos;
}

// Runs `work` and turns whatever RocksDB or the allocator throws into kIo.
template <typename Work>
auto confined(const char* what, Work&& work) noexcept -> decltype(work()) {
  try {
    return work();
  } catch (const std::exception&) {
    return Error{ErrorCode::kIo, 0, what};
  }
}

rocksdb::ColumnFamilyOptions table_options() {
  rocksdb::BlockBasedTableOptions blocks;
  blocks.block_cache = rocksdb::NewLRUCache(kKeyValueCacheBytes.value());
  blocks.cache_index_and_filter_blocks = true;
  blocks.block_size = (4_KiB).value();
  blocks.checksum = rocksdb::kXXH3;
  blocks.format_version = 5;
  blocks.filter_policy.reset(rocksdb::NewBloomFilterPolicy(10));
  rocksdb::ColumnFamilyOptions options;
  options.compression = rocksdb::kNoCompression;
  options.write_buffer_size = kWriteBufferBytes.value();
  options.level_compaction_dynamic_level_bytes = true;
  options.table_factory.reset(rocksdb::NewBlockBasedTableFactory(blocks));
  return options;
}

rocksdb::DBOptions database_options(rocksdb::Env* env, bool may_create) {
  rocksdb::DBOptions options;
  options.env = env;
  options.create_if_missing = may_create;
  options.create_missing_column_families = may_create;
  options.paranoid_checks = true;
  options.wal_recovery_mode = rocksdb::WALRecoveryMode::kPointInTimeRecovery;
  options.max_total_wal_size = kKeyValueLogMax.value();
  options.db_write_buffer_size = kKeyValueWriteBuffersMax.value();
  options.max_background_jobs = 2;
  options.max_open_files = kOpenFilesMax;
  options.bytes_per_sync = (1_MiB).value();
  options.stats_dump_period_sec = 0;
  options.stats_persist_period_sec = 0;
  options.info_log_level = rocksdb::InfoLogLevel::WARN_LEVEL;
  options.max_log_file_size = kInfoLogBytes.value();
  options.keep_log_file_num = kInfoLogsMax;
  return options;
}

std::string format_row(std::uint32_t version) {
  std::string bytes(sizeof version, '\0');
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    bytes[i] = static_cast<char>((version >> (8 * i)) & 0xFFU);
  }
  return bytes;
}

Result<std::uint32_t> version_of(const std::string& row) {
  if (row.size() != sizeof(std::uint32_t)) return Error{ErrorCode::kCorrupt, 0, "format row"};
  std::uint32_t version = 0;
  for (std::size_t i = 0; i < row.size(); ++i) {
    version |= std::uint32_t{static_cast<unsigned char>(row[i])} << (8 * i);
  }
  return version;
}

// One opening of the database, and the guard of its files.
class Database {
 public:
  explicit Database(const std::shared_ptr<rocksdb::FileSystem>& files)
      : files_(std::make_shared<GuardedFiles>(files)),
        env_(rocksdb::NewCompositeEnv(files_)) {}
  ~Database() {
    if (database_ == nullptr) return;
    for (rocksdb::ColumnFamilyHandle* handle : handles_) {
      database_->DestroyColumnFamilyHandle(handle).PermitUncheckedError();
    }
    // What was not asked to be synced may be lost, so a failure to close costs nothing promised.
    database_->Close().PermitUncheckedError();
  }
  Database(const Database&) = delete;
  Database& operator=(const Database&) = delete;

  Status open(const std::string& directory, bool may_create);
  std::optional<Error> failure() const noexcept { return files_->guard().failure(); }
  rocksdb::DB& operator*() const noexcept { return *database_; }
  rocksdb::DB* operator->() const noexcept { return database_.get(); }
  rocksdb::ColumnFamilyHandle* handle(Table table) const {
    return tables_[static_cast<std::size_t>(table)];
  }

 private:
  std::shared_ptr<GuardedFiles> files_;
  std::unique_ptr<rocksdb::Env> env_;  // outlives the database on it
  std::unique_ptr<rocksdb::DB> database_;
  std::vector<rocksdb::ColumnFamilyHandle*> handles_;
  std::array<rocksdb::ColumnFamilyHandle*, kTableCount> tables_{};
};

Status Database::open(const std::string& directory, bool may_create) {
  const rocksdb::DBOptions options = database_options(env_.get(), may_create);
  // A newer version may have tables that we do not know; they are opened too, so that its format
  // row can be read and named.
  std::vector<std::string> names;
  rocksdb::DB::ListColumnFamilies(options, directory, &names).PermitUncheckedError();
  const auto add_missing = [&names](const char* name) {
    if (std::find(names.begin(), names.end(), name) == names.end()) names.emplace_back(name);
  };
  add_missing(rocksdb::kDefaultColumnFamilyName.c_str());
  for (const char* name : kTableNames)
    add_missing(name);
  const rocksdb::ColumnFamilyOptions of_table = table_options();
  std::vector<rocksdb::ColumnFamilyDescriptor> families;
  families.reserve(names.size());
  for (const std::string& name : names)
    families.emplace_back(name, of_table);

  rocksdb::DB* opened = nullptr;
  const rocksdb::Status status =
      rocksdb::DB::Open(options, directory, families, &handles_, &opened);
  if (status.ok()) database_.reset(opened);
  if (const auto failed = failure()) return *failed;
  if (!status.ok()) {
    if (is_lock_failure(status)) return Error{ErrorCode::kLocked, 0, "rocksdb open"};
    return error_of(status, "rocksdb open");
  }
  for (std::size_t i = 0; i < kTableCount; ++i) {
    const auto at = std::find(names.begin(), names.end(), kTableNames[i]);
    tables_[i] = handles_[static_cast<std::size_t>(at - names.begin())];
  }
  return {};
}

class RocksdbKeyValue final : public KeyValue {
 public:
  RocksdbKeyValue(std::shared_ptr<rocksdb::FileSystem> files,
                  std::string directory,
                  const Clock& clock)
      : files_(std::move(files)),
        directory_(std::move(directory)),
        clock_(clock) {}

  // The first opening, which makes what is not there.
  Status open() noexcept;
  Status check_format();

  Result<std::optional<std::string>> get(Table table, std::string_view key) noexcept override;
  Status write(const std::vector<KeyValueWrite>& writes, bool sync) noexcept override;
  Result<std::vector<std::pair<std::string, std::string>>> scan(Table table) noexcept override;

 private:
  template <typename Work>
  auto on_database(const char* what, Work&& work) noexcept
      -> decltype(work(std::declval<Database&>()));
  Status open_database(bool may_create) CAIRN_REQUIRES(mutex_);

  const std::shared_ptr<rocksdb::FileSystem> files_;
  const std::string directory_;
  const Clock& clock_;
  Mutex mutex_;
  std::unique_ptr<Database> database_ CAIRN_GUARDED_BY(mutex_);  // nullptr: it has failed
  Error failure_ CAIRN_GUARDED_BY(mutex_){ErrorCode::kIo, 0, "rocksdb"};
  MonotonicTime next_opening_ CAIRN_GUARDED_BY(mutex_);
  Nanoseconds pause_ CAIRN_GUARDED_BY(mutex_) = kReopenPauseMin;
};

Status RocksdbKeyValue::open() noexcept {
  return confined("rocksdb open", [&]() -> Status {
    const MutexLock lock(mutex_);
    return open_database(true);
  });
}

Status RocksdbKeyValue::open_database(bool may_create) {
  next_opening_ = clock_.now() + pause_;
  pause_ = std::min<Nanoseconds>(2 * pause_, kReopenPauseMax);
  auto database = std::make_unique<Database>(files_);
  if (const Status opened = database->open(directory_, may_create); !opened) {
    failure_ = opened.error();
    return opened;
  }
  database_ = std::move(database);
  return {};
}

// Runs `work` on the database, opening it anew after a failure of its files. Nothing that it
// answers counts once they have failed.
template <typename Work>
auto RocksdbKeyValue::on_database(const char* what, Work&& work) noexcept
    -> decltype(work(std::declval<Database&>())) {
  return confined(what, [&]() -> decltype(work(std::declval<Database&>())) {
    const MutexLock lock(mutex_);
    if (database_ == nullptr) {
      if (clock_.now() < next_opening_) return failure_;
      // What is not there any more has not been lost by us, and is not made anew.
      if (const Status opened = open_database(false); !opened) return opened.error();
    }
    auto result = work(*database_);
    if (const auto failed = database_->failure()) {
      failure_ = *failed;
      database_.reset();
      return failure_;
    }
    pause_ = kReopenPauseMin;
    return result;
  });
}

Status RocksdbKeyValue::check_format() {
  CAIRN_TRY(const std::optional<std::string> row, get(Table::kMeta, kKeyValueFormatKey));
  if (row) {
    CAIRN_TRY(const std::uint32_t version, version_of(*row));
    if (version == 0) return Error{ErrorCode::kCorrupt, 0, "format row"};
    if (version > kKeyValueFormat) {
      return Error{ErrorCode::kVersion, static_cast<std::int32_t>(version), "format row"};
    }
    return {};
  }
  for (std::size_t i = 0; i < kTableCount; ++i) {
    CAIRN_TRY(const auto rows, scan(static_cast<Table>(i)));
    if (!rows.empty()) return Error{ErrorCode::kCorrupt, 0, "no format row"};
  }
  return write({{Table::kMeta, std::string(kKeyValueFormatKey), format_row(kKeyValueFormat)}},
               true);
}

Result<std::optional<std::string>> RocksdbKeyValue::get(Table table,
                                                        std::string_view key) noexcept {
  return on_database("rocksdb get", [&](Database& database) -> Result<std::optional<std::string>> {
    std::string value;
    const rocksdb::Status status =
        database->Get(rocksdb::ReadOptions(), database.handle(table), rocksdb::Slice(key), &value);
    if (status.IsNotFound()) return std::optional<std::string>();
    if (!status.ok()) return error_of(status, "rocksdb get");
    return std::optional<std::string>(std::move(value));
  });
}

Status RocksdbKeyValue::write(const std::vector<KeyValueWrite>& writes, bool sync) noexcept {
  return on_database("rocksdb write", [&](Database& database) -> Status {
    rocksdb::WriteBatch batch;
    for (const KeyValueWrite& write : writes) {
      rocksdb::ColumnFamilyHandle* const table = database.handle(write.table);
      const rocksdb::Status added =
          write.value ? batch.Put(table, write.key, *write.value) : batch.Delete(table, write.key);
      if (!added.ok()) return error_of(added, "rocksdb batch");
    }
    rocksdb::WriteOptions options;
    options.sync = sync;
    const rocksdb::Status status = database->Write(options, &batch);
    if (!status.ok()) return error_of(status, "rocksdb write");
    return {};
  });
}

Result<std::vector<std::pair<std::string, std::string>>> RocksdbKeyValue::scan(
    Table table) noexcept {
  using Rows = std::vector<std::pair<std::string, std::string>>;
  return on_database("rocksdb scan", [&](Database& database) -> Result<Rows> {
    Rows rows;
    const std::unique_ptr<rocksdb::Iterator> row(
        database->NewIterator(rocksdb::ReadOptions(), database.handle(table)));
    for (row->SeekToFirst(); row->Valid(); row->Next()) {
      rows.emplace_back(row->key().ToString(), row->value().ToString());
    }
    if (!row->status().ok()) return error_of(row->status(), "rocksdb scan");
    return rows;
  });
}

Status prepare_directory(const std::string& directory) {
  if (::mkdir(directory.c_str(), 0700) != 0 && errno != EEXIST) {
    const bool is_refused = errno == EACCES || errno == EPERM || errno == EROFS;
    return Error{is_refused ? ErrorCode::kPermission : ErrorCode::kIo, errno, "mkdir"};
  }
  if (::access(directory.c_str(), R_OK | W_OK | X_OK) != 0) {
    const bool is_refused = errno == EACCES || errno == EROFS;
    return Error{is_refused ? ErrorCode::kPermission : ErrorCode::kIo, errno, "access"};
  }
  return {};
}

}  // namespace

Result<std::unique_ptr<KeyValue>> open_rocksdb(const KeyValueOptions& options) noexcept {
  static const SystemClock clock;
  if (options.in_memory) {
    // The file system outlives the environment that it came with.
    const std::unique_ptr<rocksdb::Env> memory(rocksdb::NewMemEnv(rocksdb::Env::Default()));
    return open_rocksdb_on(memory->GetFileSystem(), "/cairn", clock);
  }
  CAIRN_TRY_STATUS(prepare_directory(options.directory));
  return open_rocksdb_on(rocksdb::FileSystem::Default(), options.directory, clock);
}

Result<std::unique_ptr<KeyValue>> open_rocksdb_on(const std::shared_ptr<rocksdb::FileSystem>& files,
                                                  const std::string& directory,
                                                  const Clock& clock) noexcept {
  return confined("rocksdb open", [&]() -> Result<std::unique_ptr<KeyValue>> {
    auto key_value = std::make_unique<RocksdbKeyValue>(files, directory, clock);
    CAIRN_TRY_STATUS(key_value->open());
    CAIRN_TRY_STATUS(key_value->check_format());
    return std::unique_ptr<KeyValue>(std::move(key_value));
  });
}

}  // namespace cairn::storage
