// Copies that leave the caches alone, for targets that no processor reads soon: a frame of the pool
// is written once, then read by another process, a drive or a network card. A normal store first
// reads the line it will overwrite, so a streaming one saves a third of the memory traffic.
#pragma once

#include <cstddef>
#include <span>

namespace cairn {

// Copies `bytes` that do not overlap. Visible to other threads after stream_fence() and whatever
// else orders the two.
using StreamCopy = void (*)(std::byte* target, const std::byte* source, std::size_t bytes) noexcept;

// The widest that this processor has, or nullptr: then normal stores are as good.
StreamCopy find_stream_copy() noexcept;
void stream_fence() noexcept;

// Of equal sizes. Needs a stream_fence() too.
void stream_bytes(std::span<std::byte> target, std::span<const std::byte> source) noexcept;

}  // namespace cairn
