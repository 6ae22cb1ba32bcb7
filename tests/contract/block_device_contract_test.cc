// What every BlockDevice promises, proved on io_uring, on threads, on the simulated disk, and on
// that one behind the wrapper that injects faults (none here).
#include "base/random.h"
#include "tests/contract/block_machines.h"
#include "tests/support/block_io.h"
#include "tests/support/seed.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace cairn::storage {
namespace {

using testing::BlockMachine;
using testing::complete;
using testing::Completions;
using testing::fill;
using testing::is_filled;
using testing::kDiskBytes;
using testing::PageBuffer;

enum class Kind { kUring, kThreads, kSim, kFaultySim };

std::unique_ptr<BlockMachine> make_machine(Kind kind) {
  switch (kind) {
    case Kind::kUring:
      return std::make_unique<testing::FileMachine>(testing::RealDevice::kUring);
    case Kind::kThreads:
      return std::make_unique<testing::FileMachine>(testing::RealDevice::kThreads);
    case Kind::kSim:
      return std::make_unique<testing::SimBlockMachine>(false);
    case Kind::kFaultySim:
      return std::make_unique<testing::SimBlockMachine>(true);
  }
  return nullptr;
}

class BlockDeviceContract : public ::testing::TestWithParam<Kind> {
 protected:
  static constexpr std::uint32_t kDepth = 16;

  void SetUp() override {
    machine_ = make_machine(GetParam());
    auto device = machine_->open(kDepth);
    if (!device && device.error().code == ErrorCode::kUnsupported)
      GTEST_SKIP() << "needs " << device.error().what;
    ASSERT_TRUE(device) << device.error().what;
    device_ = std::move(*device);
  }
  void reopen() {
    device_.reset();
    auto device = machine_->open(kDepth);
    ASSERT_TRUE(device) << device.error().what;
    device_ = std::move(*device);
  }
  Completions complete_all(std::size_t count) {
    return complete(*device_, machine_->clock(), count);
  }
  Result<ByteCount> complete_one() {
    const Completions done = complete_all(1);
    if (done.size() != 1) return Error{ErrorCode::kTimeout, 0, "no completion"};
    return done.begin()->second;
  }
  Deadline now() { return Deadline(machine_->clock().now()); }
  // Writes `bytes` that follow from `seed`, and waits.
  void write_filled(ByteCount offset, ByteCount bytes, std::uint64_t seed) {
    const PageBuffer buffer(bytes);
    fill(buffer.bytes(), seed);
    ASSERT_TRUE(device_->submit_write(IoId(1), offset, buffer.bytes()));
    ASSERT_EQ(*complete_one(), bytes);
  }
  bool reads_filled(ByteCount offset, ByteCount bytes, std::uint64_t seed) {
    const PageBuffer buffer(bytes);
    EXPECT_TRUE(device_->submit_read(IoId(1), offset, buffer.bytes()));
    const Result<ByteCount> result = complete_one();
    return result && *result == bytes && is_filled(buffer.bytes(), seed);
  }

  std::unique_ptr<BlockMachine> machine_;
  std::unique_ptr<BlockDevice> device_;
};

TEST_P(BlockDeviceContract, TellsItsSizeAndDepth) {
  EXPECT_EQ(device_->size(), kDiskBytes);
  EXPECT_EQ(device_->depth(), kDepth);
  EXPECT_EQ(device_->in_flight(), 0U);
  EXPECT_STRNE(device_->kind(), "");
}

TEST_P(BlockDeviceContract, ReadsBackWhatWasWrittenInManySizes) {
  const std::array<ByteCount, 8> sizes = {
      4_KiB, 8_KiB, 64_KiB, 1020_KiB, 1_MiB, 1028_KiB, 3080_KiB, kDiskBytes};
  std::uint64_t seed = 1;
  for (const ByteCount bytes : sizes) {
    for (const ByteCount offset : {0_B, kDiskBytes - bytes}) {
      SCOPED_TRACE(std::to_string(bytes.value()) + " at " + std::to_string(offset.value()));
      write_filled(offset, bytes, ++seed);
      EXPECT_TRUE(reads_filled(offset, bytes, seed));
    }
  }
}

TEST_P(BlockDeviceContract, KeepsWhatWasSyncedForTheNextDevice) {
  write_filled(64_KiB, 128_KiB, 5);
  ASSERT_TRUE(device_->sync(IoId(9)));
  EXPECT_EQ(*complete_one(), 0_B);
  reopen();
  EXPECT_TRUE(reads_filled(64_KiB, 128_KiB, 5));
}

TEST_P(BlockDeviceContract, CompletesEachOfManyOperationsOnce) {
  const std::uint64_t seed = testing::test_seed();
  SCOPED_TRACE("CAIRN_SEED=" + std::to_string(seed));
  SeededRandom random(seed);
  constexpr ByteCount kShare = 256_KiB;  // of the disk and of the buffer, for each operation
  const PageBuffer buffer(kShare * kDepth);
  for (std::uint64_t round = 0; round < 50; ++round) {
    std::array<ByteCount, kDepth> lengths;
    for (std::uint64_t i = 0; i < kDepth; ++i) {
      lengths[i] = 4_KiB * (1 + random.below(64));
      const auto memory = buffer.part(kShare * i, lengths[i]);
      const IoId id(std::numeric_limits<std::uint64_t>::max() - i);
      if (round % 2 == 0) {
        fill(memory, round + i);
        ASSERT_TRUE(device_->submit_write(id, kShare * i, memory));
      } else {
        ASSERT_TRUE(device_->submit_read(id, kShare * i, memory));
      }
    }
    EXPECT_EQ(device_->in_flight(), kDepth);
    const Completions done = complete_all(kDepth);
    EXPECT_EQ(device_->in_flight(), 0U);
    for (std::uint64_t i = 0; i < kDepth; ++i) {
      const auto found = done.find(std::numeric_limits<std::uint64_t>::max() - i);
      ASSERT_TRUE(found != done.end() && found->second);
      EXPECT_EQ(*found->second, lengths[i]);
    }
  }
}

TEST_P(BlockDeviceContract, KeepsTwoWritersOfDifferentRangesApart) {
  constexpr std::uint64_t kEach = 7;
  constexpr ByteCount kStep = 64_KiB;
  const PageBuffer first(kStep * kEach);
  const PageBuffer second(kStep * kEach);
  fill(first.bytes(), 1);
  fill(second.bytes(), 2);
  for (std::uint64_t i = 0; i < kEach; ++i) {
    const ByteCount at = kStep * i;
    ASSERT_TRUE(device_->submit_write(IoId(i), at * 2, first.part(at, kStep)));
    ASSERT_TRUE(device_->submit_write(IoId(100 + i), at * 2 + kStep, second.part(at, kStep)));
  }
  for (const auto& [id, result] : complete_all(2 * kEach))
    EXPECT_TRUE(result) << id;

  const PageBuffer all(kStep * (2 * kEach));
  ASSERT_TRUE(device_->submit_read(IoId(1), 0_B, all.bytes()));
  ASSERT_TRUE(complete_one());
  for (std::uint64_t i = 0; i < kEach; ++i) {
    const ByteCount at = kStep * i;
    EXPECT_TRUE(std::ranges::equal(all.part(at * 2, kStep), first.part(at, kStep))) << i;
    EXPECT_TRUE(std::ranges::equal(all.part(at * 2 + kStep, kStep), second.part(at, kStep))) << i;
  }
}

TEST_P(BlockDeviceContract, RefusesWhatIsNotAligned) {
  const PageBuffer buffer(16_KiB);
  const auto page = buffer.part(0_B, 4_KiB);
  const std::array<std::pair<ByteCount, std::span<std::byte>>, 5> wrong = {{
      {512_B, page},
      {1_B, page},
      {0_B, buffer.part(0_B, 512_B)},
      {0_B, buffer.part(512_B, 4_KiB)},
      {0_B, buffer.part(0_B, 0_B)},
  }};
  for (const auto& [offset, memory] : wrong) {
    EXPECT_EQ(device_->submit_read(IoId(1), offset, memory).error().code, ErrorCode::kInvalid);
    EXPECT_EQ(device_->submit_write(IoId(1), offset, memory).error().code, ErrorCode::kInvalid);
  }
  EXPECT_EQ(device_->in_flight(), 0U);
}

TEST_P(BlockDeviceContract, RefusesWhatLiesBeyondTheEnd) {
  const PageBuffer buffer(8_KiB);
  const ByteCount last(std::numeric_limits<std::uint64_t>::max() - 4095);
  for (const ByteCount offset : {kDiskBytes - 4_KiB, kDiskBytes, kDiskBytes + 4_KiB, last}) {
    const Status read = device_->submit_read(IoId(1), offset, buffer.bytes());
    EXPECT_EQ(read.error().code, ErrorCode::kInvalid) << offset.value();
    const Status write = device_->submit_write(IoId(1), offset, buffer.bytes());
    EXPECT_EQ(write.error().code, ErrorCode::kInvalid) << offset.value();
  }
  EXPECT_EQ(device_->in_flight(), 0U);
}

TEST_P(BlockDeviceContract, AnswersBusyAtFullDepthUntilOneIsPolled) {
  const PageBuffer buffer(4_KiB * (kDepth + 1));
  const auto submit = [&](std::uint64_t i) {
    return device_->submit_read(IoId(i), 4_KiB * i, buffer.part(4_KiB * i, 4_KiB));
  };
  for (std::uint64_t i = 0; i < kDepth; ++i)
    ASSERT_TRUE(submit(i));
  EXPECT_EQ(submit(kDepth).error().code, ErrorCode::kBusy);
  EXPECT_EQ(device_->sync(IoId(99)).error().code, ErrorCode::kBusy);
  EXPECT_EQ(device_->in_flight(), kDepth);

  std::array<IoCompletion, 1> one;
  const Deadline end = Deadline::after(machine_->clock(), Milliseconds(30'000));
  std::size_t polled = 0;
  while (polled == 0 && !end.has_passed(machine_->clock().now()))
    polled = device_->poll(one, end);
  ASSERT_EQ(polled, 1U);
  EXPECT_TRUE(submit(kDepth));
  EXPECT_EQ(complete_all(kDepth).count(one[0].id.value()), 0U);
}

TEST_P(BlockDeviceContract, RefusesAnIdThatIsInFlight) {
  const PageBuffer buffer(8_KiB);
  ASSERT_TRUE(device_->submit_read(IoId(7), 0_B, buffer.part(0_B, 4_KiB)));
  const auto again = buffer.part(4_KiB, 4_KiB);
  EXPECT_EQ(device_->submit_read(IoId(7), 0_B, again).error().code, ErrorCode::kExists);
  EXPECT_EQ(device_->sync(IoId(7)).error().code, ErrorCode::kExists);
  EXPECT_TRUE(complete_one());
  EXPECT_TRUE(device_->submit_read(IoId(7), 0_B, again));
  EXPECT_TRUE(complete_one());
}

TEST_P(BlockDeviceContract, CompletesWhatWasCancelledExactlyOnce) {
  constexpr std::uint64_t kCount = 15;
  for (std::uint64_t round = 0; round < 20; ++round) {
    const PageBuffer buffer(512_KiB * kCount);
    for (std::uint64_t i = 0; i < kCount; ++i) {
      const auto memory = buffer.part(512_KiB * i, 512_KiB);
      ASSERT_TRUE(device_->submit_read(IoId(i), 512_KiB * i, memory));
      // Some before they begin, some while they run.
      if (round % 2 == 0 && i % 4 == 3) device_->cancel(IoId(i - 1));
    }
    std::array<IoCompletion, 1> first;
    const std::size_t got = device_->poll(first, now());
    for (std::uint64_t i = 0; i < kCount; i += 2)
      device_->cancel(IoId(i));
    device_->cancel(IoId(12'345));
    const Completions done = complete_all(kCount - got);
    EXPECT_EQ(done.size(), kCount - got);
    EXPECT_EQ(device_->in_flight(), 0U);
    for (const auto& [id, result] : done) {
      if (result) {
        EXPECT_EQ(*result, 512_KiB);
      } else {
        EXPECT_EQ(result.error(), (Error{ErrorCode::kTimeout, ECANCELED, ""})) << id;
        EXPECT_EQ(id % 2, 0U) << "nobody cancelled it";
      }
    }
  }
}

TEST_P(BlockDeviceContract, WaitsForWhatIsInFlightWhenDestroyed) {
  const PageBuffer buffer(256_KiB * kDepth);
  fill(buffer.bytes(), 42);
  for (std::uint64_t i = 0; i < kDepth; ++i) {
    const auto memory = buffer.part(256_KiB * i, 256_KiB);
    ASSERT_TRUE(device_->submit_write(IoId(i), 256_KiB * i, memory));
  }
  reopen();
  EXPECT_TRUE(reads_filled(0_B, 256_KiB * kDepth, 42));
}

TEST_P(BlockDeviceContract, PollsNothingWhereNothingIsInFlight) {
  std::array<IoCompletion, 4> out;
  EXPECT_EQ(device_->poll(out, Deadline::after(machine_->clock(), Milliseconds(60'000))), 0U);
  EXPECT_EQ(device_->poll(out, now()), 0U);
  const PageBuffer buffer(4_KiB);
  ASSERT_TRUE(device_->submit_read(IoId(1), 0_B, buffer.bytes()));
  EXPECT_EQ(device_->poll({}, now()), 0U);
  EXPECT_EQ(device_->in_flight(), 1U);
  EXPECT_TRUE(complete_one());
}

TEST_P(BlockDeviceContract, MovesMemoryThatItWasOfferedAndMemoryThatItWasNot) {
  const PageBuffer offered(4_MiB);
  ASSERT_TRUE(device_->register_memory(offered.bytes()));
  fill(offered.bytes(), 3);
  ASSERT_TRUE(device_->submit_write(IoId(1), 1_MiB, offered.bytes()));
  ASSERT_TRUE(complete_one());
  EXPECT_TRUE(reads_filled(1_MiB, 4_MiB, 3));
  fill(offered.bytes(), 4);
  ASSERT_TRUE(device_->submit_read(IoId(1), 1_MiB, offered.bytes()));
  ASSERT_TRUE(complete_one());
  EXPECT_TRUE(is_filled(offered.bytes(), 3));
  EXPECT_EQ(device_->stats().fixed_operations + device_->stats().plain_operations, 3U);
}

INSTANTIATE_TEST_SUITE_P(
    Devices,
    BlockDeviceContract,
    ::testing::Values(Kind::kUring, Kind::kThreads, Kind::kSim, Kind::kFaultySim),
    [](const auto& kind) {
      switch (kind.param) {
        case Kind::kUring:
          return "Uring";
        case Kind::kThreads:
          return "Threads";
        case Kind::kSim:
          return "Sim";
        case Kind::kFaultySim:
          return "FaultySim";
      }
      return "";
    });

}  // namespace
}  // namespace cairn::storage
