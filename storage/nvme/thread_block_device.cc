#include "storage/nvme/thread_block_device.h"

#include "base/check.h"
#include "base/mutex.h"
#include "storage/nvme/block_file.h"
#include "storage/nvme/piece.h"
#include "storage/nvme/slot_queue.h"

#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <condition_variable>
#include <optional>
#include <utility>
#include <vector>

namespace cairn::storage {
namespace {

struct Operation {
  bool is_used = false;
  IoId id;
  IoKind kind = IoKind::kSync;
  std::byte* memory = nullptr;
  ByteCount offset;
  ByteCount length;
  ByteCount moved;
  bool is_cancelled = false;
  std::optional<Error> error;

  Result<ByteCount> result() const noexcept {
    if (error) return *error;
    CAIRN_CHECK(moved == length);
    return moved;
  }
};

class ThreadBlockDevice final : public BlockDevice {
 public:
  ThreadBlockDevice(const Clock& clock, BlockFile file, std::uint32_t depth);
  ~ThreadBlockDevice() override;
  ThreadBlockDevice(const ThreadBlockDevice&) = delete;
  ThreadBlockDevice& operator=(const ThreadBlockDevice&) = delete;
  Status start(std::uint32_t threads) noexcept;

  const char* kind() const noexcept override { return "threads"; }
  ByteCount size() const noexcept override { return file_.size; }
  std::uint32_t depth() const noexcept override { return depth_; }
  std::uint32_t in_flight() const noexcept override { return in_flight_; }
  IoStats stats() const noexcept override {
    const MutexLock lock(mutex_);
    return stats_;
  }
  Status submit_read(IoId id, ByteCount offset, std::span<std::byte> into) noexcept override;
  Status submit_write(IoId id, ByteCount offset, std::span<const std::byte> from) noexcept override;
  Status sync(IoId id) noexcept override;
  void cancel(IoId id) noexcept override;
  std::size_t poll(std::span<IoCompletion> out, Deadline until) noexcept override;
  Status register_memory(std::span<std::byte> /*memory*/) noexcept override { return {}; }

 private:
  static void* thread_main(void* device);
  void run_thread() noexcept;
  Status accept(const Operation& operation) noexcept;
  Operation* find(IoId id) noexcept CAIRN_REQUIRES(mutex_);
  // Moves all of it, or sets its error. `operation` is this thread's until it is finished.
  void perform(std::uint32_t slot, const Operation& operation) noexcept CAIRN_EXCLUDES(mutex_);
  std::int64_t ask(const Piece& piece) const noexcept;
  // False when the operation is to end here.
  bool note(std::uint32_t slot, const Piece& piece, Piece::Next next) noexcept
      CAIRN_EXCLUDES(mutex_);
  std::size_t hand_out(std::span<IoCompletion> out) noexcept CAIRN_REQUIRES(mutex_);

  const Clock& clock_;
  const BlockFile file_;
  const std::uint32_t depth_;
  std::uint32_t in_flight_ = 0;
  std::vector<pthread_t> threads_;
  mutable Mutex mutex_;
  std::condition_variable_any work_;  // an operation was queued, or the end has come
  std::condition_variable_any done_;  // an operation has finished
  std::vector<Operation> operations_ CAIRN_GUARDED_BY(mutex_);
  std::vector<std::uint32_t> free_ CAIRN_GUARDED_BY(mutex_);
  SlotQueue queued_ CAIRN_GUARDED_BY(mutex_);
  SlotQueue finished_ CAIRN_GUARDED_BY(mutex_);
  bool is_stopping_ CAIRN_GUARDED_BY(mutex_) = false;
  IoStats stats_ CAIRN_GUARDED_BY(mutex_);
};

ThreadBlockDevice::ThreadBlockDevice(const Clock& clock, BlockFile file, std::uint32_t depth)
    : clock_(clock),
      file_(std::move(file)),
      depth_(depth),
      operations_(depth),
      queued_(depth),
      finished_(depth) {
  for (std::uint32_t i = depth; i > 0; --i)
    free_.push_back(i - 1);
}

ThreadBlockDevice::~ThreadBlockDevice() {
  {
    const MutexLock lock(mutex_);
    is_stopping_ = true;
  }
  work_.notify_all();
  // They end when nothing is queued any more.
  for (const pthread_t thread : threads_)
    CAIRN_CHECK(::pthread_join(thread, nullptr) == 0);
}

Status ThreadBlockDevice::start(std::uint32_t threads) noexcept {
  int failure = 0;
  for (std::uint32_t i = 0; i < threads && failure == 0; ++i) {
    pthread_t thread{};
    failure = ::pthread_create(&thread, nullptr, &ThreadBlockDevice::thread_main, this);
    if (failure == 0) threads_.push_back(thread);
  }
  if (threads_.empty()) return Error{ErrorCode::kIo, failure, "pthread_create"};
  return {};
}

void* ThreadBlockDevice::thread_main(void* device) {
  static_cast<ThreadBlockDevice*>(device)->run_thread();
  return nullptr;
}

void ThreadBlockDevice::run_thread() noexcept {
  for (;;) {
    std::uint32_t slot = 0;
    Operation operation;
    {
      const MutexLock lock(mutex_);
      while (queued_.is_empty() && !is_stopping_)
        work_.wait(mutex_);
      if (queued_.is_empty()) return;
      slot = queued_.pop();
      if (operations_[slot].is_cancelled) operations_[slot].error = kIoCancelled;
      operation = operations_[slot];
    }
    if (!operation.error) perform(slot, operation);
    {
      const MutexLock lock(mutex_);
      finished_.push(slot);
    }
    done_.notify_one();
  }
}

void ThreadBlockDevice::perform(std::uint32_t slot, const Operation& operation) noexcept {
  ByteCount begun;
  do {
    const ByteCount bytes = std::min(kIoPieceMax, operation.length - begun);
    Piece piece(operation.kind, operation.offset + begun, operation.memory + begun.value(), bytes);
    Piece::Next next = Piece::Next::kRetry;
    while (next == Piece::Next::kRetry || next == Piece::Next::kContinue) {
      next = piece.on_answer(ask(piece));
      if (!note(slot, piece, next)) return;
    }
    begun += bytes;
  } while (begun < operation.length);
}

std::int64_t ThreadBlockDevice::ask(const Piece& piece) const noexcept {
  const std::size_t bytes = piece.left().value();
  const auto offset = static_cast<off_t>(piece.offset().value());
  std::int64_t answer = 0;
  switch (piece.kind()) {
    case IoKind::kRead:
      answer = ::pread(file_.fd.get(), piece.memory(), bytes, offset);
      break;
    case IoKind::kWrite:
      answer = ::pwrite(file_.fd.get(), piece.memory(), bytes, offset);
      break;
    case IoKind::kSync:
      answer = ::fdatasync(file_.fd.get());
      break;
  }
  return answer < 0 ? -std::int64_t{errno} : answer;
}

bool ThreadBlockDevice::note(std::uint32_t slot, const Piece& piece, Piece::Next next) noexcept {
  const MutexLock lock(mutex_);
  Operation& operation = operations_[slot];
  operation.moved += piece.moved();
  if (next == Piece::Next::kContinue) ++stats_.continued_pieces;
  if (next == Piece::Next::kRetry) ++stats_.retried_pieces;
  if (next == Piece::Next::kFailed) operation.error = piece.error();
  const bool is_whole = next == Piece::Next::kDone && operation.moved == operation.length;
  if (operation.is_cancelled && !is_whole && !operation.error) operation.error = kIoCancelled;
  return !operation.error;
}

Operation* ThreadBlockDevice::find(IoId id) noexcept {
  const auto found = std::ranges::find_if(
      operations_, [id](const Operation& one) { return one.is_used && one.id == id; });
  return found == operations_.end() ? nullptr : &*found;
}

Status ThreadBlockDevice::accept(const Operation& operation) noexcept {
  {
    const MutexLock lock(mutex_);
    if (find(operation.id) != nullptr) return Error{ErrorCode::kExists, 0, "operation id"};
    if (free_.empty()) return Error{ErrorCode::kBusy, 0, "depth"};
    const std::uint32_t slot = free_.back();
    free_.pop_back();
    operations_[slot] = operation;
    operations_[slot].is_used = true;
    queued_.push(slot);
  }
  ++in_flight_;
  work_.notify_one();
  return {};
}

Status ThreadBlockDevice::submit_read(IoId id,
                                      ByteCount offset,
                                      std::span<std::byte> into) noexcept {
  CAIRN_TRY_STATUS(check_io(offset, into, size()));
  return accept({.id = id,
                 .kind = IoKind::kRead,
                 .memory = into.data(),
                 .offset = offset,
                 .length = ByteCount(into.size())});
}

Status ThreadBlockDevice::submit_write(IoId id,
                                       ByteCount offset,
                                       std::span<const std::byte> from) noexcept {
  CAIRN_TRY_STATUS(check_io(offset, from, size()));
  // A piece has one pointer for both directions; pwrite only reads from it.
  return accept({.id = id,
                 .kind = IoKind::kWrite,
                 .memory = const_cast<std::byte*>(from.data()),
                 .offset = offset,
                 .length = ByteCount(from.size())});
}

Status ThreadBlockDevice::sync(IoId id) noexcept {
  return accept({.id = id, .kind = IoKind::kSync});
}

void ThreadBlockDevice::cancel(IoId id) noexcept {
  const MutexLock lock(mutex_);
  if (Operation* const operation = find(id)) operation->is_cancelled = true;
}

std::size_t ThreadBlockDevice::poll(std::span<IoCompletion> out, Deadline until) noexcept {
  if (out.empty() || in_flight_ == 0) return 0;
  const MutexLock lock(mutex_);
  while (finished_.is_empty()) {
    const Nanoseconds wait = until.remaining(clock_.now());
    if (wait.count() <= 0) break;
    done_.wait_for(mutex_, std::min(wait, Nanoseconds(Milliseconds(60'000))));
  }
  return hand_out(out);
}

std::size_t ThreadBlockDevice::hand_out(std::span<IoCompletion> out) noexcept {
  std::size_t count = 0;
  while (count < out.size() && !finished_.is_empty()) {
    const std::uint32_t slot = finished_.pop();
    Operation& operation = operations_[slot];
    out[count++] = {.id = operation.id, .result = operation.result()};
    if (operation.kind != IoKind::kSync) ++stats_.plain_operations;
    operation.is_used = false;
    free_.push_back(slot);
    --in_flight_;
  }
  return count;
}

}  // namespace

Result<std::unique_ptr<BlockDevice>> open_thread_block_device(
    const Clock& clock, const BlockDeviceOptions& options) noexcept {
  CAIRN_TRY(BlockFile file, open_block_file(options));
  auto device = std::make_unique<ThreadBlockDevice>(clock, std::move(file), options.depth);
  CAIRN_TRY_STATUS(device->start(options.threads));
  return std::unique_ptr<BlockDevice>(std::move(device));
}

}  // namespace cairn::storage
