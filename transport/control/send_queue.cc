#include "transport/control/send_queue.h"

#include "base/check.h"

#include <algorithm>
#include <utility>

namespace cairn::transport {
namespace {

// A queue that was long gives its memory back once it is empty.
constexpr std::size_t kKeptCapacityBytes = (256_KiB).value();

}  // namespace

void SendQueue::push(std::span<const std::byte> bytes, DescriptorSet descriptors) {
  CAIRN_CHECK(has_room(bytes.size()));
  // Moved to the front only when at least half is used up: each byte is moved once at most.
  if (head_ > 0 && head_ >= bytes_.size() / 2) {
    bytes_.erase(bytes_.begin(), bytes_.begin() + static_cast<std::ptrdiff_t>(head_));
    head_ = 0;
  }
  if (descriptors.front().is_open()) {
    const std::uint64_t begin = position_ + size().value();
    attached_.push_back({begin, begin + bytes.size(), std::move(descriptors)});
  }
  bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
}

SendQueue::Piece SendQueue::front() const noexcept {
  CAIRN_CHECK(!is_empty());
  Piece piece;
  std::uint64_t length = size().value();
  if (!attached_.empty()) {
    const Attached& next = attached_.front();
    if (next.begin == position_) {
      length = next.end - next.begin;
      for (const OwnedFd& fd : next.descriptors) {
        if (fd.is_open()) piece.descriptors.at(piece.descriptor_count++) = fd.get();
      }
    } else {
      length = next.begin - position_;
    }
  }
  piece.bytes = std::span(bytes_).subspan(head_, length);
  return piece;
}

void SendQueue::sent(std::size_t bytes) noexcept {
  CAIRN_CHECK(bytes <= size().value());
  if (bytes == 0) return;
  if (!attached_.empty() && attached_.front().begin == position_) attached_.pop_front();
  head_ += bytes;
  position_ += bytes;
  if (!is_empty()) return;
  bytes_.clear();
  head_ = 0;
  if (bytes_.capacity() > kKeptCapacityBytes) bytes_.shrink_to_fit();
}

}  // namespace cairn::transport
