// Bytes that anybody can make again: the payload of a block as a function of namespace, epoch, key
// and position, so that every byte of every get is checked without keeping a copy.
#pragma once

#include "base/block_key.h"
#include "client/types.h"

#include <cstddef>
#include <cstdint>
#include <span>

namespace cairn::cli {

// The seed of a block's bytes.
std::uint64_t payload_seed(const client::Namespace& name_space,
                           const BlockDigest& digest,
                           std::uint64_t position) noexcept;
// Byte i depends on the seed and i alone, so a block may be filled in pieces: `offset` is where
// `out` begins in the block, a multiple of 8.
void fill_payload(std::uint64_t seed, std::uint64_t offset, std::span<std::byte> out) noexcept;
bool is_payload(std::uint64_t seed,
                std::uint64_t offset,
                std::span<const std::byte> bytes) noexcept;

// The digest that stands for block number `id` of a trace, 32 bytes.
BlockDigest trace_digest(std::uint64_t id) noexcept;

}  // namespace cairn::cli
