// A key as it is searched for, and whether a record holds it.
#pragma once

#include "base/block_key.h"
#include "base/checksum.h"
#include "storage/record.h"
#include "storage/store.h"

#include <array>
#include <cstdint>
#include <optional>
#include <span>

namespace cairn::storage {

struct BlockQuery {
  std::uint32_t slot = 0;
  std::uint64_t epoch = 0;
  DigestWords digest;
  std::uint64_t hash = 0;
  std::uint32_t tag() const noexcept { return static_cast<std::uint32_t>(hash >> 32U); }
};

// XXH3-64 over digest, its size and the namespace.
inline std::uint64_t key_hash(std::uint32_t slot, const DigestWords& digest) noexcept {
  const std::array<std::uint64_t, 5> words = {digest.words[0],
                                              digest.words[1],
                                              digest.words[2],
                                              digest.words[3],
                                              std::uint64_t{slot} << 8U | digest.bytes};
  return xxh3_64(std::as_bytes(std::span(words)));
}

inline BlockQuery query_of(const Scope& scope, const BlockDigest& digest) noexcept {
  const DigestWords words = digest_words(digest);
  return {scope.slot.value(), scope.epoch, words, key_hash(scope.slot.value(), words)};
}

// The generation in which a record is live and holds the key, or nullopt. Any thread: what was read
// belongs to one life of the record (BasicPinWord::is_still).
template <typename Atomics>
std::optional<std::uint32_t> match_record(const BasicRecord<Atomics>& record,
                                          const BlockQuery& query) noexcept {
  const PinView view = record.pin_word().view();
  if (view.state != RecordState::kLive) return std::nullopt;
  if (!record.has_key(query.slot, query.digest) || record.epoch() != query.epoch)
    return std::nullopt;
  if (!record.pin_word().is_still(view.generation)) return std::nullopt;
  return view.generation;
}

}  // namespace cairn::storage
