// What a channel still has to send: bytes, and the descriptors that leave with the first byte of
// their frame.
#pragma once

#include "base/units.h"
#include "transport/channel.h"
#include "transport/control/owned_fd.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <span>
#include <vector>

namespace cairn::transport {

using DescriptorSet = std::array<OwnedFd, kDescriptorsPerMessageMax>;

// One thread's. Holds at most kSendQueueMax bytes.
class SendQueue {
 public:
  bool is_empty() const noexcept { return head_ == bytes_.size(); }
  ByteCount size() const noexcept { return ByteCount(bytes_.size() - head_); }
  bool has_room(std::size_t bytes) const noexcept {
    return size() + ByteCount(bytes) <= kSendQueueMax;
  }

  // Appends what is left of a frame. `descriptors` (the open ones come first) leave with its first
  // byte. Checks has_room().
  void push(std::span<const std::byte> bytes, DescriptorSet descriptors);

  // What one sendmsg(2) may carry: either bytes of frames without descriptors, or bytes of the one
  // frame that the descriptors belong to, from its first byte. So the receiver can tell whose they
  // are.
  struct Piece {
    std::span<const std::byte> bytes;
    std::array<int, kDescriptorsPerMessageMax> descriptors{};
    std::size_t descriptor_count = 0;
  };
  // Checks that the queue is not empty.
  Piece front() const noexcept;
  // The first `bytes` of front() have been sent, and with the first of them its descriptors.
  void sent(std::size_t bytes) noexcept;

 private:
  struct Attached {
    std::uint64_t begin = 0;  // positions in the stream of all bytes ever pushed
    std::uint64_t end = 0;
    DescriptorSet descriptors;
  };

  std::vector<std::byte> bytes_;
  std::size_t head_ = 0;
  std::uint64_t position_ = 0;  // of bytes_[head_]
  std::deque<Attached> attached_;
};

}  // namespace cairn::transport
