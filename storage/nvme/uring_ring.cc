#include "storage/nvme/uring_ring.h"

#include "base/check.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

namespace cairn::storage {
namespace {

// Slices of 1 GiB: as many as a pool of 4 TiB has.
constexpr unsigned kBuffersMax = 4096;

Error ring_error(int answer, const char* what) noexcept {
  const int sys = -answer;
  switch (sys) {
    case ENOSYS:
    case EPERM:
    case EACCES:
    case EINVAL:
    case EOPNOTSUPP:
      return {ErrorCode::kUnsupported, sys, what};
    case ENOMEM:
      return {ErrorCode::kNoSpace, sys, what};
    default:
      return {ErrorCode::kIo, sys, what};
  }
}

}  // namespace

Result<std::unique_ptr<UringRing>> UringRing::open(std::uint32_t entries, int fd) noexcept {
  std::unique_ptr<UringRing> ring(new UringRing);
  io_uring_params params{};
  // Disabled until claim(): a ring of a single issuer belongs to the thread that enables it.
  params.flags = IORING_SETUP_COOP_TASKRUN | IORING_SETUP_SINGLE_ISSUER |
                 IORING_SETUP_DEFER_TASKRUN | IORING_SETUP_R_DISABLED;
  int answer = io_uring_queue_init_params(entries, &ring->ring_, &params);
  if (answer < 0) return ring_error(answer, "io_uring_setup");
  ring->is_open_ = true;
  if ((params.features & IORING_FEAT_EXT_ARG) == 0)
    return Error{ErrorCode::kUnsupported, 0, "IORING_FEAT_EXT_ARG"};
  answer = io_uring_register_files(&ring->ring_, &fd, 1);
  if (answer < 0) return ring_error(answer, "IORING_REGISTER_FILES");
  answer = io_uring_register_buffers_sparse(&ring->ring_, kBuffersMax);
  if (answer < 0) return ring_error(answer, "IORING_REGISTER_BUFFERS2");
  return ring;
}

UringRing::~UringRing() {
  if (is_open_) io_uring_queue_exit(&ring_);
}

Status UringRing::register_memory(std::span<std::byte> memory) noexcept {
  while (!memory.empty()) {
    const std::size_t bytes =
        std::min(memory.size(), static_cast<std::size_t>(FixedBuffers::kSliceMax.value()));
    CAIRN_TRY_STATUS(register_slice(memory.first(bytes)));
    memory = memory.subspan(bytes);
  }
  return {};
}

Status UringRing::register_slice(std::span<std::byte> slice) noexcept {
  if (buffers_.count() == kBuffersMax) return Error{ErrorCode::kNoSpace, 0, "fixed buffers"};
  const iovec buffer{.iov_base = slice.data(), .iov_len = slice.size()};
  const __u64 tag = 0;
  const int answer =
      io_uring_register_buffers_update_tag(&ring_, buffers_.count(), &buffer, &tag, 1);
  if (answer == -ENOMEM) return Error{ErrorCode::kNoSpace, ENOMEM, "RLIMIT_MEMLOCK"};
  if (answer != 1) return Error{ErrorCode::kIo, -answer, "IORING_REGISTER_BUFFERS_UPDATE"};
  buffers_.add(slice);
  return {};
}

void UringRing::claim() noexcept {
  if (is_claimed_) return;
  // liburing 2.3 declares io_uring_enable_rings() and does not export it.
  const long answer =
      ::syscall(SYS_io_uring_register, ring_.ring_fd, IORING_REGISTER_ENABLE_RINGS, nullptr, 0);
  CAIRN_CHECK(answer == 0);
  is_claimed_ = true;
}

io_uring_sqe* UringRing::next_request() noexcept {
  if (io_uring_sqe* const sqe = io_uring_get_sqe(&ring_)) return sqe;
  claim();
  // What it answers is seen again by the next enter(); here only the room counts.
  static_cast<void>(io_uring_submit(&ring_));
  return io_uring_get_sqe(&ring_);
}

void UringRing::enter(Nanoseconds wait) noexcept {
  claim();
  int answer = 0;
  if (wait.count() <= 0) {
    answer = io_uring_submit_and_get_events(&ring_);
  } else {
    constexpr std::int64_t kSecond = 1'000'000'000;
    __kernel_timespec limit{.tv_sec = wait.count() / kSecond, .tv_nsec = wait.count() % kSecond};
    io_uring_cqe* cqe = nullptr;
    answer = io_uring_submit_and_wait_timeout(&ring_, &cqe, 1, &limit, nullptr);
  }
  // ETIME and EINTR: nothing came. EAGAIN and EBUSY: no memory or no room just now, and what is
  // queued stays queued. Anything else is a wrong call.
  CAIRN_CHECK(answer >= 0 || answer == -ETIME || answer == -EINTR || answer == -EAGAIN ||
              answer == -EBUSY);
}

}  // namespace cairn::storage
