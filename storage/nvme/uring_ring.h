// The owner of an io_uring. For the .cc files of the uring device alone.
#pragma once

#include "base/clock.h"
#include "base/result.h"
#include "storage/nvme/fixed_buffers.h"

#include <liburing.h>

#include <cstdint>
#include <memory>
#include <span>

namespace cairn::storage {

// One thread's from the first enter() on; until then any one's.
class UringRing {
 public:
  // A ring of at least `entries` places with `fd` as registered file 0. Errors: kUnsupported,
  // kNoSpace, kIo.
  static Result<std::unique_ptr<UringRing>> open(std::uint32_t entries, int fd) noexcept;
  ~UringRing();
  UringRing(const UringRing&) = delete;
  UringRing& operator=(const UringRing&) = delete;

  // Errors: kNoSpace, kIo; the slices before the one refused stay registered.
  Status register_memory(std::span<std::byte> memory) noexcept;
  const FixedBuffers& buffers() const noexcept { return buffers_; }

  // A place for one more request; nullptr when the ring is full even after submitting.
  io_uring_sqe* next_request() noexcept;
  // Submits what is queued, runs what the kernel has for us and waits at most `wait` for a
  // completion. Comes back early at a signal.
  void enter(Nanoseconds wait) noexcept;
  // Gives each completion there is to `take(user_data, answer)`.
  template <typename Take>
  void reap(Take&& take) noexcept {
    io_uring_cqe* cqe = nullptr;
    unsigned head = 0;
    unsigned count = 0;
    io_uring_for_each_cqe(&ring_, head, cqe) {
      take(cqe->user_data, cqe->res);
      ++count;
    }
    io_uring_cq_advance(&ring_, count);
  }

 private:
  UringRing() = default;
  Status register_slice(std::span<std::byte> slice) noexcept;
  void claim() noexcept;

  io_uring ring_{};
  bool is_open_ = false;
  bool is_claimed_ = false;  // the thread that enters it is known
  FixedBuffers buffers_;
};

}  // namespace cairn::storage
