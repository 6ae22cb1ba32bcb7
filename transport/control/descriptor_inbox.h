// Descriptors that came over a unix socket and wait for their frame or their taker. All of them
// are closed sooner or later; none is ever leaked to a channel that does not want it.
#pragma once

#include "transport/channel.h"
#include "transport/control/owned_fd.h"

#include <array>
#include <cstddef>
#include <cstdint>

namespace cairn::transport {

// One thread's. Holds at most the descriptors of the frame that was given and of the two that one
// read can touch.
class DescriptorInbox {
 public:
  // Takes a descriptor that came with the byte before `stream_end`. False (and it is closed) when
  // more have come than frames may carry.
  bool add(OwnedFd fd, std::uint64_t stream_end) noexcept;
  // The frame that ends at `frame_end` has been given: its descriptors can be taken, in order.
  // False when there are more than kDescriptorsPerMessageMax.
  bool give(std::uint64_t frame_end) noexcept;
  // -1 when none is left.
  int take() noexcept;
  // Closes what was given and not taken.
  void drop_given() noexcept;
  void clear() noexcept;

 private:
  struct Waiting {
    OwnedFd fd;
    std::uint64_t stream_end = 0;
  };
  std::array<Waiting, 2 * kDescriptorsPerMessageMax> waiting_;
  std::size_t waiting_count_ = 0;
  std::array<OwnedFd, kDescriptorsPerMessageMax> given_;
  std::size_t given_count_ = 0;
  std::size_t taken_ = 0;
};

}  // namespace cairn::transport
