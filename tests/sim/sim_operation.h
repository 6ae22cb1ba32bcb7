// One ticket of a SimUser with everything it borrows, which lives until it is returned.
#pragma once

#include "tests/sim/sim_user.h"

#include <algorithm>
#include <cstring>
#include <span>
#include <vector>

namespace cairn::testing {

// Keys are few, so that they meet; one in six holds large blocks.
inline constexpr std::uint32_t kKeyNumbers = 20;
inline constexpr std::size_t kSmallBytesMax = 20'000;
inline constexpr std::size_t kLargeBytesMax = (3_MiB).value();
inline bool is_large(std::uint32_t number) {
  return number % 6 == 0;
}
inline std::size_t bytes_max(std::uint32_t number) {
  return is_large(number) ? kLargeBytesMax : kSmallBytesMax;
}

inline void fill(const client::BlockReservation& reservation, std::span<const std::byte> bytes) {
  for (std::uint32_t i = 0; i < reservation.piece_count; ++i) {
    const std::span<std::byte> piece = reservation.pieces[i];
    std::memcpy(piece.data(), bytes.data(), piece.size());
    bytes = bytes.subspan(piece.size());
  }
}

struct SimUser::Operation {
  Kind kind{};
  std::uint32_t queue = 0;
  client::Ticket ticket;
  MonotonicTime deadline;
  bool is_done = false;
  bool is_returned = false;
  client::Namespace name_space;
  std::vector<ModelKey> keys;
  std::vector<BlockDigest> digests;
  std::vector<client::KeyResult> results;
  // Of puts and reservations.
  std::vector<std::uint64_t> bodies;
  std::vector<std::vector<std::byte>> buffers;  // also the targets of a get
  std::vector<std::span<const std::byte>> sources;
  std::vector<std::uint32_t> lengths;
  std::vector<std::span<std::byte>> targets;
  std::vector<client::BlockView> views;
  std::vector<client::BlockReservation> reservations;

  template <typename DrawLength>
  void make_bodies(BlockModel& model, const DrawLength& draw_length) {
    for (const ModelKey& key : keys) {
      BlockModel::Body body = model.new_body(key, draw_length(key.number));
      bodies.push_back(body.id);
      lengths.push_back(static_cast<std::uint32_t>(body.bytes.size()));
      buffers.push_back(std::move(body.bytes));
    }
    for (const auto& buffer : buffers)
      sources.push_back(buffer);
  }
  void make_targets() {
    for (const ModelKey& key : keys)
      buffers.emplace_back(bytes_max(key.number));
    for (auto& buffer : buffers)
      targets.push_back(buffer);
  }
};

}  // namespace cairn::testing
