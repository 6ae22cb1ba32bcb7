#include "storage/frame_tier.h"
#include "tests/storage/store_fixture.h"

#include <gtest/gtest.h>

#include <array>
#include <memory>

namespace cairn::storage {
namespace {

constexpr std::uint32_t kBlocks = 32'768;
constexpr std::uint32_t kBlockBytes = 64 * 1024;
constexpr std::uint64_t kBytesPerBlockMax = 160;

// The DRAM tier's own books over slabs that are never touched but for one header page, which every
// frame shares.
class UntouchedTier final : public FrameTier {
 public:
  UntouchedTier(LazyMemory& memory, std::uint32_t slabs)
      : FrameTier({.granule = 4_KiB, .header_granules = 1},
                  {.slab_bytes = 1_GiB, .slabs_max = slabs}) {
    const auto slab = static_cast<std::size_t>((1_GiB).value());
    for (std::uint32_t n = 0; n < slabs; ++n)
      add_memory(n, 1, {.address = memory.bytes().data() + n * slab, .bytes = slab});
  }
  TierKind kind() const noexcept override { return TierKind::kDram; }
  std::span<std::byte> header_page(const ExtentList&) const noexcept override { return page_; }

 private:
  mutable std::array<std::byte, 4096> page_{};
};

// Puts blocks `first` to `last` in requests of 64.
void put_range(Store& store, const Scope& scope, std::uint32_t first, std::uint32_t last) {
  for (std::uint32_t at = first; at <= last; at += 64) {
    std::vector<ReserveItem> items;
    for (std::uint32_t n = at; n <= last && n < at + 64; ++n)
      items.push_back({StoreFixture::digest(n), kBlockBytes});
    std::vector<ReserveOutcome> reserved(items.size());
    store.reserve({.scope = scope, .items = items, .is_chain = false}, reserved);
    const std::array<std::uint32_t, 1> checksums = {1};
    std::vector<CommitItem> commits;
    for (const ReserveOutcome& outcome : reserved) {
      ASSERT_EQ(outcome.status, BlockStatus::kOk);
      commits.push_back({.ref = outcome.ref, .checksums = checksums});
    }
    std::vector<BlockStatus> out(commits.size());
    store.commit(scope, commits, out);
    for (const BlockStatus status : out)
      ASSERT_EQ(status, BlockStatus::kOk);
  }
}

// Measured after every thousand blocks from half full on, so that the index is seen just after it
// has grown as well.
TEST(StoreMemory, AResidentBlockCostsAtMost160BytesBesideItsHeaderPage) {
  auto memory = LazyMemory::map(3_GiB);
  ASSERT_TRUE(memory.has_value());
  UntouchedTier tier(*memory, 3);
  testing::ManualClock clock;
  const StoreOptions options{.pool_bytes = 3_GiB};
  auto records = LazyMemory::map(Store::records_bytes(options));
  ASSERT_TRUE(records.has_value());
  auto opened = Store::open(options,
                            tier,
                            {.bytes = (*records).bytes()},
                            make_eviction_policy("lru", Store::records_max(options)),
                            clock);
  ASSERT_TRUE(opened.has_value());
  Store& store = **opened;
  const Scope scope{.slot = NamespaceSlot(0), .epoch = 1, .digest = {}};
  store.set_epoch(scope.slot, 1);
  put_range(store, scope, 1, kBlocks / 2);
  double worst = 0;
  for (std::uint32_t n = kBlocks / 2 + 1; n <= kBlocks; n += 1024) {
    put_range(store, scope, n, n + 1023);
    const StoreStats stats = store.stats();
    const double bytes = static_cast<double>(stats.records_memory.value()) /
                         static_cast<double>(stats.resident_blocks);
    worst = std::max(worst, bytes);
    EXPECT_LE(bytes, kBytesPerBlockMax)
        << stats.resident_blocks << " blocks, of which the tier " << tier.memory().value();
  }
  RecordProperty("bytes_per_block", std::to_string(worst));
  EXPECT_EQ(store.stats().resident_blocks, kBlocks);
}

}  // namespace
}  // namespace cairn::storage
