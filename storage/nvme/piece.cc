#include "storage/nvme/piece.h"

#include <cerrno>

namespace cairn::storage {

const char* Piece::name() const noexcept {
  switch (kind_) {
    case IoKind::kRead:
      return "read";
    case IoKind::kWrite:
      return "write";
    case IoKind::kSync:
      return "fdatasync";
  }
  return "";
}

Piece::Next Piece::fail(Error error) noexcept {
  error_ = error;
  return Next::kFailed;
}

Piece::Next Piece::idle(Next next, int sys) noexcept {
  if (++idle_ < kIdleMax) return next;
  return fail({ErrorCode::kIo, sys, name()});
}

Piece::Next Piece::on_answer(std::int64_t answer) noexcept {
  moved_ = ByteCount(0);
  if (answer == -EINTR || answer == -EAGAIN) return idle(Next::kRetry, static_cast<int>(-answer));
  if (answer < 0) return fail(io_error(static_cast<int>(-answer), name()));
  if (kind_ == IoKind::kSync) return Next::kDone;
  const ByteCount bytes(static_cast<std::uint64_t>(answer));
  if (bytes > left_) return fail({ErrorCode::kIo, 0, "more bytes than asked for"});
  if (bytes.value() == 0) return fail({ErrorCode::kIo, 0, "the device ends too early"});
  // The rest must be aligned again, so a broken granule is moved anew.
  moved_ = kIoGranule * (bytes / kIoGranule);
  if (moved_.value() == 0) return idle(Next::kContinue, 0);
  idle_ = 0;
  offset_ += moved_;
  memory_ += moved_.value();
  left_ -= moved_;
  return left_.value() == 0 ? Next::kDone : Next::kContinue;
}

}  // namespace cairn::storage
