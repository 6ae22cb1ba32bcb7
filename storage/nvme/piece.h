// How far a piece of an operation has come, by what the system answers. Pure.
#pragma once

#include "base/result.h"
#include "base/units.h"
#include "storage/nvme/block_device.h"

#include <cstddef>
#include <cstdint>

namespace cairn::storage {

class Piece {
 public:
  enum class Next : std::uint8_t { kDone, kContinue, kRetry, kFailed };
  // Answers in a row that move nothing before the piece has failed.
  static constexpr std::uint32_t kIdleMax = 1000;

  Piece() = default;
  Piece(IoKind kind, ByteCount offset, std::byte* memory, ByteCount bytes)
      : kind_(kind),
        offset_(offset),
        memory_(memory),
        left_(bytes) {}

  // What to ask the system for next.
  IoKind kind() const noexcept { return kind_; }
  ByteCount offset() const noexcept { return offset_; }
  std::byte* memory() const noexcept { return memory_; }
  ByteCount left() const noexcept { return left_; }

  // Takes the answer to that: bytes moved, or a negative errno.
  Next on_answer(std::int64_t answer) noexcept;
  // Bytes that the last answer moved for good.
  ByteCount moved() const noexcept { return moved_; }
  // Why, after kFailed.
  const Error& error() const noexcept { return error_; }

 private:
  const char* name() const noexcept;
  Next fail(Error error) noexcept;
  Next idle(Next next, int sys) noexcept;

  IoKind kind_ = IoKind::kSync;
  ByteCount offset_;
  std::byte* memory_ = nullptr;
  ByteCount left_;
  ByteCount moved_;
  std::uint32_t idle_ = 0;
  Error error_;
};

}  // namespace cairn::storage
