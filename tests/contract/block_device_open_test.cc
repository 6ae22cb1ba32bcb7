// What the real devices do with files they cannot use, kernels that refuse, and memory they know.
#include "storage/nvme/thread_block_device.h"
#include "storage/nvme/uring_block_device.h"
#include "storage/pool_memory.h"
#include "tests/contract/block_machines.h"
#include "tests/support/block_io.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <optional>
#include <string>
#include <thread>
#include <utility>

namespace cairn::storage {
namespace {

using testing::complete;
using testing::FileMachine;
using testing::fill;
using testing::PageBuffer;
using testing::RealDevice;

class RealBlockDevice : public ::testing::TestWithParam<RealDevice> {
 protected:
  // Skips where the machine lacks it.
  std::unique_ptr<BlockDevice> open(std::uint32_t depth = 8) {
    auto device = machine_.open(depth);
    if (device) return std::move(*device);
    reason_ = device.error().what;
    return nullptr;
  }
  std::optional<Error> open_error(const BlockDeviceOptions& options) {
    const auto device = machine_.open_with(options);
    if (device) return std::nullopt;
    return device.error();
  }
  Result<ByteCount> finish(BlockDevice& device) {
    return complete(device, machine_.clock(), 1).begin()->second;
  }

  FileMachine machine_{GetParam()};
  const char* reason_ = "";
};

TEST_P(RealBlockDevice, NamesItselfForAGauge) {
  const auto device = open();
  if (device == nullptr) GTEST_SKIP() << "needs " << reason_;
  EXPECT_STREQ(device->kind(), GetParam() == RealDevice::kUring ? "io_uring" : "threads");
}

TEST_P(RealBlockDevice, SaysWhyItCannotOpen) {
  const testing::TempDir folder;
  const std::string small = folder / "small";
  const std::string pipe = folder / "pipe";
  ASSERT_GE(OwnedFd(::open(small.c_str(), O_CREAT | O_RDWR, 0600)).get(), 0);
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_EQ(open_error({.path = folder / "none"})->code, ErrorCode::kNotFound);
  EXPECT_EQ(open_error({.path = small + "/below"})->code, ErrorCode::kNotFound);
  EXPECT_EQ(open_error({.path = small})->code, ErrorCode::kInvalid);
  EXPECT_EQ(open_error({.path = folder.path()})->code, ErrorCode::kInvalid);
  EXPECT_TRUE(open_error({.path = pipe}));
  // A file that even root may only read, and one of a file system without O_DIRECT.
  EXPECT_EQ(open_error({.path = "/sys/kernel/uevent_seqnum"})->code, ErrorCode::kPermission);
  EXPECT_EQ(open_error({.path = "/proc/self/comm"})->code, ErrorCode::kUnsupported);
}

TEST_P(RealBlockDevice, RefusesOptionsOutOfRange) {
  const std::string path = machine_.path();
  EXPECT_STREQ(open_error({.path = path, .depth = 0})->what, "depth");
  EXPECT_STREQ(open_error({.path = path, .depth = 4097})->what, "depth");
  EXPECT_STREQ(open_error({.path = path, .threads = 0})->what, "threads");
  EXPECT_STREQ(open_error({.path = path, .threads = 65})->what, "threads");
}

TEST_P(RealBlockDevice, FailsAReadWhereTheFileWasCutShort) {
  const auto device = open();
  if (device == nullptr) GTEST_SKIP() << "needs " << reason_;
  ASSERT_EQ(::truncate(machine_.path().c_str(), 1'000'000), 0);
  const PageBuffer buffer(4_MiB);
  ASSERT_TRUE(device->submit_read(IoId(1), 0_B, buffer.bytes()));
  EXPECT_EQ(finish(*device).error().code, ErrorCode::kIo);
  ASSERT_TRUE(device->submit_read(IoId(1), 4_MiB, buffer.part(0_B, 4_KiB)));
  EXPECT_EQ(finish(*device).error(), (Error{ErrorCode::kIo, 0, ""}));
}

TEST_P(RealBlockDevice, MayBeOpenedByOneThreadAndUsedByAnother) {
  auto device = open();
  if (device == nullptr) GTEST_SKIP() << "needs " << reason_;
  const PageBuffer buffer(64_KiB);
  fill(buffer.bytes(), 1);
  std::thread([&] {
    ASSERT_TRUE(device->submit_write(IoId(1), 0_B, buffer.bytes()));
    EXPECT_EQ(*finish(*device), 64_KiB);
  }).join();
}

TEST_P(RealBlockDevice, RunsMoreOperationsThanTheRingHasPlaces) {
  constexpr std::uint32_t kDepth = 24;
  const auto device = open(kDepth);
  if (device == nullptr) GTEST_SKIP() << "needs " << reason_;
  // 24 of 8 pieces each are three times what the ring takes.
  const PageBuffer buffer(8_MiB);
  for (std::uint64_t i = 0; i < kDepth; ++i)
    ASSERT_TRUE(device->submit_write(IoId(i), 0_B, buffer.bytes()));
  for (std::uint64_t i = 0; i < kDepth; i += 3)
    device->cancel(IoId(i));
  for (const auto& [id, result] : complete(*device, machine_.clock(), kDepth)) {
    if (result) {
      EXPECT_EQ(*result, 8_MiB);
    } else {
      EXPECT_TRUE(id % 3 == 0 && result.error().sys == ECANCELED) << id;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Devices,
                         RealBlockDevice,
                         ::testing::Values(RealDevice::kUring, RealDevice::kThreads),
                         [](const auto& device) {
                           return device.param == RealDevice::kUring ? "Uring" : "Threads";
                         });

class UringBlockDeviceTest : public ::testing::Test {
 protected:
  std::unique_ptr<BlockDevice> open(std::vector<std::span<std::byte>> buffers) {
    auto device =
        machine_.open_with({.path = machine_.path(), .depth = 8, .buffers = std::move(buffers)});
    if (device) return std::move(*device);
    reason_ = device.error().what;
    return nullptr;
  }
  FileMachine machine_{RealDevice::kUring};
  const char* reason_ = "";
};

TEST_F(UringBlockDeviceTest, CountsOperationsInsideAndOutsideOfItsBuffers) {
  const PageBuffer memory(6_MiB);
  // Two buffers side by side, and memory behind them that is in none.
  const auto device = open({memory.part(0_B, 2_MiB), memory.part(2_MiB, 2_MiB)});
  if (device == nullptr) GTEST_SKIP() << "needs " << reason_;
  EXPECT_EQ(device->stats().registered, 4_MiB);
  fill(memory.bytes(), 1);
  // Pieces cannot end where buffers do: 1 MiB does not divide this range.
  ASSERT_TRUE(device->submit_write(IoId(1), 0_B, memory.part(512_KiB, 3_MiB)));
  EXPECT_EQ(*complete(*device, machine_.clock(), 1).at(1), 3_MiB);
  EXPECT_EQ(device->stats().fixed_operations, 1U);
  EXPECT_EQ(device->stats().plain_operations, 0U);
  ASSERT_TRUE(device->submit_write(IoId(2), 3_MiB, memory.part(3584_KiB, 2_MiB)));
  EXPECT_EQ(*complete(*device, machine_.clock(), 1).at(2), 2_MiB);
  EXPECT_EQ(device->stats().fixed_operations, 1U);
  EXPECT_EQ(device->stats().plain_operations, 1U);

  const PageBuffer back(5_MiB);
  ASSERT_TRUE(device->submit_read(IoId(3), 0_B, back.bytes()));
  EXPECT_EQ(*complete(*device, machine_.clock(), 1).at(3), 5_MiB);
  EXPECT_TRUE(std::ranges::equal(back.bytes(), memory.part(512_KiB, 5_MiB)));
}

TEST_F(UringBlockDeviceTest, WorksWithMemoryThatTheKernelRefusesToRegister) {
  const auto device = open({});
  if (device == nullptr) GTEST_SKIP() << "needs " << reason_;
  const std::span<std::byte> unmapped(reinterpret_cast<std::byte*>(0x10000), std::size_t{1} << 20U);
  EXPECT_EQ(device->register_memory(unmapped).error(), (Error{ErrorCode::kIo, EFAULT, ""}));
  EXPECT_EQ(device->stats().registered, 0_B);
  const PageBuffer buffer(4_KiB);
  ASSERT_TRUE(device->submit_read(IoId(1), 0_B, buffer.bytes()));
  EXPECT_TRUE(complete(*device, machine_.clock(), 1).at(1));
  // And fails an operation on it, where a plain pointer would end the process.
  ASSERT_TRUE(device->submit_read(IoId(2), 0_B, unmapped));
  EXPECT_EQ(complete(*device, machine_.clock(), 1).at(2).error(),
            (Error{ErrorCode::kIo, EFAULT, ""}));
}

// Answers `call` with `sys` in this thread from now on.
bool forbid(int call, int sys) {
  std::array<sock_filter, 4> program = {{
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<__u32>(call), 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | static_cast<__u32>(sys)),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  }};
  const sock_fprog filter{.len = program.size(), .filter = program.data()};
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return false;
  return ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0;
}

TEST_F(UringBlockDeviceTest, TellsWhenASeccompFilterForbidsIoUring) {
  for (const int sys : {EPERM, ENOSYS}) {
    std::thread([&] {
      if (!forbid(SYS_io_uring_setup, sys)) GTEST_SKIP() << "needs seccomp filters";
      const auto device = machine_.open(8);
      ASSERT_FALSE(device);
      EXPECT_EQ(device.error(), (Error{ErrorCode::kUnsupported, sys, ""}));
      // And the fallback, from the same thread.
      EXPECT_TRUE(FileMachine(RealDevice::kThreads).open(8));
    }).join();
  }
}

}  // namespace
}  // namespace cairn::storage
