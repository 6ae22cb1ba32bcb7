#include "storage/nvme/uring_block_device.h"

#include "base/check.h"
#include "storage/nvme/block_file.h"
#include "storage/nvme/piece.h"
#include "storage/nvme/slot_queue.h"
#include "storage/nvme/uring_ring.h"

#include <algorithm>
#include <bit>
#include <cerrno>
#include <optional>
#include <utility>
#include <vector>

namespace cairn::storage {
namespace {

// Pieces in the ring at once, at least: a few long operations keep a drive busy too.
constexpr std::uint32_t kPiecesMin = 64;
// The user data of requests to cancel, whose own completions say nothing of use.
constexpr std::uint64_t kCancelRequest = ~std::uint64_t{0};
constexpr unsigned kFile = 0;  // the number of the registered file

struct Operation {
  bool is_used = false;
  IoId id;
  IoKind kind = IoKind::kSync;
  std::byte* memory = nullptr;
  ByteCount offset;
  ByteCount length;
  ByteCount begun;  // cut into pieces
  ByteCount moved;  // as the kernel has answered
  std::uint32_t pieces = 0;
  bool is_waiting = false;  // for a piece to be cut
  bool is_plain = false;
  std::optional<Error> error;  // the first; nothing more is begun

  Result<ByteCount> result() const noexcept {
    if (error) return *error;
    CAIRN_CHECK(moved == length);
    return moved;
  }
};

struct PieceSlot {
  Piece piece;
  std::uint32_t operation = 0;
  int buffer = FixedBuffers::kNone;
  bool is_in_ring = false;
};

class UringBlockDevice final : public BlockDevice {
 public:
  UringBlockDevice(const Clock& clock,
                   BlockFile file,
                   std::unique_ptr<UringRing> ring,
                   std::uint32_t depth);
  ~UringBlockDevice() override;
  UringBlockDevice(const UringBlockDevice&) = delete;
  UringBlockDevice& operator=(const UringBlockDevice&) = delete;

  const char* kind() const noexcept override { return "io_uring"; }
  ByteCount size() const noexcept override { return file_.size; }
  std::uint32_t depth() const noexcept override {
    return static_cast<std::uint32_t>(operations_.size());
  }
  std::uint32_t in_flight() const noexcept override { return in_flight_; }
  IoStats stats() const noexcept override;
  Status submit_read(IoId id, ByteCount offset, std::span<std::byte> into) noexcept override;
  Status submit_write(IoId id, ByteCount offset, std::span<const std::byte> from) noexcept override;
  Status sync(IoId id) noexcept override;
  void cancel(IoId id) noexcept override;
  std::size_t poll(std::span<IoCompletion> out, Deadline until) noexcept override;
  Status register_memory(std::span<std::byte> memory) noexcept override {
    return ring_->register_memory(memory);
  }

 private:
  Status accept(const Operation& operation) noexcept;
  std::optional<std::uint32_t> find(IoId id) const noexcept;
  void begin_pieces() noexcept;
  void begin_piece(std::uint32_t slot) noexcept;
  // False when the ring has no room; the piece is asked for again later.
  bool request(std::uint32_t index) noexcept;
  void request_cancel(std::uint32_t piece) noexcept;
  void on_answer(std::uint64_t user_data, std::int32_t answer) noexcept;
  void release_piece(std::uint32_t index) noexcept;
  void finish_if_idle(std::uint32_t slot) noexcept;
  std::size_t hand_out(std::span<IoCompletion> out) noexcept;

  const Clock& clock_;
  BlockFile file_;
  std::unique_ptr<UringRing> ring_;  // closed before the file
  std::vector<Operation> operations_;
  std::vector<PieceSlot> pieces_;
  std::vector<std::uint32_t> free_operations_;
  std::vector<std::uint32_t> free_pieces_;
  SlotQueue waiting_;   // operations that have pieces to be cut, in the order they came
  SlotQueue again_;     // pieces to be asked for again
  SlotQueue finished_;  // operations to be handed out
  std::uint32_t in_flight_ = 0;
  std::uint32_t cancels_in_ring_ = 0;
  IoStats stats_;
};

UringBlockDevice::UringBlockDevice(const Clock& clock,
                                   BlockFile file,
                                   std::unique_ptr<UringRing> ring,
                                   std::uint32_t depth)
    : clock_(clock),
      file_(std::move(file)),
      ring_(std::move(ring)),
      operations_(depth),
      pieces_(std::bit_ceil(std::max(depth, kPiecesMin))),
      waiting_(depth),
      again_(pieces_.size()),
      finished_(depth) {
  for (std::uint32_t i = depth; i > 0; --i)
    free_operations_.push_back(i - 1);
  for (auto i = static_cast<std::uint32_t>(pieces_.size()); i > 0; --i)
    free_pieces_.push_back(i - 1);
}

UringBlockDevice::~UringBlockDevice() {
  constexpr Nanoseconds kWait = Milliseconds(1'000);
  std::vector<IoCompletion> ignored(operations_.size());
  while (in_flight_ > 0)
    static_cast<void>(poll(ignored, Deadline::after(clock_, kWait)));
}

IoStats UringBlockDevice::stats() const noexcept {
  IoStats stats = stats_;
  stats.registered = ring_->buffers().bytes();
  return stats;
}

std::optional<std::uint32_t> UringBlockDevice::find(IoId id) const noexcept {
  const auto found = std::ranges::find_if(
      operations_, [id](const Operation& one) { return one.is_used && one.id == id; });
  if (found == operations_.end()) return std::nullopt;
  return static_cast<std::uint32_t>(found - operations_.begin());
}

Status UringBlockDevice::accept(const Operation& operation) noexcept {
  if (find(operation.id)) return Error{ErrorCode::kExists, 0, "operation id"};
  if (free_operations_.empty()) return Error{ErrorCode::kBusy, 0, "depth"};
  const std::uint32_t slot = free_operations_.back();
  free_operations_.pop_back();
  operations_[slot] = operation;
  operations_[slot].is_used = true;
  operations_[slot].is_waiting = true;
  waiting_.push(slot);
  ++in_flight_;
  return {};
}

Status UringBlockDevice::submit_read(IoId id,
                                     ByteCount offset,
                                     std::span<std::byte> into) noexcept {
  CAIRN_TRY_STATUS(check_io(offset, into, size()));
  return accept({.id = id,
                 .kind = IoKind::kRead,
                 .memory = into.data(),
                 .offset = offset,
                 .length = ByteCount(into.size())});
}

Status UringBlockDevice::submit_write(IoId id,
                                      ByteCount offset,
                                      std::span<const std::byte> from) noexcept {
  CAIRN_TRY_STATUS(check_io(offset, from, size()));
  // The kernel's interface has one pointer for both directions; a write only reads from it.
  return accept({.id = id,
                 .kind = IoKind::kWrite,
                 .memory = const_cast<std::byte*>(from.data()),
                 .offset = offset,
                 .length = ByteCount(from.size())});
}

Status UringBlockDevice::sync(IoId id) noexcept {
  return accept({.id = id, .kind = IoKind::kSync});
}

void UringBlockDevice::begin_pieces() noexcept {
  while (!again_.is_empty()) {
    if (!request(again_.front())) return;
    static_cast<void>(again_.pop());
  }
  while (!waiting_.is_empty() && !free_pieces_.empty()) {
    const std::uint32_t slot = waiting_.front();
    Operation& operation = operations_[slot];
    if (!operation.error) begin_piece(slot);
    if (!operation.error && operation.begun != operation.length) continue;
    static_cast<void>(waiting_.pop());
    operation.is_waiting = false;
    finish_if_idle(slot);
  }
}

void UringBlockDevice::begin_piece(std::uint32_t slot) noexcept {
  Operation& operation = operations_[slot];
  std::byte* const memory = operation.memory + operation.begun.value();
  ByteCount bytes = std::min(kIoPieceMax, operation.length - operation.begun);
  FixedBuffers::Place place;
  if (operation.kind != IoKind::kSync) {
    place = ring_->buffers().find(memory);
    // A fixed request lies in one buffer; what is beyond is the next piece's.
    if (place.buffer != FixedBuffers::kNone) bytes = std::min(bytes, place.bytes);
    if (place.buffer == FixedBuffers::kNone) operation.is_plain = true;
  }
  const std::uint32_t index = free_pieces_.back();
  free_pieces_.pop_back();
  pieces_[index] = {.piece = {operation.kind, operation.offset + operation.begun, memory, bytes},
                    .operation = slot,
                    .buffer = place.buffer};
  operation.begun += bytes;
  ++operation.pieces;
  if (!request(index)) again_.push(index);
}

bool UringBlockDevice::request(std::uint32_t index) noexcept {
  io_uring_sqe* const sqe = ring_->next_request();
  if (sqe == nullptr) return false;
  PieceSlot& slot = pieces_[index];
  const Piece& piece = slot.piece;
  const auto bytes = static_cast<unsigned>(piece.left().value());
  const std::uint64_t offset = piece.offset().value();
  const bool is_fixed = slot.buffer != FixedBuffers::kNone;
  if (piece.kind() == IoKind::kSync) {
    io_uring_prep_fsync(sqe, kFile, IORING_FSYNC_DATASYNC);
  } else if (piece.kind() == IoKind::kRead && is_fixed) {
    io_uring_prep_read_fixed(sqe, kFile, piece.memory(), bytes, offset, slot.buffer);
  } else if (piece.kind() == IoKind::kRead) {
    io_uring_prep_read(sqe, kFile, piece.memory(), bytes, offset);
  } else if (is_fixed) {
    io_uring_prep_write_fixed(sqe, kFile, piece.memory(), bytes, offset, slot.buffer);
  } else {
    io_uring_prep_write(sqe, kFile, piece.memory(), bytes, offset);
  }
  sqe->flags |= IOSQE_FIXED_FILE;
  sqe->user_data = index;
  slot.is_in_ring = true;
  return true;
}

void UringBlockDevice::cancel(IoId id) noexcept {
  const std::optional<std::uint32_t> slot = find(id);
  if (!slot) return;
  Operation& operation = operations_[*slot];
  const bool has_ended = operation.pieces == 0 && !operation.is_waiting;
  if (has_ended || operation.error) return;
  const bool is_all_begun = operation.begun == operation.length && !operation.is_waiting;
  // One that lacks a part now can never be whole.
  if (!is_all_begun) operation.error = kIoCancelled;
  for (std::uint32_t i = 0; i < pieces_.size(); ++i) {
    if (pieces_[i].is_in_ring && pieces_[i].operation == *slot) request_cancel(i);
  }
}

void UringBlockDevice::request_cancel(std::uint32_t piece) noexcept {
  // A hint: where there is no room for it, it is not given. The completion queue holds twice what
  // the submission queue does, so cancels and pieces fit in it together.
  if (cancels_in_ring_ == pieces_.size()) return;
  io_uring_sqe* const sqe = ring_->next_request();
  if (sqe == nullptr) return;
  io_uring_prep_cancel64(sqe, piece, 0);
  sqe->user_data = kCancelRequest;
  ++cancels_in_ring_;
}

void UringBlockDevice::on_answer(std::uint64_t user_data, std::int32_t answer) noexcept {
  if (user_data == kCancelRequest) {
    --cancels_in_ring_;
    return;
  }
  const auto index = static_cast<std::uint32_t>(user_data);
  CAIRN_CHECK(index < pieces_.size() && pieces_[index].is_in_ring);
  PieceSlot& slot = pieces_[index];
  Operation& operation = operations_[slot.operation];
  slot.is_in_ring = false;
  const Piece::Next next = slot.piece.on_answer(answer);
  operation.moved += slot.piece.moved();
  if (next == Piece::Next::kContinue) ++stats_.continued_pieces;
  if (next == Piece::Next::kRetry) ++stats_.retried_pieces;
  const bool goes_on = next == Piece::Next::kContinue || next == Piece::Next::kRetry;
  if (goes_on && !operation.error) {
    again_.push(index);
    return;
  }
  if (next == Piece::Next::kFailed && !operation.error) operation.error = slot.piece.error();
  release_piece(index);
}

void UringBlockDevice::release_piece(std::uint32_t index) noexcept {
  const std::uint32_t slot = pieces_[index].operation;
  free_pieces_.push_back(index);
  --operations_[slot].pieces;
  finish_if_idle(slot);
}

void UringBlockDevice::finish_if_idle(std::uint32_t slot) noexcept {
  // One in the waiting queue is finished when it comes out of it.
  const Operation& operation = operations_[slot];
  if (operation.pieces == 0 && !operation.is_waiting) finished_.push(slot);
}

std::size_t UringBlockDevice::poll(std::span<IoCompletion> out, Deadline until) noexcept {
  if (out.empty()) return 0;
  bool may_wait = true;
  while (may_wait && in_flight_ > 0) {
    begin_pieces();
    Nanoseconds wait(0);
    if (finished_.is_empty()) wait = until.remaining(clock_.now());
    may_wait = wait.count() > 0;
    ring_->enter(wait);
    ring_->reap(
        [this](std::uint64_t user_data, std::int32_t answer) { on_answer(user_data, answer); });
    if (!finished_.is_empty()) may_wait = false;
  }
  return hand_out(out);
}

std::size_t UringBlockDevice::hand_out(std::span<IoCompletion> out) noexcept {
  std::size_t count = 0;
  while (count < out.size() && !finished_.is_empty()) {
    const std::uint32_t slot = finished_.pop();
    Operation& operation = operations_[slot];
    out[count++] = {.id = operation.id, .result = operation.result()};
    if (operation.kind != IoKind::kSync)
      ++(operation.is_plain ? stats_.plain_operations : stats_.fixed_operations);
    operation.is_used = false;
    free_operations_.push_back(slot);
    --in_flight_;
  }
  return count;
}

}  // namespace

Result<std::unique_ptr<BlockDevice>> open_uring_block_device(
    const Clock& clock, const BlockDeviceOptions& options) noexcept {
  CAIRN_TRY(BlockFile file, open_block_file(options));
  const std::uint32_t entries = std::bit_ceil(std::max(options.depth, kPiecesMin));
  CAIRN_TRY(auto ring, UringRing::open(entries, file.fd.get()));
  for (const std::span<std::byte> memory : options.buffers)
    static_cast<void>(ring->register_memory(memory));
  return std::unique_ptr<BlockDevice>(
      new UringBlockDevice(clock, std::move(file), std::move(ring), options.depth));
}

}  // namespace cairn::storage
