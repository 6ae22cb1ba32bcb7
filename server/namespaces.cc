#include "server/namespaces.h"

#include "base/check.h"
#include "base/mutex.h"
#include "server/canonical_json.h"
#include "storage/key_value.h"

#include <openssl/evp.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <unordered_map>
#include <utility>

namespace cairn::server {
namespace {

using storage::KeyValueWrite;
using storage::NamespaceSlot;
using storage::Table;

// A row: version (1 byte), three zero bytes, slot (4), epoch (8), both little-endian, then the
// canonical fingerprint. Its key is the digest.
constexpr unsigned char kRowVersion = 1;
constexpr std::size_t kSlotAt = 4;
constexpr std::size_t kEpochAt = 8;
constexpr std::size_t kFingerprintAt = 16;

struct Row {
  NamespaceEntry entry;
  std::string fingerprint;
};

std::string key_of(const NamespaceDigest& digest) {
  std::string key(digest.bytes.size(), '\0');
  std::memcpy(key.data(), digest.bytes.data(), key.size());
  return key;
}

void put_integer(std::string& row, std::size_t at, std::size_t bytes, std::uint64_t value) {
  for (std::size_t i = 0; i < bytes; ++i) {
    row[at + i] = static_cast<char>((value >> (8 * i)) & 0xFFU);
  }
}

std::uint64_t take_integer(const std::string& row, std::size_t at, std::size_t bytes) {
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < bytes; ++i) {
    value |= std::uint64_t{static_cast<unsigned char>(row[at + i])} << (8 * i);
  }
  return value;
}

std::string encode(const Row& row) {
  std::string bytes(kFingerprintAt, '\0');
  bytes[0] = static_cast<char>(kRowVersion);
  put_integer(bytes, kSlotAt, 4, row.entry.slot.value());
  put_integer(bytes, kEpochAt, 8, row.entry.epoch);
  return bytes + row.fingerprint;
}

Result<Row> decode(const std::string& key, const std::string& bytes) {
  constexpr Error kBad{ErrorCode::kCorrupt, 0, "namespace row"};
  if (bytes.size() < kFingerprintAt) return kBad;
  const auto version = static_cast<unsigned char>(bytes[0]);
  if (version > kRowVersion) return Error{ErrorCode::kVersion, version, "namespace row"};
  if (version != kRowVersion || bytes[1] != 0 || bytes[2] != 0 || bytes[3] != 0) return kBad;
  Row row;
  row.entry.slot = NamespaceSlot(static_cast<std::uint32_t>(take_integer(bytes, kSlotAt, 4)));
  row.entry.epoch = take_integer(bytes, kEpochAt, 8);
  row.fingerprint = bytes.substr(kFingerprintAt);
  row.entry.digest = namespace_digest(row.fingerprint);
  if (row.entry.epoch == 0 || key_of(row.entry.digest) != key) return kBad;
  return row;
}

}  // namespace

Result<std::string> canonical_fingerprint(std::string_view fingerprint, std::string& message) {
  return canonical_json(fingerprint, message);
}

NamespaceDigest namespace_digest(std::string_view canonical) {
  std::array<unsigned char, EVP_MAX_MD_SIZE> hash{};
  unsigned int bytes = 0;
  const int done = ::EVP_Digest(
      canonical.data(), canonical.size(), hash.data(), &bytes, ::EVP_sha256(), nullptr);
  CAIRN_CHECK(done == 1);
  NamespaceDigest digest;
  CAIRN_CHECK(bytes >= digest.bytes.size());
  std::memcpy(digest.bytes.data(), hash.data(), digest.bytes.size());
  return digest;
}

// Lock order: change_ before state_. A change holds change_ while it is synced, so that changes
// follow one another; state_ is held for moments only, so that nobody's find() waits for a disk.
class NamespaceRegistry::Impl {
 public:
  Impl(storage::KeyValue& key_value, const Clock& clock)
      : key_value_(key_value),
        clock_(clock) {}

  static std::unique_ptr<NamespaceRegistry> owned(std::unique_ptr<Impl> impl) {
    return std::unique_ptr<NamespaceRegistry>(new NamespaceRegistry(std::move(impl)));
  }

  Status load() {
    CAIRN_TRY(const auto rows, key_value_.scan(Table::kNamespaces));
    std::vector<bool> is_taken(rows.size(), false);
    const MutexLock lock(state_);
    for (const auto& [key, bytes] : rows) {
      CAIRN_TRY(const Row row, decode(key, bytes));
      // Slots are given from 0 up and never taken back, so they are exactly [0, rows).
      const std::uint32_t slot = row.entry.slot.value();
      if (slot >= is_taken.size() || slot >= storage::kNamespacesMax || is_taken[slot]) {
        return Error{ErrorCode::kCorrupt, 0, "namespace slot"};
      }
      is_taken[slot] = true;
      entries_.emplace(row.entry.digest, row.entry);
    }
    return {};
  }

  std::optional<NamespaceEntry> find(const NamespaceDigest& digest) const {
    const MutexLock lock(state_);
    const auto found = entries_.find(digest);
    if (found == entries_.end()) return std::nullopt;
    return found->second;
  }

  Result<NamespaceEntry> open(std::string_view fingerprint, std::string& message) {
    CAIRN_TRY(std::string canonical, canonical_fingerprint(fingerprint, message));
    const NamespaceDigest digest = namespace_digest(canonical);
    if (const auto known = find(digest)) return *known;
    const MutexLock change(change_);
    CAIRN_TRY_STATUS(settle_doubts());
    if (const auto known = find(digest)) return *known;
    const std::size_t count = size();
    if (count >= storage::kNamespacesMax) {
      message = "this node holds " + std::to_string(count) + " namespaces, the most it can";
      return Error{ErrorCode::kNoSpace, 0, "namespaces"};
    }
    const NamespaceSlot slot(static_cast<std::uint32_t>(count));
    return store({{digest, slot, next_epoch(0)}, std::move(canonical)});
  }

  Result<NamespaceEntry> purge(const NamespaceDigest& digest) {
    const MutexLock change(change_);
    if (!find(digest)) return Error{ErrorCode::kNotFound, 0, "namespace"};
    CAIRN_TRY_STATUS(settle_doubts());
    const std::optional<NamespaceEntry> known = find(digest);
    CAIRN_TRY(Row row, read(digest));
    row.entry.slot = known->slot;
    row.entry.epoch = next_epoch(known->epoch);
    return store(row);
  }

  std::vector<NamespaceEntry> all() const {
    std::vector<NamespaceEntry> result;
    {
      const MutexLock lock(state_);
      result.reserve(entries_.size());
      for (const auto& [digest, entry] : entries_)
        result.push_back(entry);
    }
    std::sort(
        result.begin(), result.end(), [](const auto& a, const auto& b) { return a.slot < b.slot; });
    return result;
  }

  std::optional<Error> write_failure() const {
    const MutexLock lock(state_);
    return write_failure_;
  }

  Result<Row> read(const NamespaceDigest& digest) const {
    const std::string key = key_of(digest);
    CAIRN_TRY(const std::optional<std::string> bytes, key_value_.get(Table::kNamespaces, key));
    if (!bytes) return Error{ErrorCode::kNotFound, 0, "namespace row"};
    return decode(key, *bytes);
  }

 private:
  std::size_t size() const {
    const MutexLock lock(state_);
    return entries_.size();
  }

  std::uint64_t next_epoch(std::uint64_t previous) const {
    return std::max(previous + 1, clock_.unix_ms());
  }

  // On stable storage first. After a failure the row may be there or not: it is in doubt until it
  // can be read.
  Result<NamespaceEntry> store(const Row& row) CAIRN_REQUIRES(change_) {
    const KeyValueWrite write{Table::kNamespaces, key_of(row.entry.digest), encode(row)};
    const Status written = key_value_.write({write}, true);
    note_write(written);
    if (!written) {
      doubts_.push_back(row.entry.digest);
      return Error{ErrorCode::kIo, written.error().sys, written.error().what};
    }
    adopt(row.entry);
    return row.entry;
  }

  void note_write(const Status& written) {
    const MutexLock lock(state_);
    write_failure_.reset();
    if (!written) write_failure_ = written.error();
  }

  void adopt(const NamespaceEntry& entry) {
    const MutexLock lock(state_);
    entries_.insert_or_assign(entry.digest, entry);
  }

  // Else a slot could be given twice, or an epoch that a purge has left behind be served again.
  Status settle_doubts() CAIRN_REQUIRES(change_) {
    while (!doubts_.empty()) {
      const Result<Row> row = read(doubts_.back());
      if (!row && row.error().code != ErrorCode::kNotFound) {
        return Error{ErrorCode::kIo, row.error().sys, row.error().what};
      }
      if (row) adopt(row->entry);
      doubts_.pop_back();
    }
    return {};
  }

  storage::KeyValue& key_value_;
  const Clock& clock_;
  Mutex change_;
  std::vector<NamespaceDigest> doubts_ CAIRN_GUARDED_BY(change_);
  mutable Mutex state_;
  std::unordered_map<NamespaceDigest, NamespaceEntry> entries_ CAIRN_GUARDED_BY(state_);
  std::optional<Error> write_failure_ CAIRN_GUARDED_BY(state_);
};

NamespaceRegistry::NamespaceRegistry(std::unique_ptr<Impl> impl) noexcept
    : impl_(std::move(impl)) {}

NamespaceRegistry::~NamespaceRegistry() = default;

Result<std::unique_ptr<NamespaceRegistry>> NamespaceRegistry::open(storage::KeyValue& key_value,
                                                                   const Clock& clock) noexcept {
  auto impl = std::make_unique<Impl>(key_value, clock);
  CAIRN_TRY_STATUS(impl->load());
  return Impl::owned(std::move(impl));
}

Result<NamespaceEntry> NamespaceRegistry::open_namespace(std::string_view fingerprint,
                                                         std::string& message) noexcept {
  return impl_->open(fingerprint, message);
}

std::optional<NamespaceEntry> NamespaceRegistry::find(
    const NamespaceDigest& digest) const noexcept {
  return impl_->find(digest);
}

Result<NamespaceEntry> NamespaceRegistry::purge(const NamespaceDigest& digest) noexcept {
  Result<NamespaceEntry> result = impl_->purge(digest);
  if (!result && result.error().code != ErrorCode::kNotFound) {
    return Error{ErrorCode::kIo, result.error().sys, result.error().what};
  }
  return result;
}

std::optional<Error> NamespaceRegistry::write_failure() const noexcept {
  return impl_->write_failure();
}

std::vector<NamespaceEntry> NamespaceRegistry::all() const {
  return impl_->all();
}

std::optional<std::string> NamespaceRegistry::fingerprint(const NamespaceDigest& digest) const {
  Result<Row> row = impl_->read(digest);
  if (!row) return std::nullopt;
  return std::move(row->fingerprint);
}

}  // namespace cairn::server
