#include "storage/rocksdb_key_value.h"

#include "storage/key_value.h"

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

namespace cairn::storage {
namespace {

constexpr std::array<const char*, kTableCount> kTableNames = {"meta", "seg", "heat", "ns", "pin"};
constexpr int kOpenFilesMax = 64;
constexpr ByteCount kWriteBufferBytes = 1_MiB;
constexpr ByteCount kInfoLogBytes = 1_MiB;
constexpr std::size_t kInfoLogsMax = 2;

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

rocksdb::DBOptions database_options(rocksdb::Env* env) {
  rocksdb::DBOptions options;
  options.env = env;
  options.create_if_missing = true;
  options.create_missing_column_families = true;
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

class RocksdbKeyValue final : public KeyValue {
 public:
  explicit RocksdbKeyValue(std::unique_ptr<rocksdb::Env> memory)
      : memory_(std::move(memory)) {}
  ~RocksdbKeyValue() override {
    if (database_ == nullptr) return;
    for (rocksdb::ColumnFamilyHandle* handle : handles_) {
      database_->DestroyColumnFamilyHandle(handle).PermitUncheckedError();
    }
    // What was not asked to be synced may be lost, so a failure to close costs nothing promised.
    database_->Close().PermitUncheckedError();
  }
  RocksdbKeyValue(const RocksdbKeyValue&) = delete;
  RocksdbKeyValue& operator=(const RocksdbKeyValue&) = delete;

  Status open(const std::string& directory);
  Status check_format();

  Result<std::optional<std::string>> get(Table table, std::string_view key) noexcept override;
  Status write(const std::vector<KeyValueWrite>& writes, bool sync) noexcept override;
  Result<std::vector<std::pair<std::string, std::string>>> scan(Table table) noexcept override;

 private:
  rocksdb::ColumnFamilyHandle* handle(Table table) const {
    return tables_[static_cast<std::size_t>(table)];
  }

  std::unique_ptr<rocksdb::Env> memory_;  // outlives the database on it
  std::unique_ptr<rocksdb::DB> database_;
  std::vector<rocksdb::ColumnFamilyHandle*> handles_;
  std::array<rocksdb::ColumnFamilyHandle*, kTableCount> tables_{};
};

Status RocksdbKeyValue::open(const std::string& directory) {
  rocksdb::Env* env = memory_ != nullptr ? memory_.get() : rocksdb::Env::Default();
  const rocksdb::DBOptions options = database_options(env);
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
  if (!status.ok()) {
    if (is_lock_failure(status)) return Error{ErrorCode::kLocked, 0, "rocksdb open"};
    return error_of(status, "rocksdb open");
  }
  database_.reset(opened);
  for (std::size_t i = 0; i < kTableCount; ++i) {
    const auto at = std::find(names.begin(), names.end(), kTableNames[i]);
    tables_[i] = handles_[static_cast<std::size_t>(at - names.begin())];
  }
  return {};
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
  return confined("rocksdb get", [&]() -> Result<std::optional<std::string>> {
    std::string value;
    const rocksdb::Status status =
        database_->Get(rocksdb::ReadOptions(), handle(table), rocksdb::Slice(key), &value);
    if (status.IsNotFound()) return std::optional<std::string>();
    if (!status.ok()) return error_of(status, "rocksdb get");
    return std::optional<std::string>(std::move(value));
  });
}

Status RocksdbKeyValue::write(const std::vector<KeyValueWrite>& writes, bool sync) noexcept {
  return confined("rocksdb write", [&]() -> Status {
    rocksdb::WriteBatch batch;
    for (const KeyValueWrite& write : writes) {
      const rocksdb::Status added = write.value
                                        ? batch.Put(handle(write.table), write.key, *write.value)
                                        : batch.Delete(handle(write.table), write.key);
      if (!added.ok()) return error_of(added, "rocksdb batch");
    }
    rocksdb::WriteOptions options;
    options.sync = sync;
    const rocksdb::Status status = database_->Write(options, &batch);
    if (!status.ok()) return error_of(status, "rocksdb write");
    return {};
  });
}

Result<std::vector<std::pair<std::string, std::string>>> RocksdbKeyValue::scan(
    Table table) noexcept {
  using Rows = std::vector<std::pair<std::string, std::string>>;
  return confined("rocksdb scan", [&]() -> Result<Rows> {
    Rows rows;
    const std::unique_ptr<rocksdb::Iterator> row(
        database_->NewIterator(rocksdb::ReadOptions(), handle(table)));
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
  return confined("rocksdb open", [&]() -> Result<std::unique_ptr<KeyValue>> {
    std::unique_ptr<rocksdb::Env> memory;
    if (options.in_memory) {
      memory.reset(rocksdb::NewMemEnv(rocksdb::Env::Default()));
    } else {
      CAIRN_TRY_STATUS(prepare_directory(options.directory));
    }
    auto key_value = std::make_unique<RocksdbKeyValue>(std::move(memory));
    CAIRN_TRY_STATUS(key_value->open(options.in_memory ? "/cairn" : options.directory));
    CAIRN_TRY_STATUS(key_value->check_format());
    return std::unique_ptr<KeyValue>(std::move(key_value));
  });
}

}  // namespace cairn::storage
