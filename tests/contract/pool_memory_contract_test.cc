// What every PoolMemory promises, proved on the simulated machine, on tmpfs and, where the machine
// has huge pages reserved, on hugetlbfs.
#include "tests/contract/pool_machines.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace cairn::storage {
namespace {

using testing::DirectoryPoolMachine;
using testing::PoolMachine;
using testing::SimPoolMachine;

constexpr ByteCount kSlab = 4_MiB;
constexpr ByteCount kStep = 2_MiB;
constexpr std::uint64_t kHugePages = 8;

enum class Kind { kSim, kTmpfs, kHugetlbfs };

class PoolMemoryContract : public ::testing::TestWithParam<Kind> {
 protected:
  void SetUp() override {
    switch (GetParam()) {
      case Kind::kSim:
        machine_ = std::make_unique<SimPoolMachine>();
        return;
      case Kind::kTmpfs:
        machine_ = std::make_unique<DirectoryPoolMachine>(testing::kTmpfs);
        return;
      case Kind::kHugetlbfs:
        const auto mount = testing::find_hugetlbfs(kHugePages);
        if (!mount) GTEST_SKIP() << "needs a hugetlbfs mount with 8 free pages of 2 MiB";
        machine_ = std::make_unique<DirectoryPoolMachine>(*mount);
        return;
    }
  }
  std::unique_ptr<PoolMemory> start() {
    auto memory = machine_->start_daemon();
    EXPECT_TRUE(memory) << memory.error().what;
    return std::move(*memory);
  }
  static PredecessorSlabs reclaim(PoolMemory& memory) {
    auto left = memory.reclaim_predecessors();
    EXPECT_TRUE(left) << left.error().what;
    return *left;
  }

  std::unique_ptr<PoolMachine> machine_;
};

std::byte* map_descriptor(int fd) {
  void* const address = ::mmap(nullptr, kSlab.value(), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  EXPECT_NE(address, MAP_FAILED);
  return static_cast<std::byte*>(address);
}

void unmap(std::byte* address) {
  EXPECT_EQ(::munmap(address, kSlab.value()), 0);
}

bool is_zero(std::span<const std::byte> bytes) {
  return std::ranges::all_of(bytes, [](std::byte b) { return b == std::byte{0}; });
}

TEST_P(PoolMemoryContract, CreatesZeroFilledSlabsThatTheirDescriptorMaps) {
  const auto memory = start();
  const auto slab = memory->create_slab(0, kSlab);
  ASSERT_TRUE(slab);
  ASSERT_TRUE(memory->populate(0, 0_B, kSlab));
  ASSERT_EQ(slab->bytes.size(), kSlab.value());
  EXPECT_TRUE(is_zero(slab->bytes));
  std::byte* const client = map_descriptor(slab->fd);
  client[12345] = std::byte{7};
  EXPECT_EQ(slab->bytes[12345], std::byte{7});
  unmap(client);
}

TEST_P(PoolMemoryContract, NeverUsesASlabNumberTwice) {
  const auto memory = start();
  ASSERT_TRUE(memory->create_slab(3, kSlab));
  EXPECT_EQ(memory->create_slab(3, kSlab).error().code, ErrorCode::kExists);
  memory->discard_slab(3);
  EXPECT_EQ(memory->create_slab(3, kSlab).error().code, ErrorCode::kExists);
}

TEST_P(PoolMemoryContract, PopulatesRangesFromSeveralThreads) {
  const auto memory = start();
  const auto slab = memory->create_slab(0, kSlab);
  ASSERT_TRUE(slab);
  std::vector<std::thread> threads;
  std::vector<int> results(2, 0);
  for (std::size_t i = 0; i < results.size(); ++i) {
    threads.emplace_back(
        [&, i] { results[i] = memory->populate(0, kStep * i, kStep).has_value() ? 1 : 0; });
  }
  for (std::thread& thread : threads)
    thread.join();
  EXPECT_EQ(results, (std::vector<int>{1, 1}));
  std::memset(slab->bytes.data(), 1, slab->bytes.size());
}

TEST_P(PoolMemoryContract, CreatesZeroFilledRecords) {
  const auto memory = start();
  const auto records = memory->create_records(ByteCount(1'000'000));
  ASSERT_TRUE(records);
  ASSERT_EQ(records->bytes.size(), 1'000'000U);
  EXPECT_TRUE(is_zero(records->bytes));
  if (records->owner != nullptr) {
    EXPECT_TRUE(records->owner->populate_records(ByteCount(4'096), ByteCount(65'536)));
  }
  std::memset(records->bytes.data(), 1, records->bytes.size());
}

TEST_P(PoolMemoryContract, LetsOneDaemonRunAtATime) {
  auto memory = start();
  EXPECT_EQ(machine_->start_daemon().error().code, ErrorCode::kLocked);
  memory.reset();
  EXPECT_TRUE(machine_->start_daemon());
}

TEST_P(PoolMemoryContract, RefusesASessionTwice) {
  const auto memory = start();
  const auto lock = memory->create_session_lock(5, "pid 1 (a)");
  ASSERT_TRUE(lock);
  EXPECT_EQ(memory->create_session_lock(5, "pid 2 (b)").error().code, ErrorCode::kExists);
}

TEST_P(PoolMemoryContract, FindsNothingWhereNobodyWas) {
  const auto memory = start();
  const PredecessorSlabs left = reclaim(*memory);
  EXPECT_EQ(left.bytes, 0_B);
  EXPECT_TRUE(left.holders.empty());
}

TEST_P(PoolMemoryContract, LeavesNothingBehindWhenNoSessionIsAlive) {
  auto memory = start();
  ASSERT_TRUE(memory->create_slab(0, kSlab));
  { ASSERT_TRUE(memory->create_session_lock(5, "pid 1 (a)")); }
  memory.reset();
  memory = start();
  const PredecessorSlabs left = reclaim(*memory);
  EXPECT_EQ(left.bytes, 0_B);
  EXPECT_TRUE(left.holders.empty());
}

TEST_P(PoolMemoryContract, CountsAPredecessorsSlabsUntilItsLastClientIsGone) {
  auto memory = start();
  ASSERT_TRUE(memory->create_slab(0, kSlab));
  ASSERT_TRUE(memory->create_slab(1, kStep));
  auto first = memory->create_session_lock(5, "pid 11 (first)");
  auto second = memory->create_session_lock(6, "pid 12 (second)");
  ASSERT_TRUE(first && second);
  OwnedFd first_lock = std::move(*first);
  OwnedFd second_lock = std::move(*second);
  memory.reset();

  memory = start();
  PredecessorSlabs left = reclaim(*memory);
  EXPECT_EQ(left.bytes, kSlab + kStep);
  ASSERT_EQ(left.holders.size(), 2U);

  first_lock = OwnedFd();
  left = reclaim(*memory);
  EXPECT_EQ(left.bytes, kSlab + kStep);
  ASSERT_EQ(left.holders.size(), 1U);
  EXPECT_NE(left.holders[0].find("pid 12 (second)"), std::string::npos);

  second_lock = OwnedFd();
  left = reclaim(*memory);
  EXPECT_EQ(left.bytes, 0_B);
  EXPECT_TRUE(left.holders.empty());
}

TEST_P(PoolMemoryContract, CountsADuplicateOfTheDescriptorAsAlive) {
  auto memory = start();
  ASSERT_TRUE(memory->create_slab(0, kSlab));
  auto lock = memory->create_session_lock(5, "pid 11 (parent)");
  ASSERT_TRUE(lock);
  OwnedFd child(::dup(lock->get()));
  { const OwnedFd parent = std::move(*lock); }
  memory.reset();
  memory = start();
  EXPECT_EQ(reclaim(*memory).bytes, kSlab);
  child = OwnedFd();
  EXPECT_EQ(reclaim(*memory).bytes, 0_B);
}

TEST_P(PoolMemoryContract, ForgetsASessionThatEndedInOrder) {
  auto memory = start();
  ASSERT_TRUE(memory->create_slab(0, kSlab));
  const auto lock = memory->create_session_lock(5, "pid 11 (still here)");
  ASSERT_TRUE(lock);
  memory->remove_session_lock(5);
  memory->remove_session_lock(5);
  memory.reset();
  memory = start();
  EXPECT_EQ(reclaim(*memory).bytes, 0_B);
}

TEST_P(PoolMemoryContract, KeepsAHoldersBytesRightThroughTwoRestarts) {
  auto memory = start();
  const auto old_slab = memory->create_slab(0, kSlab);
  const auto lock = memory->create_session_lock(5, "pid 11 (holder)");
  ASSERT_TRUE(old_slab && lock);
  std::byte* const view = map_descriptor(old_slab->fd);
  std::memset(view, 0x5A, kSlab.value());
  for (std::uint64_t restart = 0; restart < 2; ++restart) {
    memory.reset();
    memory = start();
    EXPECT_EQ(reclaim(*memory).bytes, kSlab);
    const auto slab = memory->create_slab(0, kSlab);
    ASSERT_TRUE(slab);
    std::memset(slab->bytes.data(), 1, slab->bytes.size());
  }
  EXPECT_TRUE(
      std::all_of(view, view + kSlab.value(), [](std::byte b) { return b == std::byte{0x5A}; }));
  unmap(view);
}

TEST_P(PoolMemoryContract, HoldsEachPredecessorsSlabsForItsOwnClients) {
  auto memory = start();
  ASSERT_TRUE(memory->create_slab(0, kSlab));
  auto older = memory->create_session_lock(5, "pid 11 (older)");
  memory.reset();
  memory = start();
  ASSERT_TRUE(memory->create_slab(0, kStep));
  auto newer = memory->create_session_lock(5, "pid 12 (newer)");
  ASSERT_TRUE(older && newer);
  memory.reset();
  memory = start();
  EXPECT_EQ(reclaim(*memory).bytes, kSlab + kStep);
  { const OwnedFd gone = std::move(*older); }
  const PredecessorSlabs left = reclaim(*memory);
  EXPECT_EQ(left.bytes, kStep);
  EXPECT_EQ(left.holders.size(), 1U);
}

INSTANTIATE_TEST_SUITE_P(Machines,
                         PoolMemoryContract,
                         ::testing::Values(Kind::kSim, Kind::kTmpfs, Kind::kHugetlbfs),
                         [](const auto& kind) {
                           switch (kind.param) {
                             case Kind::kSim:
                               return "Sim";
                             case Kind::kTmpfs:
                               return "Tmpfs";
                             case Kind::kHugetlbfs:
                               return "Hugetlbfs";
                           }
                           return "";
                         });

}  // namespace
}  // namespace cairn::storage
