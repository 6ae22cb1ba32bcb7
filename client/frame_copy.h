// The payload of one frame as it lies in the mapping, and copies between it and the caller's
// memory. Pure over memory, any thread.
#pragma once

#include "base/result.h"
#include "base/units.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace cairn::client {

// Every piece but the last is a multiple of kChunkBytes, so that no chunk lies in two; together
// they have `length` bytes.
struct FramePieces {
  std::array<std::span<std::byte>, kExtentsMax> spans{};
  std::uint32_t count = 0;
  std::uint32_t length = 0;
};

enum class CopyKind : std::uint8_t {
  kFromFrame,         // into the caller's memory
  kFromFrameChecked,  // the same, compared with the checksums
  kIntoFrame,         // from the caller's memory, giving the checksums
  kCheck,             // nothing moves: the frame is compared with the checksums
  kSum,               // nothing moves: the frame gives the checksums
};

struct ChunkRange {
  std::uint32_t first = 0;
  std::uint32_t count = 0;
};

struct CopyTask {
  CopyKind kind = CopyKind::kCheck;
  FramePieces frame;
  std::byte* target = nullptr;        // kFromFrame and kFromFrameChecked: frame.length bytes
  const std::byte* source = nullptr;  // kIntoFrame: frame.length bytes
  // One a chunk of the block: read by kFromFrameChecked and kCheck, written by kIntoFrame and kSum.
  std::uint32_t* checksums = nullptr;
};

// The chunks of `range` (inside the block). False: a checksum differs; kFromFrameChecked has then
// written bytes that are not the block's.
bool run_copy(const CopyTask& task, ChunkRange range) noexcept;

}  // namespace cairn::client
