// What the blocks of a simulated world may hold: every body that somebody tried to put, by
// namespace, epoch and key. A body names itself, so whoever reads one can say which it is.
#pragma once

#include "base/block_key.h"
#include "base/block_status.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <tuple>
#include <vector>

namespace cairn::testing {

struct ModelKey {
  std::uint32_t name_space = 0;
  std::uint64_t epoch = 0;
  std::uint32_t number = 0;
  friend auto operator<=>(const ModelKey&, const ModelKey&) noexcept = default;
};

BlockDigest model_digest(std::uint32_t number);

class BlockModel {
 public:
  static constexpr std::size_t kBodyBytesMin = 16;

  // A new body for a put of `key`.
  struct Body {
    std::uint64_t id = 0;
    std::vector<std::byte> bytes;
  };
  Body new_body(const ModelKey& key, std::size_t bytes);
  // How the put of a body ended: one that was refused is never read.
  void put_ended(const ModelKey& key, std::uint64_t id, BlockStatus status);

  // Empty, or what is wrong with `pieces`, read whole under `key`.
  std::string check(const ModelKey& key, std::span<const std::span<const std::byte>> pieces) const;

 private:
  struct Attempt {
    std::size_t bytes = 0;
    bool is_refused = false;
  };

  static void make(const ModelKey& key, std::uint64_t id, std::span<std::byte> out);

  std::map<ModelKey, std::map<std::uint64_t, Attempt>> attempts_;
  std::uint64_t next_id_ = 1;
};

}  // namespace cairn::testing
