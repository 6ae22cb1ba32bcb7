// What a power cut leaves on the simulated disk.
#include "tests/support/block_io.h"
#include "tests/support/sim_block_device.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <memory>
#include <set>
#include <string>
#include <vector>

namespace cairn::testing {
namespace {

using storage::IoCompletion;
using storage::IoId;

constexpr std::size_t kSector = 512;
constexpr ByteCount kLength = 16_KiB;

class SimDiskCrash : public ::testing::Test {
 protected:
  void write(SimBlockDevice& device, ByteCount offset, std::uint64_t seed) {
    fill(buffer_.bytes(), seed);
    ASSERT_TRUE(device.submit_write(IoId(1), offset, buffer_.bytes()));
    ASSERT_TRUE(complete(device, clock_, 1).at(1));
  }
  void sync(SimBlockDevice& device) {
    ASSERT_TRUE(device.sync(IoId(1)));
    ASSERT_TRUE(complete(device, clock_, 1).at(1));
  }
  static std::vector<std::byte> held(const SimDisk& disk, ByteCount offset = 0_B) {
    std::vector<std::byte> bytes(kLength.value());
    disk.media.read(offset, bytes);
    return bytes;
  }
  static bool holds(const SimDisk& disk, ByteCount offset, std::uint64_t seed) {
    return is_filled(held(disk, offset), seed);
  }
  static bool holds_zeros(const SimDisk& disk, ByteCount offset) {
    const auto bytes = held(disk, offset);
    return std::ranges::all_of(bytes, [](std::byte b) { return b == std::byte{0}; });
  }

  ManualClock clock_;
  PageBuffer buffer_{kLength};
};

TEST_F(SimDiskCrash, KeepsWhatWasSyncedAndMayLoseTheRest) {
  SimDisk disk(clock_, {});
  auto device = disk.boot();
  write(*device, 0_B, 1);
  sync(*device);
  write(*device, 0_B, 2);
  write(*device, 64_KiB, 3);
  disk.crash(SimCrash::kLoseAll);
  EXPECT_TRUE(holds(disk, 0_B, 1));
  EXPECT_TRUE(holds_zeros(disk, 64_KiB));
  device.reset();
  device = disk.boot();
  write(*device, 64_KiB, 3);
  disk.crash(SimCrash::kKeepAll);
  EXPECT_TRUE(holds(disk, 64_KiB, 3));
}

TEST_F(SimDiskCrash, LosesNothingThatAFullCacheHasPushedOut) {
  SimDisk disk(clock_, {.cache = kLength * 2});
  const auto device = disk.boot();
  for (std::uint64_t i = 0; i < 4; ++i)
    write(*device, kLength * i, i + 1);
  EXPECT_EQ(disk.media.unsynced(), kLength * 2);
  disk.crash(SimCrash::kLoseAll);
  EXPECT_TRUE(holds(disk, 0_B, 1));
  EXPECT_TRUE(holds(disk, kLength, 2));
  EXPECT_TRUE(holds_zeros(disk, kLength * 2));
}

// How the sectors of a write of `after` over `before` fared: one letter each.
std::string fates(std::span<const std::byte> held, std::uint64_t before, std::uint64_t after) {
  std::vector<std::byte> was(held.size());
  std::vector<std::byte> is(held.size());
  fill(was, before);
  fill(is, after);
  std::string fates;
  for (std::size_t at = 0; at < held.size(); at += kSector) {
    const auto sector = held.subspan(at, kSector);
    if (std::ranges::equal(sector, std::span(is).subspan(at, kSector))) {
      fates += 'n';
    } else {
      fates += std::ranges::equal(sector, std::span(was).subspan(at, kSector)) ? 'o' : '?';
    }
  }
  return fates;
}

TEST_F(SimDiskCrash, KeepsLosesAndTearsAtSectorsAndPagesByTheSeed) {
  std::set<std::string> seen;
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    SimDisk disk(clock_, {.seed = seed});
    const auto device = disk.boot();
    write(*device, 0_B, 1);
    sync(*device);
    write(*device, 0_B, 2);
    disk.crash();
    seen.insert(fates(held(disk), 1, 2));
  }
  const std::string page(8, 'n');
  const std::string old_page(8, 'o');
  EXPECT_TRUE(seen.contains(std::string(32, 'o')));
  EXPECT_TRUE(seen.contains(std::string(32, 'n')));
  EXPECT_TRUE(seen.contains(page + std::string(24, 'o')));  // torn at 4 KiB
  const auto starts_with = [&](const std::string& start) {
    return std::ranges::any_of(seen, [&](const std::string& fate) {
      return fate.starts_with(start) && fate.find('n', start.size()) != std::string::npos;
    });
  };
  EXPECT_TRUE(starts_with(old_page));  // scattered
  EXPECT_TRUE(starts_with("no"));      // in sectors of 512 B
  for (const std::string& fate : seen)
    EXPECT_EQ(fate.find('?'), std::string::npos) << fate;
}

TEST_F(SimDiskCrash, MayKeepALaterWriteAndLoseAnEarlierOne) {
  bool is_reordered = false;
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    SimDisk disk(clock_, {.seed = seed});
    const auto device = disk.boot();
    write(*device, 0_B, 1);
    write(*device, 64_KiB, 2);
    disk.crash();
    is_reordered = is_reordered || (holds_zeros(disk, 0_B) && holds(disk, 64_KiB, 2));
  }
  EXPECT_TRUE(is_reordered);
}

TEST_F(SimDiskCrash, DoesWhatIsInFlightOrNot) {
  std::set<bool> seen;
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    SimDisk disk(clock_, {.seed = seed});
    const auto device = disk.boot();
    fill(buffer_.bytes(), 9);
    ASSERT_TRUE(device->submit_write(IoId(1), 0_B, buffer_.bytes()));
    disk.crash(SimCrash::kKeepAll);
    EXPECT_TRUE(holds(disk, 0_B, 9) || holds_zeros(disk, 0_B));
    seen.insert(holds(disk, 0_B, 9));
  }
  EXPECT_EQ(seen.size(), 2U);
}

TEST_F(SimDiskCrash, CompletesAndAcceptsNothingAfterIt) {
  SimDisk disk(clock_, {});
  const auto device = disk.boot();
  ASSERT_TRUE(device->submit_write(IoId(1), 0_B, buffer_.bytes()));
  disk.crash();
  EXPECT_FALSE(disk.is_on());
  std::array<IoCompletion, 2> out;
  EXPECT_EQ(device->poll(out, Deadline::after(clock_, Milliseconds(1'000))), 0U);
  EXPECT_EQ(device->in_flight(), 0U);
  EXPECT_EQ(device->submit_read(IoId(2), 0_B, buffer_.bytes()).error().code, ErrorCode::kIo);
  EXPECT_EQ(device->sync(IoId(2)).error().code, ErrorCode::kIo);
}

TEST_F(SimDiskCrash, CutsThePowerAtTheWriteAndTheOffsetThatTheTestNames) {
  for (const ByteCount kept : {0_B, 512_B, 4_KiB, 4608_B, kLength}) {
    SimDisk disk(clock_, {});
    const auto device = disk.boot();
    disk.cut_power_at_write(2, kept, SimCrash::kKeepAll);
    write(*device, 64_KiB, 1);
    fill(buffer_.bytes(), 2);
    ASSERT_TRUE(device->submit_write(IoId(1), 0_B, buffer_.bytes()));
    std::array<IoCompletion, 1> out;
    EXPECT_EQ(device->poll(out, Deadline::after(clock_, Milliseconds(1'000))), 0U);
    EXPECT_FALSE(disk.is_on());
    EXPECT_EQ(device->in_flight(), 0U);
    EXPECT_TRUE(holds(disk, 64_KiB, 1));
    std::vector<std::byte> expected(kLength.value());
    fill(expected, 2);
    std::fill(
        expected.begin() + static_cast<std::ptrdiff_t>(kept.value()), expected.end(), std::byte{0});
    EXPECT_EQ(held(disk), expected) << kept.value();
  }
}

TEST_F(SimDiskCrash, BootsAgainFromACopyOfWhatItHeld) {
  SimDisk disk(clock_, {});
  const auto device = disk.boot();
  write(*device, 0_B, 1);
  SimDisk fork(clock_, {.seed = 2}, disk.media);
  write(*device, 0_B, 2);
  EXPECT_TRUE(holds(fork, 0_B, 1));
  const auto other = fork.boot();
  write(*other, 0_B, 3);
  EXPECT_TRUE(holds(disk, 0_B, 2));
  EXPECT_TRUE(holds(fork, 0_B, 3));
}

}  // namespace
}  // namespace cairn::testing
