#include "transport/control/descriptor_inbox.h"

#include <algorithm>
#include <utility>

namespace cairn::transport {

bool DescriptorInbox::add(OwnedFd fd, std::uint64_t stream_end) noexcept {
  if (waiting_count_ == waiting_.size()) return false;
  waiting_.at(waiting_count_++) = {std::move(fd), stream_end};
  return true;
}

bool DescriptorInbox::give(std::uint64_t frame_end) noexcept {
  drop_given();
  std::size_t count = 0;
  while (count < waiting_count_ && waiting_.at(count).stream_end <= frame_end)
    ++count;
  if (count > given_.size()) return false;
  for (std::size_t i = 0; i < count; ++i)
    given_.at(i) = std::move(waiting_.at(i).fd);
  given_count_ = count;
  const auto begin = waiting_.begin();
  std::move(begin + static_cast<std::ptrdiff_t>(count),
            begin + static_cast<std::ptrdiff_t>(waiting_count_),
            begin);
  waiting_count_ -= count;
  return true;
}

int DescriptorInbox::take() noexcept {
  if (taken_ == given_count_) return -1;
  return given_.at(taken_++).release();
}

void DescriptorInbox::drop_given() noexcept {
  for (std::size_t i = 0; i < given_count_; ++i)
    given_.at(i).reset();
  given_count_ = 0;
  taken_ = 0;
}

void DescriptorInbox::clear() noexcept {
  drop_given();
  for (std::size_t i = 0; i < waiting_count_; ++i)
    waiting_.at(i).fd.reset();
  waiting_count_ = 0;
}

}  // namespace cairn::transport
