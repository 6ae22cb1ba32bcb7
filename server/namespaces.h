// Namespaces by canonical fingerprint: digest, epoch, slot. Durable through the KeyValue seam; a
// purge is recorded (synced) before anybody is told its epoch.
#pragma once

#include "base/block_key.h"
#include "base/clock.h"
#include "base/result.h"
#include "storage/store.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace cairn::storage {
class KeyValue;
}

namespace cairn::server {

struct NamespaceEntry {
  NamespaceDigest digest;
  storage::NamespaceSlot slot;
  std::uint64_t epoch = 0;
};

// The RFC 8785 form of `fingerprint`, a JSON object of integers and strings (nested objects and
// arrays of them allowed, absent or null fields left out). Errors: kInvalid; `message` says what
// and where.
Result<std::string> canonical_fingerprint(std::string_view fingerprint, std::string& message);
// The first 16 bytes of its SHA-256.
NamespaceDigest namespace_digest(std::string_view canonical);

// Any thread.
class NamespaceRegistry {
 public:
  // Reads what is stored. Errors: kIo, kCorrupt, kVersion.
  static Result<std::unique_ptr<NamespaceRegistry>> open(storage::KeyValue& key_value,
                                                         const Clock& clock) noexcept;
  ~NamespaceRegistry();
  NamespaceRegistry(const NamespaceRegistry&) = delete;
  NamespaceRegistry& operator=(const NamespaceRegistry&) = delete;

  // Opens, making it (durably) at the first time. Errors: kInvalid (`message` says why), kNoSpace
  // (kNamespacesMax), kIo (it could not be stored, or what is stored could not be read).
  Result<NamespaceEntry> open_namespace(std::string_view fingerprint,
                                        std::string& message) noexcept;
  std::optional<NamespaceEntry> find(const NamespaceDigest& digest) const noexcept;
  // Raises the epoch to max(previous + 1, Unix ms), synced before it returns; the caller then tells
  // the store. Errors: kNotFound, kIo (the write failed: it is looked at again before the next
  // change).
  Result<NamespaceEntry> purge(const NamespaceDigest& digest) noexcept;
  // The failure of the last write; nullopt: it succeeded, or there was none.
  std::optional<Error> write_failure() const noexcept;
  std::vector<NamespaceEntry> all() const;
  // The canonical form, for people.
  std::optional<std::string> fingerprint(const NamespaceDigest& digest) const;

 private:
  class Impl;
  explicit NamespaceRegistry(std::unique_ptr<Impl> impl) noexcept;
  std::unique_ptr<Impl> impl_;
};

}  // namespace cairn::server
