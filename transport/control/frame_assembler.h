// Cuts a stream of bytes into frames, in one buffer that is reused. Shared by the sockets and the
// simulated network.
#pragma once

#include "base/result.h"
#include "base/units.h"
#include "transport/wire/frame.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

namespace cairn::transport {

// The buffer begins with this size and grows to the longest frame that came, never beyond
// wire::kMessageBytesMax.
inline constexpr ByteCount kReceiveBufferBytes = 64_KiB;

// One thread's.
class FrameAssembler {
 public:
  FrameAssembler();

  // Where the next bytes of the stream belong; never empty. Ends the view that next() gave. To be
  // called only after next() has said nullopt.
  std::span<std::byte> room();
  // The first `bytes` of room() have been filled.
  void added(std::size_t bytes) noexcept;

  // The next whole frame, valid until the next call of next() or room(); nullopt while it is not
  // whole. A frame that is too long is refused as soon as its header is there. Errors: as
  // wire::decode_frame; the stream is of no further use then.
  Result<std::optional<wire::FrameView>> next() noexcept;
  // Whether next() would give a frame or an error now.
  bool has_next() const noexcept;

  // Positions in the stream, counted from its first byte: behind the last byte that came, and
  // behind the frame that next() gave last.
  std::uint64_t stream_end() const noexcept { return stream_end_; }
  std::uint64_t frame_end() const noexcept { return stream_end_ - (end_ - begin_) + given_; }

 private:
  std::span<const std::byte, wire::kFrameHeaderBytes> header_at(std::size_t at) const noexcept;

  std::unique_ptr<std::byte[]> buffer_;  // NOLINT(*-avoid-c-arrays): uninitialised on purpose
  std::size_t capacity_ = 0;
  std::size_t begin_ = 0;
  std::size_t end_ = 0;
  std::size_t given_ = 0;   // bytes at begin_ that the view given last lies in
  std::size_t needed_ = 0;  // of the frame at begin_; 0 until its header is there
  std::uint64_t stream_end_ = 0;
};

}  // namespace cairn::transport
