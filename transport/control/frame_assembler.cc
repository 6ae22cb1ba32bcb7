#include "transport/control/frame_assembler.h"

#include "base/check.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace cairn::transport {

FrameAssembler::FrameAssembler()
    : buffer_(std::make_unique_for_overwrite<std::byte[]>(kReceiveBufferBytes.value())),
      capacity_(kReceiveBufferBytes.value()) {}

std::span<const std::byte, wire::kFrameHeaderBytes> FrameAssembler::header_at(
    std::size_t at) const noexcept {
  return std::span<const std::byte, wire::kFrameHeaderBytes>(buffer_.get() + at,
                                                             wire::kFrameHeaderBytes);
}

std::span<std::byte> FrameAssembler::room() {
  begin_ += std::exchange(given_, 0);
  const std::size_t kept = end_ - begin_;
  const std::size_t wanted = std::max(needed_, wire::kFrameHeaderBytes);
  if (wanted > capacity_) {
    auto larger = std::make_unique_for_overwrite<std::byte[]>(wanted);
    std::memcpy(larger.get(), buffer_.get() + begin_, kept);
    buffer_ = std::move(larger);
    capacity_ = wanted;
    begin_ = 0;
  } else if (kept == 0) {
    begin_ = 0;
  } else if (capacity_ - begin_ < wanted) {
    std::memmove(buffer_.get(), buffer_.get() + begin_, kept);
    begin_ = 0;
  }
  end_ = begin_ + kept;
  CAIRN_CHECK(end_ < capacity_);
  return {buffer_.get() + end_, capacity_ - end_};
}

void FrameAssembler::added(std::size_t bytes) noexcept {
  CAIRN_CHECK(bytes <= capacity_ - end_);
  end_ += bytes;
  stream_end_ += bytes;
}

Result<std::optional<wire::FrameView>> FrameAssembler::next() noexcept {
  begin_ += std::exchange(given_, 0);
  const std::size_t left = end_ - begin_;
  if (needed_ == 0) {
    if (left < wire::kFrameHeaderBytes) return std::nullopt;
    CAIRN_TRY(const wire::FrameHeader header, wire::decode_frame_header(header_at(begin_)));
    needed_ = wire::kFrameHeaderBytes + header.body_bytes;
    CAIRN_CHECK(needed_ <= wire::kMessageBytesMax.value());
  }
  if (left < needed_) return std::nullopt;
  CAIRN_TRY(const wire::FrameView frame, wire::decode_frame({buffer_.get() + begin_, needed_}));
  given_ = std::exchange(needed_, 0);
  return frame;
}

bool FrameAssembler::has_next() const noexcept {
  const std::size_t left = end_ - begin_ - given_;
  if (left < wire::kFrameHeaderBytes) return false;
  if (needed_ != 0) return left >= needed_;
  const auto header = wire::decode_frame_header(header_at(begin_ + given_));
  return !header || left >= wire::kFrameHeaderBytes + header->body_bytes;
}

}  // namespace cairn::transport
