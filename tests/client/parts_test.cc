// The SDK's small parts: lends, slabs, copies, exchanges.
#include "base/checksum.h"
#include "base/random.h"
#include "client/copy_pool.h"
#include "client/exchange.h"
#include "client/frame_copy.h"
#include "client/lend_table.h"
#include "client/slab_map.h"
#include "client/slab_mapper.h"
#include "tests/client/client_fixture.h"

#include <sys/mman.h>
#include <unistd.h>

#include <map>

namespace cairn::client {
namespace {

TEST(LendTable, AgreesWithAMapUnderChurn) {
  LendTable table;
  std::map<std::uint64_t, std::uint64_t> model;
  SeededRandom random(testing::test_seed());
  std::uint64_t next = 1;
  for (int step = 0; step < 20'000; ++step) {
    if (model.empty() || random.below(100) < 55) {
      const std::uint64_t lend = next += 1 + random.below(3);
      ASSERT_TRUE(table.insert({.lend = lend, .offset = lend * 2}));
      ASSERT_FALSE(table.insert({.lend = lend}));
      model[lend] = lend * 2;
    } else {
      auto victim = model.lower_bound(random.below(next));
      if (victim == model.end()) victim = model.begin();
      table.erase(victim->first);
      table.erase(victim->first);
      model.erase(victim);
    }
    ASSERT_EQ(table.size(), model.size());
  }
  for (const auto& [lend, offset] : model) {
    ASSERT_NE(table.find(lend), nullptr);
    EXPECT_EQ(table.find(lend)->offset, offset);
  }
  EXPECT_EQ(table.find(0), nullptr);
  EXPECT_EQ(table.find(next + 1), nullptr);
}

TEST(FrameCopy, EveryRangeOfChunksOfEveryLayoutMovesItsBytes) {
  const std::uint64_t length = 3 * kChunkBytes.value() + 777;
  const auto payload = body(testing::test_seed(), length);
  const std::uint64_t chunk = kChunkBytes.value();
  for (const std::vector<std::uint64_t>& cuts : {std::vector<std::uint64_t>{length},
                                                 {chunk, length - chunk},
                                                 {2 * chunk, chunk, 777},
                                                 {chunk, chunk, chunk, 777}}) {
    std::vector<std::vector<std::byte>> memory;
    memory.reserve(cuts.size());
    CopyTask task{.kind = CopyKind::kIntoFrame, .source = payload.data()};
    for (const std::uint64_t bytes : cuts)
      memory.emplace_back(bytes);
    for (auto& piece : memory)
      task.frame.spans[task.frame.count++] = piece;
    task.frame.length = static_cast<std::uint32_t>(length);
    std::vector<std::uint32_t> sums(4);
    task.checksums = sums.data();
    for (std::uint32_t i = 0; i < 4; ++i)
      ASSERT_TRUE(run_copy(task, {.first = i, .count = 1}));
    EXPECT_EQ(sums[3], crc32c(std::span(payload).subspan(3 * chunk)));
    std::vector<std::byte> out(length);
    task.kind = CopyKind::kFromFrameChecked;
    task.target = out.data();
    EXPECT_TRUE(run_copy(task, {.first = 0, .count = 2}));
    EXPECT_TRUE(run_copy(task, {.first = 2, .count = 2}));
    EXPECT_EQ(out, payload);
    task.kind = CopyKind::kFromFrame;
    out.assign(length, std::byte{0});
    EXPECT_TRUE(run_copy(task, {.first = 0, .count = 4}));
    EXPECT_EQ(out, payload);
    ++sums[2];
    task.kind = CopyKind::kCheck;
    EXPECT_TRUE(run_copy(task, {.first = 0, .count = 2}));
    EXPECT_FALSE(run_copy(task, {.first = 0, .count = 4}));
  }
}

TEST(CopyBatch, SkipsWhatADeadlineOvertakes) {
  testing::ManualClock clock;
  Copier copier(nullptr, clock);
  std::vector<std::byte> memory(100);
  CopyBatch batch;
  batch.clear(1);
  CopyTask task{.kind = CopyKind::kSum};
  task.frame.spans[0] = memory;
  task.frame.count = 1;
  task.frame.length = 100;
  task.checksums = batch.checksums_at(0);
  batch.add(task);
  EXPECT_TRUE(copier.start(batch, Deadline(clock.now())));
  EXPECT_EQ(batch.outcome(0), CopyOutcome::kSkipped);
  EXPECT_TRUE(copier.start(batch, Deadline(clock.now() + Milliseconds(1))));
  EXPECT_EQ(batch.outcome(0), CopyOutcome::kRight);
  EXPECT_EQ(*batch.checksums_at(0), crc32c(memory));
}

TEST(ExchangeTable, KnowsWhatIsAskedAndNoMore) {
  ExchangeTable table;
  EXPECT_FALSE(table.is_full(1, 1));
  table.add(1).is_answered = true;
  EXPECT_TRUE(table.is_full(2, 1));
  EXPECT_FALSE(table.is_full(2, 2));
  ASSERT_NE(table.find(1), nullptr);
  EXPECT_EQ(table.find(2), nullptr);
  EXPECT_EQ(table.find(0), nullptr);
  // 2048 ids later the place is taken.
  EXPECT_TRUE(table.is_full(2'049, 1'024));
  EXPECT_EQ(table.find(2'049), nullptr);
  table.remove(*table.find(1));
  EXPECT_EQ(table.size(), 0U);
}

class SlabMapTest : public ::testing::Test {
 protected:
  SlabMapTest() { map_.begin_daemon(Descriptor()); }
  Descriptor file() {
    const int fd = network_.open_descriptor(
        process_, {.kind = testing::SimDescriptorKind::kSlab, .subject = 1});
    return {*watch_, fd};
  }
  Result<FramePieces> find(std::vector<wire::WireExtent> extents, std::uint32_t length) {
    return map_.find(extents, length, frame_);
  }

  testing::ManualClock clock_;
  testing::SimNetwork network_{clock_, 1};
  testing::SimProcessId process_ = network_.spawn();
  std::unique_ptr<transport::ProcessWatch> watch_ = network_.make_process_watch(process_);
  SimSlabs slabs_{network_, process_};
  std::span<std::byte> memory_ = slabs_.make(1, std::size_t{8} << 20U);
  SlabMap map_{slabs_};
  HeldFrame frame_;
};

TEST_F(SlabMapTest, MapsASlabAtItsFirstFrameAndUnmapsAnOldOneAtItsLast) {
  ASSERT_TRUE(map_.add({.slab = 3, .generation = 1, .bytes = memory_.size()}, file()).has_value());
  EXPECT_EQ(slabs_.mapped, 0);
  const auto pieces = find({{.slab = 3, .generation = 1, .offset = 4096, .bytes = 8192}}, 100);
  ASSERT_TRUE(pieces.has_value());
  EXPECT_EQ(pieces->spans[0].data(), memory_.data() + 8192);
  EXPECT_EQ(pieces->spans[0].size(), 100U);
  map_.hold(frame_);
  map_.begin_daemon(Descriptor());
  EXPECT_EQ(slabs_.mapped, 1);
  map_.drop(frame_);
  EXPECT_EQ(slabs_.mapped, 0);
  EXPECT_FALSE(
      find({{.slab = 3, .generation = 1, .offset = 4096, .bytes = 8192}}, 100).has_value());
}

TEST_F(SlabMapTest, ASlabsNextLifeReplacesTheOldOne) {
  ASSERT_TRUE(map_.add({.slab = 0, .generation = 1, .bytes = memory_.size()}, file()).has_value());
  ASSERT_TRUE(find({{.slab = 0, .generation = 1, .offset = 0, .bytes = 8192}}, 1).has_value());
  ASSERT_TRUE(map_.add({.slab = 0, .generation = 2, .bytes = memory_.size()}, file()).has_value());
  EXPECT_EQ(slabs_.mapped, 0);
  EXPECT_EQ(find({{.slab = 0, .generation = 1, .offset = 0, .bytes = 8192}}, 1).error().code,
            ErrorCode::kCorrupt);
  EXPECT_TRUE(find({{.slab = 0, .generation = 2, .offset = 0, .bytes = 8192}}, 1).has_value());
  ASSERT_TRUE(map_.add({.slab = 0, .generation = 2, .bytes = memory_.size()}, file()).has_value());
  EXPECT_EQ(network_.descriptor_count(process_), 0U);
}

TEST_F(SlabMapTest, RefusesNoticesAndExtentsThatCannotBe) {
  EXPECT_EQ(map_.add({.slab = 0, .generation = 1, .bytes = 4096}, Descriptor()).error().code,
            ErrorCode::kCorrupt);
  EXPECT_EQ(map_.add({.slab = 0, .generation = 1, .bytes = 0}, file()).error().code,
            ErrorCode::kCorrupt);
  EXPECT_EQ(map_.add({.slab = kSlabsMax, .generation = 1, .bytes = 4096}, file()).error().code,
            ErrorCode::kTooLarge);
  ASSERT_TRUE(map_.add({.slab = 0, .generation = 1, .bytes = memory_.size()}, file()).has_value());
  const wire::WireExtent whole{.slab = 0, .generation = 1, .offset = 0, .bytes = 1U << 20U};
  EXPECT_FALSE(find({}, 1).has_value());
  EXPECT_FALSE(find({whole}, 0).has_value());
  EXPECT_FALSE(find({whole}, 1U << 20U).has_value());
  EXPECT_FALSE(find({whole}, 1U << 30U).has_value());
  EXPECT_FALSE(find({whole, whole}, 100).has_value());
  EXPECT_FALSE(find(std::vector(5, whole), 4U << 20U).has_value());
  // A chunk must not lie in two pieces.
  EXPECT_FALSE(find({whole, whole}, 1U << 20U).has_value());
  ASSERT_TRUE(map_.add({.slab = 1, .generation = 1, .bytes = memory_.size()}, file()).has_value());
  slabs_.refuses = true;
  const wire::WireExtent unmapped{.slab = 1, .generation = 1, .offset = 0, .bytes = 8192};
  EXPECT_EQ(find({unmapped}, 100).error().code, ErrorCode::kIo);
  EXPECT_EQ(find({unmapped}, 100).error().code, ErrorCode::kIo);
}

TEST(SystemSlabMapper, SaysThatThereIsNoRoomForASlabBeyondTheAddressSpace) {
  constexpr std::uint64_t kBeyond = std::uint64_t{1} << 60U;
  const int file = memfd_create("slab", MFD_CLOEXEC);
  ASSERT_EQ(ftruncate(file, static_cast<off_t>(kBeyond)), 0);
  SystemSlabMapper mapper;
  EXPECT_EQ(mapper.map(file, ByteCount(kBeyond)).error().code, ErrorCode::kNoSpace);
}

}  // namespace
}  // namespace cairn::client
