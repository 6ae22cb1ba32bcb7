#include "client/frame_copy.h"

#include "base/checksum.h"

#include <algorithm>

namespace cairn::client {
namespace {

// A step through one chunk at a time, or through whole pieces where no checksum is involved.
bool run_piece(const CopyTask& task, std::span<std::byte> frame, std::uint64_t at) noexcept {
  const auto chunk = static_cast<std::uint32_t>(at / kChunkBytes.value());
  switch (task.kind) {
    case CopyKind::kFromFrame:
      copy_bytes({task.target + at, frame.size()}, frame);
      return true;
    case CopyKind::kFromFrameChecked:
      return copy_with_crc32c({task.target + at, frame.size()}, frame) == task.checksums[chunk];
    case CopyKind::kIntoFrame:
      task.checksums[chunk] = stream_with_crc32c(frame, {task.source + at, frame.size()});
      return true;
    case CopyKind::kCheck:
      return crc32c(frame) == task.checksums[chunk];
    case CopyKind::kSum:
      task.checksums[chunk] = crc32c(frame);
      return true;
  }
  return false;
}

}  // namespace

bool run_copy(const CopyTask& task, ChunkRange range) noexcept {
  const std::uint64_t begin = range.first * kChunkBytes.value();
  const std::uint64_t end =
      std::min<std::uint64_t>(task.frame.length, begin + range.count * kChunkBytes.value());
  bool is_right = true;
  std::uint64_t piece_begin = 0;
  for (std::uint32_t i = 0; i < task.frame.count; ++i) {
    const std::span<std::byte> piece = task.frame.spans[i];
    const std::uint64_t piece_end = piece_begin + piece.size();
    std::uint64_t at = std::max(begin, piece_begin);
    const std::uint64_t stop = std::min(end, piece_end);
    while (at < stop) {
      const std::uint64_t step =
          task.kind == CopyKind::kFromFrame ? stop - at : std::min(stop - at, kChunkBytes.value());
      is_right = run_piece(task, piece.subspan(at - piece_begin, step), at) && is_right;
      at += step;
    }
    piece_begin = piece_end;
  }
  return is_right;
}

}  // namespace cairn::client
