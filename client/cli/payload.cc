#include "client/cli/payload.h"

#include "base/check.h"
#include "base/checksum.h"
#include "base/random.h"

#include <algorithm>
#include <array>
#include <cstring>

namespace cairn::cli {
namespace {

std::uint64_t payload_word(std::uint64_t seed, std::uint64_t index) noexcept {
  std::uint64_t word = (seed + index) * 0x9E3779B97F4A7C15ULL;
  word ^= word >> 29U;
  return word * 0xBF58476D1CE4E5B9ULL;
}

constexpr std::size_t kStepWords = 512;
using Step = std::array<std::uint64_t, kStepWords>;

void fill_step(std::uint64_t seed, std::uint64_t first, Step& step) noexcept {
  for (std::size_t i = 0; i < kStepWords; ++i)
    step[i] = payload_word(seed, first + i);
}

}  // namespace

std::uint64_t payload_seed(const client::Namespace& name_space,
                           const BlockDigest& digest,
                           std::uint64_t position) noexcept {
  std::array<std::byte, kNamespaceDigestBytes + kBlockDigestBytesMax + 16> input{};
  std::byte* at = input.data();
  std::memcpy(at, name_space.digest.bytes.data(), kNamespaceDigestBytes);
  std::memcpy(at += kNamespaceDigestBytes, digest.padded().data(), kBlockDigestBytesMax);
  std::memcpy(at += kBlockDigestBytesMax, &name_space.epoch, sizeof(std::uint64_t));
  std::memcpy(at + sizeof(std::uint64_t), &position, sizeof(std::uint64_t));
  return xxh3_64(input);
}

void fill_payload(std::uint64_t seed, std::uint64_t offset, std::span<std::byte> out) noexcept {
  CAIRN_CHECK(offset % sizeof(std::uint64_t) == 0);
  Step step;
  for (std::size_t at = 0; at < out.size(); at += sizeof(step)) {
    fill_step(seed, (offset + at) / sizeof(std::uint64_t), step);
    std::memcpy(out.data() + at, step.data(), std::min(sizeof(step), out.size() - at));
  }
}

bool is_payload(std::uint64_t seed,
                std::uint64_t offset,
                std::span<const std::byte> bytes) noexcept {
  CAIRN_CHECK(offset % sizeof(std::uint64_t) == 0);
  Step step;
  for (std::size_t at = 0; at < bytes.size(); at += sizeof(step)) {
    fill_step(seed, (offset + at) / sizeof(std::uint64_t), step);
    const std::size_t length = std::min(sizeof(step), bytes.size() - at);
    if (std::memcmp(bytes.data() + at, step.data(), length) != 0) return false;
  }
  return true;
}

BlockDigest trace_digest(std::uint64_t id) noexcept {
  std::array<std::uint64_t, 4> words{};
  std::uint64_t state = id;
  for (std::uint64_t& word : words)
    word = splitmix64(state);
  return *BlockDigest::from(std::as_bytes(std::span(words)));
}

}  // namespace cairn::cli
