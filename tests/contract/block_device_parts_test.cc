// The pure parts of the real devices: how answers of the system are counted, which memory is known.
#include "storage/nvme/fixed_buffers.h"
#include "storage/nvme/piece.h"
#include "storage/nvme/slot_queue.h"

#include <gtest/gtest.h>

#include <array>
#include <cerrno>
#include <vector>

namespace cairn::storage {
namespace {

constexpr std::size_t kKiB = 1024;

std::array<std::byte, (16_KiB).value()> memory;

Piece piece_of(ByteCount bytes, IoKind kind = IoKind::kRead) {
  return {kind, 64_KiB, memory.data(), bytes};
}

TEST(Piece, IsDoneWhenAllOfItWasMoved) {
  Piece piece = piece_of(1_MiB);
  EXPECT_EQ(piece.on_answer(1 << 20), Piece::Next::kDone);
  EXPECT_EQ(piece.moved(), 1_MiB);
  EXPECT_EQ(piece.left(), 0_B);
}

TEST(Piece, ContinuesWhereAShortTransferEnded) {
  Piece piece = piece_of(16_KiB);
  EXPECT_EQ(piece.on_answer(4096), Piece::Next::kContinue);
  EXPECT_EQ(piece.moved(), 4_KiB);
  EXPECT_EQ(piece.offset(), 68_KiB);
  EXPECT_EQ(piece.memory(), memory.data() + 4096);
  EXPECT_EQ(piece.left(), 12_KiB);
  EXPECT_EQ(piece.on_answer(12'288), Piece::Next::kDone);
  EXPECT_EQ(piece.moved(), 12_KiB);
}

TEST(Piece, MovesABrokenGranuleAnew) {
  Piece piece = piece_of(16_KiB);
  EXPECT_EQ(piece.on_answer(4096 + 512), Piece::Next::kContinue);
  EXPECT_EQ(piece.moved(), 4_KiB);
  EXPECT_EQ(piece.offset(), 68_KiB);
  EXPECT_EQ(piece.on_answer(512), Piece::Next::kContinue);
  EXPECT_EQ(piece.moved(), 0_B);
  EXPECT_EQ(piece.left(), 12_KiB);
}

TEST(Piece, RetriesAnInterruptedRequest) {
  Piece piece = piece_of(16_KiB);
  EXPECT_EQ(piece.on_answer(-EINTR), Piece::Next::kRetry);
  EXPECT_EQ(piece.on_answer(-EAGAIN), Piece::Next::kRetry);
  EXPECT_EQ(piece.left(), 16_KiB);
  EXPECT_EQ(piece.on_answer(16'384), Piece::Next::kDone);
}

TEST(Piece, GivesUpOnAnswersThatMoveNothing) {
  for (const std::int64_t answer : {std::int64_t{-EAGAIN}, std::int64_t{512}}) {
    Piece piece = piece_of(16_KiB);
    std::uint32_t answers = 1;
    Piece::Next next = piece.on_answer(answer);
    while (next == Piece::Next::kRetry || next == Piece::Next::kContinue) {
      next = piece.on_answer(answer);
      ++answers;
    }
    EXPECT_EQ(next, Piece::Next::kFailed);
    EXPECT_EQ(answers, Piece::kIdleMax);
    EXPECT_EQ(piece.error().code, ErrorCode::kIo);
  }
}

TEST(Piece, FailsWithWhatTheSystemSays) {
  struct Case {
    std::int64_t answer = 0;
    Error error;
  };
  const std::array<Case, 8> cases = {{
      {-EIO, {ErrorCode::kIo, EIO, ""}},
      {-ENOSPC, {ErrorCode::kNoSpace, ENOSPC, ""}},
      {-EDQUOT, {ErrorCode::kNoSpace, EDQUOT, ""}},
      {-ETIMEDOUT, {ErrorCode::kTimeout, ETIMEDOUT, ""}},
      {-ECANCELED, {ErrorCode::kTimeout, ECANCELED, ""}},
      {-EINVAL, {ErrorCode::kIo, EINVAL, ""}},
      {0, {ErrorCode::kIo, 0, ""}},
      {1 << 20, {ErrorCode::kIo, 0, ""}},  // more than was asked for
  }};
  for (const Case& one : cases) {
    Piece piece = piece_of(16_KiB, IoKind::kWrite);
    EXPECT_EQ(piece.on_answer(one.answer), Piece::Next::kFailed);
    EXPECT_EQ(piece.error(), one.error) << one.answer;
    EXPECT_EQ(piece.moved(), 0_B);
  }
}

TEST(Piece, TakesAnyAnswerThatIsNoErrorAsTheEndOfASync) {
  Piece piece;
  EXPECT_EQ(piece.on_answer(0), Piece::Next::kDone);
}

TEST(FixedBuffers, FindsTheBufferOfAnAddressAndWhatIsLeftOfIt) {
  std::vector<std::byte> bytes(64 * kKiB);
  const std::span<std::byte> all(bytes);
  FixedBuffers buffers;
  EXPECT_EQ(buffers.find(bytes.data()).buffer, FixedBuffers::kNone);
  buffers.add(all.subspan(32 * kKiB, 16 * kKiB));
  buffers.add(all.subspan(8 * kKiB, 8 * kKiB));
  EXPECT_EQ(buffers.count(), 2U);
  EXPECT_EQ(buffers.bytes(), 24_KiB);

  EXPECT_EQ(buffers.find(bytes.data()).buffer, FixedBuffers::kNone);
  EXPECT_EQ(buffers.find(bytes.data() + 16 * kKiB).buffer, FixedBuffers::kNone);
  EXPECT_EQ(buffers.find(bytes.data() + 48 * kKiB).buffer, FixedBuffers::kNone);
  const FixedBuffers::Place second = buffers.find(bytes.data() + 8 * kKiB);
  EXPECT_EQ(second.buffer, 1);
  EXPECT_EQ(second.bytes, 8_KiB);
  const FixedBuffers::Place first = buffers.find(bytes.data() + 36 * kKiB);
  EXPECT_EQ(first.buffer, 0);
  EXPECT_EQ(first.bytes, 12_KiB);
}

TEST(FixedBuffers, LeavesOutABrokenGranuleAtTheEnd) {
  std::vector<std::byte> bytes(6 * kKiB);
  FixedBuffers buffers;
  buffers.add(bytes);
  EXPECT_EQ(buffers.find(bytes.data()).bytes, 4_KiB);
  EXPECT_EQ(buffers.find(bytes.data() + 4 * kKiB).buffer, FixedBuffers::kNone);
}

TEST(SlotQueue, GivesBackInOrder) {
  SlotQueue queue(2);
  for (std::uint32_t i = 0; i < 5; ++i) {
    queue.push(i);
    queue.push(i + 100);
    EXPECT_EQ(queue.size(), 2U);
    EXPECT_EQ(queue.front(), i);
    EXPECT_EQ(queue.pop(), i);
    EXPECT_EQ(queue.pop(), i + 100);
    EXPECT_TRUE(queue.is_empty());
  }
}

}  // namespace
}  // namespace cairn::storage
