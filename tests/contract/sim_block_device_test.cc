// What the simulated disk can do wrong, one fault at a time, and what FaultyBlockDevice adds.
#include "tests/support/sim_block_device.h"

#include "tests/support/block_io.h"
#include "tests/support/faulty_block_device.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <memory>
#include <vector>

namespace cairn::testing {
namespace {

using storage::IoCompletion;
using storage::IoId;
using storage::IoKind;

constexpr ByteCount kLength = 64_KiB;

class SimBlockDeviceTest : public ::testing::Test {
 protected:
  SimDisk make_disk(std::uint64_t seed = 1) { return {clock_, {.size = 1_MiB, .seed = seed}}; }
  Result<ByteCount> finish(storage::BlockDevice& device) {
    return complete(device, clock_, 1).begin()->second;
  }
  Result<ByteCount> write(storage::BlockDevice& device, ByteCount offset, std::uint64_t seed) {
    fill(buffer_.bytes(), seed);
    EXPECT_TRUE(device.submit_write(IoId(1), offset, buffer_.bytes()));
    return finish(device);
  }
  Result<ByteCount> read(storage::BlockDevice& device, ByteCount offset) {
    EXPECT_TRUE(device.submit_read(IoId(1), offset, buffer_.bytes()));
    return finish(device);
  }
  // How many bits of the buffer differ from what `seed` gives.
  int wrong_bits(std::uint64_t seed) const {
    std::vector<std::byte> expected(kLength.value());
    fill(expected, seed);
    int bits = 0;
    for (std::size_t i = 0; i < expected.size(); ++i)
      bits += std::popcount(std::to_integer<unsigned>(expected[i] ^ buffer_.bytes()[i]));
    return bits;
  }
  bool is_as_written(std::uint64_t seed) const { return wrong_bits(seed) == 0; }

  ManualClock clock_;
  PageBuffer buffer_{kLength};
};

TEST_F(SimBlockDeviceTest, FailsTheOperationThatTheScriptNames) {
  SimDisk disk = make_disk();
  disk.faults.script(IoKind::kRead, 2, SimFault::kEio);
  disk.faults.script(IoKind::kWrite, 1, SimFault::kNoSpace);
  disk.faults.script(IoKind::kSync, 1, SimFault::kTimeout);
  const auto device = disk.boot();
  EXPECT_TRUE(read(*device, 0_B));
  EXPECT_EQ(read(*device, 0_B).error(), (Error{ErrorCode::kIo, EIO, ""}));
  EXPECT_TRUE(read(*device, 0_B));
  EXPECT_EQ(write(*device, 0_B, 1).error(), (Error{ErrorCode::kNoSpace, ENOSPC, ""}));
  EXPECT_TRUE(write(*device, 0_B, 1));
  ASSERT_TRUE(device->sync(IoId(1)));
  EXPECT_EQ(finish(*device).error(), (Error{ErrorCode::kTimeout, ETIMEDOUT, ""}));
  EXPECT_EQ(disk.faults.injected(SimFault::kEio), 1U);
}

TEST_F(SimBlockDeviceTest, ContinuesAShortTransferInside) {
  SimDisk disk = make_disk();
  disk.faults.rates[SimFault::kShort] = 1'000'000;
  const auto device = disk.boot();
  EXPECT_EQ(*write(*device, 0_B, 3), kLength);
  EXPECT_EQ(*read(*device, 0_B), kLength);
  EXPECT_TRUE(is_as_written(3));
  EXPECT_EQ(device->stats().continued_pieces, 2U);
}

TEST_F(SimBlockDeviceTest, MisdirectsAWriteAndSaysItSucceeded) {
  SimDisk disk = make_disk();
  disk.faults.script(IoKind::kWrite, 2, SimFault::kMisdirected);
  const auto device = disk.boot();
  EXPECT_TRUE(write(*device, 0_B, 1));
  EXPECT_EQ(*write(*device, 0_B, 2), kLength);
  bool is_found = false;
  for (ByteCount at; at + kLength <= device->size(); at += 4_KiB) {
    ASSERT_TRUE(read(*device, at));
    if (at > 0_B) is_found = is_found || is_as_written(2);
  }
  EXPECT_TRUE(is_found);
  ASSERT_TRUE(read(*device, 0_B));
  EXPECT_FALSE(is_as_written(2));
}

TEST_F(SimBlockDeviceTest, LosesAWriteAndSaysItSucceeded) {
  SimDisk disk = make_disk();
  disk.faults.script(IoKind::kWrite, 2, SimFault::kLost);
  const auto device = disk.boot();
  EXPECT_TRUE(write(*device, 0_B, 1));
  EXPECT_EQ(*write(*device, 0_B, 2), kLength);
  EXPECT_TRUE(read(*device, 0_B));
  EXPECT_TRUE(is_as_written(1));
}

TEST_F(SimBlockDeviceTest, TearsAWriteAndSaysItSucceeded) {
  for (std::uint64_t seed = 0; seed < 8; ++seed) {
    SimDisk disk = make_disk(seed);
    disk.faults.script(IoKind::kWrite, 2, SimFault::kTorn);
    const auto device = disk.boot();
    EXPECT_TRUE(write(*device, 0_B, 1));
    EXPECT_EQ(*write(*device, 0_B, 2), kLength);
    EXPECT_TRUE(read(*device, 0_B));
    EXPECT_FALSE(is_as_written(2));
    const auto last = buffer_.bytes().last(512);
    std::vector<std::byte> before(kLength.value());
    fill(before, 1);
    EXPECT_TRUE(std::ranges::equal(last, std::span(before).last(512)));
  }
}

TEST_F(SimBlockDeviceTest, ReadsStaleBytesOnce) {
  SimDisk disk = make_disk();
  disk.faults.script(IoKind::kRead, 1, SimFault::kStale);
  const auto device = disk.boot();
  EXPECT_TRUE(write(*device, 0_B, 1));
  EXPECT_TRUE(write(*device, 0_B, 2));
  EXPECT_EQ(*read(*device, 0_B), kLength);
  EXPECT_TRUE(is_as_written(1));
  EXPECT_TRUE(read(*device, 0_B));
  EXPECT_TRUE(is_as_written(2));
}

TEST_F(SimBlockDeviceTest, FlipsOneBitOfAnAnswerOrOfTheMedia) {
  SimDisk disk = make_disk();
  disk.faults.script(IoKind::kRead, 1, SimFault::kBitFlip);
  disk.faults.script(IoKind::kWrite, 2, SimFault::kBitFlip);
  const auto device = disk.boot();
  EXPECT_TRUE(write(*device, 0_B, 1));
  EXPECT_EQ(*read(*device, 0_B), kLength);
  EXPECT_EQ(wrong_bits(1), 1);
  EXPECT_TRUE(read(*device, 0_B));
  EXPECT_EQ(wrong_bits(1), 0);
  EXPECT_TRUE(write(*device, 0_B, 2));
  for (int again = 0; again < 2; ++again) {
    EXPECT_TRUE(read(*device, 0_B));
    EXPECT_EQ(wrong_bits(2), 1);
  }
  disk.media.flip_bit(100_B, 3);
  EXPECT_TRUE(read(*device, 0_B));
  EXPECT_EQ(wrong_bits(2), 2);
}

TEST_F(SimBlockDeviceTest, TakesTheTimeOfItsLatency) {
  SimDisk disk(clock_, {.latency_min = Milliseconds(2), .latency_max = Milliseconds(2)});
  disk.faults.script(IoKind::kRead, 2, SimFault::kSlow);
  const auto device = disk.boot();
  std::array<IoCompletion, 1> out;
  for (const Nanoseconds latency : {Milliseconds(2), Milliseconds(1'002)}) {
    const Deadline due = Deadline::after(clock_, latency);
    ASSERT_TRUE(device->submit_read(IoId(1), 0_B, buffer_.bytes()));
    EXPECT_EQ(device->poll(out, Deadline(clock_.now())), 0U);
    const Deadline early(clock_.now() + (latency - Milliseconds(1)));
    EXPECT_EQ(device->poll(out, early), 0U);
    EXPECT_EQ(clock_.now(), early.at());
    EXPECT_EQ(device->poll(out, Deadline::after(clock_, Milliseconds(500))), 1U);
    EXPECT_EQ(clock_.now(), due.at());
  }
}

TEST_F(SimBlockDeviceTest, CompletesNothingWhileFrozen) {
  SimDisk disk = make_disk();
  const auto device = disk.boot();
  disk.freeze();
  ASSERT_TRUE(device->submit_read(IoId(1), 0_B, buffer_.bytes()));
  std::array<IoCompletion, 1> out;
  EXPECT_EQ(device->poll(out, Deadline::after(clock_, Milliseconds(60'000))), 0U);
  device->cancel(IoId(1));
  EXPECT_EQ(device->poll(out, Deadline::after(clock_, Milliseconds(60'000))), 0U);
  EXPECT_EQ(device->in_flight(), 1U);
  disk.thaw();
  EXPECT_EQ(device->poll(out, Deadline(clock_.now())), 1U);
}

TEST_F(SimBlockDeviceTest, CompletesLateWhatWasCancelledInEitherWay) {
  int whole = 0;
  int cancelled = 0;
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    SimDisk disk(clock_, {.seed = seed, .cancel_latency = Milliseconds(700)});
    const auto device = disk.boot();
    ASSERT_TRUE(device->submit_read(IoId(1), 0_B, buffer_.bytes()));
    device->cancel(IoId(1));
    const MonotonicTime due = clock_.now() + Milliseconds(700);
    const Result<ByteCount> result = finish(*device);
    EXPECT_EQ(clock_.now(), due);
    if (!result) {
      EXPECT_EQ(result.error(), (Error{ErrorCode::kTimeout, ECANCELED, ""}));
    }
    ++(result ? whole : cancelled);
  }
  EXPECT_GT(whole, 0);
  EXPECT_GT(cancelled, 0);
}

// What a run of random operations under every fault comes to.
struct History {
  std::vector<std::uint64_t> completions;
  std::vector<std::byte> media;
  friend bool operator==(const History&, const History&) = default;
};

constexpr std::uint64_t kRoundOperations = 16;

void submit_round(SimBlockDevice& device, const PageBuffer& buffers, Random& random) {
  for (std::uint64_t i = 0; i < kRoundOperations; ++i) {
    const auto memory = buffers.part(16_KiB * i, 16_KiB);
    const ByteCount offset = 4_KiB * random.below(253);
    if (random.below(2) == 0) {
      EXPECT_TRUE(device.submit_read(IoId(i), offset, memory));
    } else {
      fill(memory, random.next_u64());
      EXPECT_TRUE(device.submit_write(IoId(i), offset, memory));
    }
  }
}

void finish_round(SimBlockDevice& device, const Clock& clock, History& history) {
  std::array<IoCompletion, kRoundOperations> out;
  const Deadline end = Deadline::after(clock, Milliseconds(100'000));
  while (device.in_flight() > 0) {
    const std::size_t got = device.poll(out, end);
    ASSERT_GT(got, 0U);
    for (const IoCompletion& one : std::span(out).first(got)) {
      const int sys = one.result ? 0 : one.result.error().sys;
      history.completions.push_back(one.id.value() << 32U | static_cast<std::uint64_t>(sys));
    }
  }
}

History run_with_faults(std::uint64_t seed) {
  ManualClock clock;
  SimDisk disk(clock,
               {.size = 1_MiB, .cache = 128_KiB, .seed = seed, .latency_max = Milliseconds(3)});
  for (std::size_t i = 1; i < kSimFaults; ++i)
    disk.faults.rates[static_cast<SimFault>(i)] = 30'000;
  const auto device = disk.boot();
  const PageBuffer buffers(16_KiB * kRoundOperations);
  SeededRandom random(seed);
  History history;
  for (int round = 0; round < 30; ++round) {
    submit_round(*device, buffers, random);
    finish_round(*device, clock, history);
  }
  disk.crash();
  history.media.resize(disk.media.size().value());
  disk.media.read(0_B, history.media);
  return history;
}

TEST(SimBlockDeviceSeed, GivesTheSameRunForTheSameSeed) {
  const History first = run_with_faults(7);
  EXPECT_EQ(first, run_with_faults(7));
  EXPECT_NE(first, run_with_faults(8));
}

TEST(SimBlockDeviceSeed, CompletesInAnotherOrderThanSubmitted) {
  const History run = run_with_faults(1);
  EXPECT_FALSE(std::ranges::is_sorted(std::span(run.completions).first(16)));
}

using SimBlockDeviceDeathTest = SimBlockDeviceTest;

TEST_F(SimBlockDeviceDeathTest, AbortsWhenTheMemoryOfAWriteChangesInFlight) {
  SimDisk disk = make_disk();
  const auto device = disk.boot();
  ASSERT_TRUE(device->submit_write(IoId(1), 0_B, buffer_.bytes()));
  buffer_.bytes()[5] = std::byte{1};
  EXPECT_DEATH(static_cast<void>(finish(*device)), "digest");
  buffer_.bytes()[5] = std::byte{0};
}

TEST_F(SimBlockDeviceTest, FailsByPlanBehindTheWrapper) {
  SimDisk disk = make_disk();
  const auto sim = disk.boot();
  FaultyBlockDevice device(*sim, clock_);
  device.add({.kind = IoKind::kWrite, .nth = 2, .error = Error{ErrorCode::kNoSpace, ENOSPC, "x"}});
  device.add({.kind = {}, .nth = 4, .error = Error{ErrorCode::kIo, EIO, "x"}});
  EXPECT_TRUE(write(device, 0_B, 1));
  EXPECT_EQ(write(device, 0_B, 2).error().sys, ENOSPC);
  EXPECT_TRUE(read(device, 0_B));
  EXPECT_TRUE(is_as_written(1));
  EXPECT_EQ(read(device, 0_B).error().sys, EIO);
  EXPECT_EQ(device.operations(), 4U);
  EXPECT_EQ(disk.writes(), 1U);
}

TEST_F(SimBlockDeviceTest, HoldsACompletionBackBehindTheWrapper) {
  SimDisk disk = make_disk();
  const auto sim = disk.boot();
  FaultyBlockDevice device(*sim, clock_);
  device.add({.kind = IoKind::kRead, .nth = 1, .error = {}, .delay = Milliseconds(50)});
  ASSERT_TRUE(device.submit_read(IoId(1), 0_B, buffer_.bytes()));
  std::array<IoCompletion, 2> out;
  EXPECT_EQ(device.poll(out, Deadline::after(clock_, Milliseconds(10))), 0U);
  EXPECT_EQ(device.in_flight(), 1U);
  EXPECT_EQ(device.submit_read(IoId(1), 0_B, buffer_.bytes()).error().code, ErrorCode::kExists);
  clock_.advance(Milliseconds(49));
  EXPECT_EQ(device.poll(out, Deadline(clock_.now())), 0U);
  clock_.advance(Milliseconds(1));
  EXPECT_EQ(device.poll(out, Deadline(clock_.now())), 1U);
  EXPECT_EQ(*out[0].result, kLength);
  EXPECT_EQ(device.in_flight(), 0U);
}

}  // namespace
}  // namespace cairn::testing
