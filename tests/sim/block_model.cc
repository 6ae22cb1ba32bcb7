#include "tests/sim/block_model.h"

#include "base/check.h"
#include "base/random.h"

#include <algorithm>
#include <array>
#include <cstring>

namespace cairn::testing {
namespace {

constexpr std::size_t kPageBytes = 4'096;
using Words = std::array<std::uint64_t, kPageBytes / sizeof(std::uint64_t)>;

}  // namespace

BlockDigest model_digest(std::uint32_t number) {
  std::array<std::byte, kBlockDigestBytesMin> bytes{};
  std::memcpy(bytes.data(), &number, sizeof(number));
  bytes.back() = std::byte{1};
  return *BlockDigest::from(bytes);
}

// Pages of one noise, each with its number, so that a body is made and compared fast. It begins
// with its id.
void BlockModel::make(const ModelKey& key, std::uint64_t id, std::span<std::byte> out) {
  std::uint64_t state = id * 31 + key.epoch * 7 + std::uint64_t{key.name_space} * 3 + key.number;
  Words words;
  for (std::uint64_t& word : words)
    word = splitmix64(state);
  std::uint64_t page = 0;
  for (std::size_t at = 0; at < out.size(); at += kPageBytes) {
    words[1] = page++;
    const std::size_t bytes = std::min(kPageBytes, out.size() - at);
    std::memcpy(out.data() + at, words.data(), bytes);
  }
  std::memcpy(out.data(), &id, sizeof(id));
}

BlockModel::Body BlockModel::new_body(const ModelKey& key, std::size_t bytes) {
  CAIRN_CHECK(bytes >= kBodyBytesMin);
  Body body{.id = next_id_++, .bytes = std::vector<std::byte>(bytes)};
  make(key, body.id, body.bytes);
  attempts_[key][body.id] = {.bytes = bytes};
  return body;
}

void BlockModel::put_ended(const ModelKey& key, std::uint64_t id, BlockStatus status) {
  switch (status) {
    case BlockStatus::kOk:
    case BlockStatus::kTimeout:
    case BlockStatus::kCancelled:
    case BlockStatus::kPeerLost:
      return;  // it may be there
    default:
      attempts_.at(key).at(id).is_refused = true;
  }
}

std::string BlockModel::check(const ModelKey& key,
                              std::span<const std::span<const std::byte>> pieces) const {
  std::vector<std::byte> bytes;
  for (const auto piece : pieces)
    bytes.insert(bytes.end(), piece.begin(), piece.end());
  if (bytes.size() < kBodyBytesMin) return "a body of " + std::to_string(bytes.size()) + " bytes";
  std::uint64_t id = 0;
  std::memcpy(&id, bytes.data(), sizeof(id));
  const std::string name = "body " + std::to_string(id) + " of key " + std::to_string(key.number);
  const auto of_key = attempts_.find(key);
  if (of_key == attempts_.end()) return name + ": nobody put this key in this epoch";
  const auto attempt = of_key->second.find(id);
  if (attempt == of_key->second.end()) return name + ": not a body of this key and epoch";
  if (attempt->second.is_refused) return name + ": its put was refused";
  if (attempt->second.bytes != bytes.size()) return name + ": of another length";
  std::vector<std::byte> expected(bytes.size());
  make(key, id, expected);
  return expected == bytes ? "" : name + ": mixed or changed bytes";
}

}  // namespace cairn::testing
