// What every tier promises to the store, proved over two of different granule and location of
// header pages: DRAM in 4 KiB granules with the header in front of the payload, and device memory
// in 64 KiB granules with headers in host memory.
#include "base/check.h"
#include "base/random.h"
#include "storage/frame_tier.h"
#include "tests/support/seed.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <utility>
#include <vector>

namespace cairn::storage {
namespace {

constexpr ByteCount kSlab = 8_MiB;
constexpr std::uint32_t kSlabs = 4;
constexpr std::uint32_t kGeneration = 77;

// A tier and the memory under it. The "device" is host memory that only the test touches.
class TierBench {
 public:
  virtual ~TierBench() = default;
  virtual Tier& tier() = 0;
  virtual void add_slab(std::uint32_t number, ByteCount bytes) = 0;
  virtual ByteCount header_in_line() const = 0;

  std::vector<std::byte>& memory(std::uint32_t slab) { return memory_[slab]; }

 protected:
  std::map<std::uint32_t, std::vector<std::byte>> memory_;
};

class DramBench final : public TierBench {
 public:
  Tier& tier() override { return tier_; }
  void add_slab(std::uint32_t number, ByteCount bytes) override {
    memory_[number].resize(bytes.value());
    tier_.add_slab(
        {.number = number, .generation = kGeneration, .bytes = memory_[number], .fd = -1});
  }
  ByteCount header_in_line() const override { return kHeaderBytes; }

 private:
  DramTier tier_{{.slab_bytes = kSlab, .slabs_max = kSlabs}};
};

class DeviceBench final : public TierBench {
 public:
  Tier& tier() override { return tier_; }
  void add_slab(std::uint32_t number, ByteCount bytes) override {
    memory_[number].resize(bytes.value());
    tier_.add_slab(number,
                   kGeneration,
                   {.address = memory_[number].data(),
                    .bytes = bytes.value(),
                    .kind = MemoryKind::kDevice,
                    .device = 1});
  }
  ByteCount header_in_line() const override { return 0_B; }

 private:
  std::vector<std::byte> headers_ = std::vector<std::byte>(512 * kHeaderBytes.value());
  DeviceTier tier_{{.slab_bytes = kSlab, .slabs_max = kSlabs, .headers = headers_}};
};

enum class Kind { kDram, kDevice };

class TierContract : public ::testing::TestWithParam<Kind> {
 protected:
  void SetUp() override {
    if (GetParam() == Kind::kDram) {
      bench_ = std::make_unique<DramBench>();
    } else {
      bench_ = std::make_unique<DeviceBench>();
    }
  }
  Tier& tier() { return bench_->tier(); }
  ByteCount frame_bytes(ByteCount payload) {
    const std::uint64_t granule = tier().granule().value();
    return ByteCount(round_up(bench_->header_in_line().value() + payload.value(), granule));
  }
  // Fills the tier with frames of one granule of payload and frees those that `keeps` refuses.
  template <typename Keeps>
  std::vector<ExtentList> leave_holes(Keeps keeps) {
    std::vector<ExtentList> live;
    while (const auto frame = tier().allocate(256_KiB - bench_->header_in_line()))
      live.push_back(*frame);
    std::vector<ExtentList> kept;
    for (std::size_t i = 0; i < live.size(); ++i) {
      if (keeps(i)) {
        kept.push_back(live[i]);
      } else {
        tier().release(live[i]);
      }
    }
    return kept;
  }

  std::unique_ptr<TierBench> bench_;
};

TEST_P(TierContract, HasNoRoomUntilASlabIsAdded) {
  EXPECT_EQ(tier().allocate(1_B), std::nullopt);
  EXPECT_EQ(tier().usage().capacity, 0_B);
  bench_->add_slab(2, kSlab);
  EXPECT_TRUE(tier().allocate(1_B));
  EXPECT_EQ(tier().usage().capacity, kSlab);
}

TEST_P(TierContract, GivesOneExtentWhereOneFits) {
  bench_->add_slab(0, kSlab);
  const auto frame = tier().allocate(1_MiB);
  ASSERT_TRUE(frame);
  EXPECT_EQ(frame->size(), 1U);
  EXPECT_EQ(tier().usage().allocated, frame_bytes(1_MiB));
}

TEST_P(TierContract, HoldsTheLargestBlockWhereTheSlabsAllow) {
  bench_->add_slab(0, kSlab);
  bench_->add_slab(1, kSlab);
  bench_->add_slab(2, kSlab);
  const auto frame = tier().allocate(16_MiB);
  ASSERT_TRUE(frame);
  EXPECT_GE(frame->size(), 2U);
  const PayloadSpans spans = tier().payload(*frame, 16_MiB);
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < spans.size; ++i)
    sum += spans.items[i].bytes;
  EXPECT_EQ(sum, (16_MiB).value());
}

TEST_P(TierContract, ComposesAFrameOfPiecesThatHoldWholeChunks) {
  bench_->add_slab(0, kSlab);
  const auto kept = leave_holes([](std::size_t i) { return i % 4 == 0; });
  const ByteCount payload = 1_MiB + 300_KiB;
  const auto frame = tier().allocate(payload);
  ASSERT_TRUE(frame);
  ASSERT_GE(frame->size(), 2U);
  const PayloadSpans spans = tier().payload(*frame, payload);
  ASSERT_EQ(spans.size, frame->size());
  for (std::size_t i = 0; i < spans.size; ++i) {
    EXPECT_GE(spans.items[i].bytes, kChunkBytes.value());
    if (i + 1 < spans.size) {
      EXPECT_EQ(spans.items[i].bytes % kChunkBytes.value(), 0U);
    }
  }
}

TEST_P(TierContract, NeverTakesMoreThanFourPieces) {
  bench_->add_slab(0, kSlab);
  const auto kept = leave_holes([](std::size_t i) { return i % 2 == 0; });
  // Holes of less than 512 KiB: four of them hold less than 1.5 MiB of whole chunks.
  const ByteCount before = tier().usage().allocated;
  EXPECT_EQ(tier().allocate(3_MiB), std::nullopt);
  EXPECT_EQ(tier().usage().allocated, before);
}

TEST_P(TierContract, SaysNoRatherThanMoveAnything) {
  bench_->add_slab(0, kSlab);
  const auto first = tier().allocate(5_MiB);
  ASSERT_TRUE(first);
  EXPECT_EQ(tier().allocate(5_MiB), std::nullopt);
  tier().release(*first);
  EXPECT_TRUE(tier().allocate(5_MiB));
}

TEST_P(TierContract, NamesExtentsAsTheWireDoes) {
  bench_->add_slab(1, kSlab);
  bench_->add_slab(3, kSlab);
  std::vector<ExtentList> frames;
  while (const auto frame = tier().allocate(2_MiB))
    frames.push_back(*frame);
  for (const ExtentList& frame : frames) {
    std::array<SlabExtent, kExtentsMax> wire{};
    tier().slab_extents(frame, wire);
    const PayloadSpans spans = tier().payload(frame, 2_MiB);
    std::uint64_t header = bench_->header_in_line().value();
    for (std::size_t i = 0; i < frame.size(); ++i) {
      ASSERT_TRUE(wire[i].slab == 1 || wire[i].slab == 3);
      EXPECT_EQ(wire[i].generation, kGeneration);
      EXPECT_GE(wire[i].bytes, spans.items[i].bytes + header);
      EXPECT_EQ(bench_->memory(wire[i].slab).data() + wire[i].offset + header,
                spans.items[i].address);
      header = 0;
    }
  }
}

TEST_P(TierContract, KeepsHeaderPagesApartInHostMemory) {
  bench_->add_slab(0, kSlab);
  std::vector<ExtentList> frames;
  while (const auto frame = tier().allocate(100_KiB))
    frames.push_back(*frame);
  for (std::size_t i = 0; i < frames.size(); ++i) {
    const auto page = tier().header_page(frames[i]);
    ASSERT_EQ(page.size(), kHeaderBytes.value());
    std::memset(page.data(), static_cast<int>(i % 251), page.size());
    for (const MemorySpan& span : tier().payload(frames[i], 100_KiB).items)
      if (span.bytes > 0) std::memset(span.address, 0xFF, span.bytes);
  }
  for (std::size_t i = 0; i < frames.size(); ++i) {
    for (const std::byte b : tier().header_page(frames[i]))
      ASSERT_EQ(b, static_cast<std::byte>(i % 251));
  }
}

TEST_P(TierContract, RunsUnderChurnWithoutOverlapOrLoss) {
  const std::uint64_t seed = cairn::testing::test_seed();
  SCOPED_TRACE(::testing::Message() << "CAIRN_SEED=" << seed);
  SeededRandom random(seed);
  for (std::uint32_t slab = 0; slab < kSlabs; ++slab)
    bench_->add_slab(slab, slab + 1 == kSlabs ? 4_MiB : kSlab);
  struct Live {
    ExtentList extents;
    ByteCount length;
    std::byte mark;
  };
  std::vector<Live> live;
  ByteCount expected;
  for (int step = 0; step < 2000; ++step) {
    const ByteCount length(1 + random.below((3_MiB).value()));
    const auto frame = tier().allocate(length);
    if (frame) {
      const auto mark = static_cast<std::byte>(step);
      const PayloadSpans spans = tier().payload(*frame, length);
      for (std::size_t i = 0; i < spans.size; ++i)
        std::memset(spans.items[i].address, static_cast<int>(mark), spans.items[i].bytes);
      live.push_back({*frame, length, mark});
      expected += frame_bytes(length);
      ASSERT_EQ(tier().usage().allocated, expected);
      continue;
    }
    ASSERT_FALSE(live.empty());
    std::swap(live[random.below(live.size())], live.back());
    const PayloadSpans spans = tier().payload(live.back().extents, live.back().length);
    for (std::size_t i = 0; i < spans.size; ++i) {
      for (std::size_t at = 0; at < spans.items[i].bytes; at += 4096)
        ASSERT_EQ(spans.items[i].address[at], live.back().mark);
    }
    tier().release(live.back().extents);
    expected -= frame_bytes(live.back().length);
    live.pop_back();
  }
  for (const Live& block : live)
    tier().release(block.extents);
  EXPECT_EQ(tier().usage().allocated, 0_B);
  EXPECT_EQ(tier().usage().largest_free_run, kSlab);
}

INSTANTIATE_TEST_SUITE_P(Tiers,
                         TierContract,
                         ::testing::Values(Kind::kDram, Kind::kDevice),
                         [](const auto& kind) {
                           return kind.param == Kind::kDram ? "Dram" : "Device";
                         });

TEST(DeviceTier, HasNoRoomWhenEveryHeaderPageIsTaken) {
  std::vector<std::byte> headers(2 * kHeaderBytes.value());
  std::vector<std::byte> memory(kSlab.value());
  DeviceTier tier({.slab_bytes = kSlab, .slabs_max = 1, .headers = headers});
  tier.add_slab(0, kGeneration, {.address = memory.data(), .bytes = memory.size()});
  const auto one = tier.allocate(64_KiB);
  const auto two = tier.allocate(64_KiB);
  ASSERT_TRUE(one && two);
  EXPECT_EQ(tier.allocate(64_KiB), std::nullopt);
  tier.release(*one);
  EXPECT_TRUE(tier.allocate(64_KiB));
}

}  // namespace
}  // namespace cairn::storage
