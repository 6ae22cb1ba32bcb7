#include "storage/block_index.h"

#include "base/check.h"

#include <utility>

namespace cairn::storage {
namespace {

constexpr std::size_t kBucketsMin = 64;
// Smaller tables would be mostly the rounding to huge pages.
constexpr ByteCount kHugeFrom = 8_MiB;
// Below this share of taken slots a full neighbourhood is a crowd of equal tags, which growing does
// not thin out.
constexpr std::size_t kCrowdedSlotsDivisor = 4;

constexpr std::size_t grown(std::size_t buckets) noexcept {
  return buckets + buckets / 2;
}
constexpr bool is_loaded(std::size_t entries, std::size_t slots) noexcept {
  return entries * 5 >= slots * 4;
}

}  // namespace

Result<std::unique_ptr<BlockIndex::Table>> BlockIndex::make_table(std::size_t buckets) noexcept {
  const ByteCount bytes(buckets * sizeof(Bucket));
  const LazyPages pages = bytes < kHugeFrom ? LazyPages::kSmall : LazyPages::kHuge;
  CAIRN_TRY(LazyMemory memory, LazyMemory::map(bytes, pages));
  auto table = std::make_unique<Table>();
  table->memory = std::move(memory);
  table->row = Row(table->memory.as<Bucket>().first(buckets));
  return table;
}

Result<std::unique_ptr<BlockIndex>> BlockIndex::create() noexcept {
  CAIRN_TRY(std::unique_ptr<Table> table, make_table(kBucketsMin));
  return std::unique_ptr<BlockIndex>(new BlockIndex(std::move(table)));
}

BlockIndex::BlockIndex(std::unique_ptr<Table> table) noexcept
    : table_(table.get()),
      owner_(std::move(table)) {}

BlockIndex::~BlockIndex() = default;

bool BlockIndex::insert(std::uint32_t tag, std::uint32_t record) noexcept {
  reclaim();
  // Without memory to grow, the slots that are left still serve.
  if (is_loaded(entries_ + 1, slots())) static_cast<void>(grow());
  bool is_in = owner_->row.insert(tag, record);
  while (!is_in && entries_ * kCrowdedSlotsDivisor >= slots() && grow()) {
    is_in = owner_->row.insert(tag, record);
  }
  if (is_in) ++entries_;
  return is_in;
}

void BlockIndex::erase(std::uint32_t tag, std::uint32_t record) noexcept {
  owner_->row.erase(tag, record);
  --entries_;
}

bool BlockIndex::grow() noexcept {
  auto made = make_table(grown(owner_->row.size()));
  if (!made) return false;
  std::unique_ptr<Table> larger = std::move(*made);
  bool is_whole = true;
  for (std::size_t i = 0; i < owner_->row.size(); ++i) {
    owner_->row.bucket(i).for_each([&](std::uint32_t tag, std::uint32_t record) {
      is_whole = is_whole && larger->row.insert(tag, record);
    });
  }
  if (!is_whole) return false;
  // Sequentially consistent: BasicReaderGate::enter says why.
  table_.store(larger.get(), std::memory_order_seq_cst);
  replaced_.push_back(std::exchange(owner_, std::move(larger)));
  gate_.begin_drain();
  reclaim();
  return true;
}

void BlockIndex::reclaim() noexcept {
  if (replaced_.empty() || !gate_.is_drained()) return;
  replaced_.clear();
}

ByteCount BlockIndex::memory() const noexcept {
  std::size_t buckets = owner_->row.size();
  for (const auto& table : replaced_)
    buckets += table->row.size();
  return ByteCount(buckets * sizeof(Bucket));
}

}  // namespace cairn::storage
