#include "storage/memory_limits.h"

#include "tests/support/process_runner.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <filesystem>
#include <fstream>
#include <string>

namespace cairn::storage {
namespace {

using cairn::testing::TempDir;

constexpr MemoryNeed kNeed = {.pool = 8_GiB, .slab = 1_GiB, .other = 1_GiB};

MemoryFigures plenty() {
  return {.machine = 100_GiB,
          .cgroup = 100_GiB,
          .huge_pages = {},
          .file_system = 100_GiB,
          .address_space = 100_GiB,
          .file_size = 100_GiB};
}

TEST(MemoryLimits, FitWhereNothingIsKnownOrEverythingIsPlenty) {
  EXPECT_EQ(check_memory(kNeed, {}), std::nullopt);
  EXPECT_EQ(check_memory(kNeed, plenty()), std::nullopt);
}

TEST(MemoryLimits, FitToTheByte) {
  MemoryFigures figures = plenty();
  figures.machine = 9_GiB;
  figures.file_system = 8_GiB;
  figures.file_size = 1_GiB;
  EXPECT_EQ(check_memory(kNeed, figures), std::nullopt);
}

TEST(MemoryLimits, SayWhichOneIsTooSmallWithItsNumbers) {
  MemoryFigures figures = plenty();
  figures.machine = 9_GiB - 1_B;
  EXPECT_EQ(check_memory(kNeed, figures),
            (MemoryShortage{MemoryLimit::kMachine, 9_GiB, 9_GiB - 1_B}));
  figures = plenty();
  figures.cgroup = 4_GiB;
  EXPECT_EQ(check_memory(kNeed, figures), (MemoryShortage{MemoryLimit::kCgroup, 9_GiB, 4_GiB}));
  figures = plenty();
  figures.file_system = 4_GiB;
  EXPECT_EQ(check_memory(kNeed, figures), (MemoryShortage{MemoryLimit::kFileSystem, 8_GiB, 4_GiB}));
  figures = plenty();
  figures.address_space = 4_GiB;
  EXPECT_EQ(check_memory(kNeed, figures),
            (MemoryShortage{MemoryLimit::kAddressSpace, 9_GiB, 4_GiB}));
  figures = plenty();
  figures.file_size = 100_MiB;
  EXPECT_EQ(check_memory(kNeed, figures), (MemoryShortage{MemoryLimit::kFileSize, 1_GiB, 100_MiB}));
}

TEST(MemoryLimits, NameTheOneThatMissesMost) {
  MemoryFigures figures = plenty();
  figures.machine = 8_GiB;
  figures.cgroup = 1_GiB;
  figures.file_system = 2_GiB;
  EXPECT_EQ(check_memory(kNeed, figures)->limit, MemoryLimit::kCgroup);
}

TEST(MemoryLimits, CountHugePagesApartFromOrdinaryMemory) {
  MemoryFigures figures = plenty();
  figures.machine = 1_GiB;
  figures.cgroup = 1_GiB;
  figures.file_system = {};
  figures.huge_pages = 8_GiB;
  EXPECT_EQ(check_memory(kNeed, figures), std::nullopt);
  figures.huge_pages = 7_GiB;
  EXPECT_EQ(check_memory(kNeed, figures), (MemoryShortage{MemoryLimit::kHugePages, 8_GiB, 7_GiB}));
}

TEST(MemoryLimits, HaveNamesForPeople) {
  for (const auto limit : {MemoryLimit::kMachine,
                           MemoryLimit::kCgroup,
                           MemoryLimit::kHugePages,
                           MemoryLimit::kFileSystem,
                           MemoryLimit::kAddressSpace,
                           MemoryLimit::kFileSize})
    EXPECT_NE(memory_limit_name(limit), "unknown");
}

class MemoryFiguresTest : public ::testing::Test {
 protected:
  void write(const std::string& name, const std::string& text) {
    const std::filesystem::path file = directory_ / name;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << text;
  }
  MemoryFigures read() {
    return read_memory_figures("/dev/shm/does-not-exist",
                               {.proc = directory_ / "proc",
                                .cgroup = directory_ / "cgroup",
                                .huge_pages = directory_ / "huge"});
  }
  TempDir directory_;
};

TEST_F(MemoryFiguresTest, AreUnknownWhereNothingCanBeRead) {
  const MemoryFigures figures = read();
  EXPECT_EQ(figures.machine, std::nullopt);
  EXPECT_EQ(figures.cgroup, std::nullopt);
  EXPECT_EQ(figures.huge_pages, std::nullopt);
}

TEST_F(MemoryFiguresTest, HaveTheMachinesAvailableMemory) {
  write("proc/meminfo", "MemTotal:       1000 kB\nMemAvailable:    512 kB\n");
  EXPECT_EQ(read().machine, 512_KiB);
}

TEST_F(MemoryFiguresTest, HaveTheTightestCgroupOfVersion2) {
  write("proc/self/cgroup", "0::/pod/cairnd\n");
  write("cgroup/pod/cairnd/memory.max", "max\n");
  write("cgroup/pod/cairnd/memory.current", "100\n");
  write("cgroup/pod/memory.max", "1000\n");
  write("cgroup/pod/memory.current", "700\n");
  write("cgroup/pod/memory.stat", "anon 300\ninactive_file 250\n");
  EXPECT_EQ(read().cgroup, 550_B);
}

TEST_F(MemoryFiguresTest, HaveTheTightestCgroupOfVersion1) {
  write("proc/self/cgroup", "9:cpu,memory:/job\n0::/\n");
  write("cgroup/memory/job/memory.limit_in_bytes", "5000\n");
  write("cgroup/memory/job/memory.usage_in_bytes", "1000\n");
  write("cgroup/memory/job/memory.stat", "total_inactive_file 400\n");
  write("cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
  write("cgroup/memory/memory.usage_in_bytes", "123456\n");
  EXPECT_EQ(read().cgroup, 4400_B);
}

TEST_F(MemoryFiguresTest, HaveNoRoomInAFullCgroup) {
  write("proc/self/cgroup", "0::/full\n");
  write("cgroup/full/memory.max", "1000\n");
  write("cgroup/full/memory.current", "1200\n");
  EXPECT_EQ(read().cgroup, 0_B);
}

TEST_F(MemoryFiguresTest, AreThoseOfThisMachine) {
  const MemoryFigures figures = read_memory_figures("/dev/shm/does-not-exist", {});
  ASSERT_TRUE(figures.machine);
  EXPECT_GT(*figures.machine, 1_MiB);
  ASSERT_TRUE(figures.file_system);
  EXPECT_EQ(figures.huge_pages, std::nullopt);
}

TEST_F(MemoryFiguresTest, HaveTheLimitsOfTheProcess) {
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  rlimit limit = before;
  limit.rlim_cur = 12345;
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &limit), 0);
  const MemoryFigures figures = read();
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
  EXPECT_EQ(figures.file_size, 12345_B);
}

}  // namespace
}  // namespace cairn::storage
