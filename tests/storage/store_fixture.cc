#include "tests/storage/store_fixture.h"

#include "base/check.h"
#include "base/random.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace cairn::storage {

std::vector<std::uint32_t> checksums_of(std::span<const std::byte> bytes) {
  std::vector<std::uint32_t> out;
  for (std::size_t at = 0; at < bytes.size(); at += kChunkBytes.value())
    out.push_back(crc32c(bytes.subspan(at, std::min(kChunkBytes.value(), bytes.size() - at))));
  return out;
}

StoreFixture::StoreFixture(FixtureOptions options)
    : tier_({.granules = options.frames * 2,
             .has_memory = options.has_memory,
             .splits_frames = options.splits_frames}) {
  StoreOptions store_options;
  store_options.records_max = options.records_max != 0 ? options.records_max : options.frames + 4;
  store_options.pool_bytes = tier_.usage().capacity;
  store_options.retained_share = options.retained_share;
  auto memory = LazyMemory::map(Store::records_bytes(store_options));
  CAIRN_CHECK(memory.has_value());
  records_ = std::move(*memory);
  auto opened = Store::open(store_options,
                            tier_,
                            {.bytes = records_.bytes(), .owner = options.records_owner},
                            make_eviction_policy("lru", store_options.records_max),
                            clock_);
  CAIRN_CHECK(opened.has_value());
  store_ = std::move(*opened);
  scope_ = {.slot = NamespaceSlot(3), .epoch = kEpoch, .digest = {}};
  store_->set_epoch(scope_.slot, kEpoch);
}

BlockDigest StoreFixture::digest(std::uint64_t number) {
  std::array<std::byte, kBlockDigestBytesMax> bytes{};
  std::uint64_t state = number;
  for (std::size_t i = 0; i < bytes.size(); i += sizeof(state)) {
    const std::uint64_t word = i == 0 ? number : splitmix64(state);
    std::memcpy(bytes.data() + i, &word, sizeof(word));
  }
  return *BlockDigest::from(bytes);
}

std::vector<BlockDigest> StoreFixture::digests(std::span<const std::uint64_t> numbers) {
  std::vector<BlockDigest> out;
  for (const std::uint64_t number : numbers)
    out.push_back(digest(number));
  return out;
}

std::vector<std::byte> StoreFixture::body(std::uint64_t number, std::uint32_t length) {
  std::vector<std::byte> bytes(length);
  SeededRandom random(number);
  for (std::size_t at = 0; at < bytes.size(); at += sizeof(std::uint64_t)) {
    const std::uint64_t word = random.next_u64();
    std::memcpy(bytes.data() + at, &word, std::min(sizeof(word), bytes.size() - at));
  }
  return bytes;
}

std::vector<ReserveOutcome> StoreFixture::reserve(std::span<const std::uint64_t> chain,
                                                  std::uint64_t parent) {
  std::vector<ReserveItem> items;
  for (const std::uint64_t number : chain)
    items.push_back({digest(number), kLength});
  ReserveRequest request{.scope = scope_, .items = items};
  if (parent != 0) request.parent = digest(parent);
  std::vector<ReserveOutcome> out(chain.size());
  store_->reserve(request, out);
  return out;
}

ReserveOutcome StoreFixture::reserve_one(std::uint64_t number, std::uint32_t length) {
  const std::array<ReserveItem, 1> items = {ReserveItem{digest(number), length}};
  std::array<ReserveOutcome, 1> out;
  store_->reserve({.scope = scope_, .items = items, .is_chain = false}, out);
  return out[0];
}

BlockStatus StoreFixture::commit_one(const ReserveOutcome& reserved,
                                     std::uint64_t number,
                                     std::uint32_t length) {
  const std::vector<std::byte> bytes = body(number, length);
  write(reserved.extents, bytes);
  const std::vector<std::uint32_t> checksums = checksums_of(bytes);
  const std::array<CommitItem, 1> items = {CommitItem{.ref = reserved.ref, .checksums = checksums}};
  std::array<BlockStatus, 1> out{};
  store_->commit(scope_, items, out);
  return out[0];
}

std::vector<BlockStatus> StoreFixture::put(std::span<const std::uint64_t> chain,
                                           std::uint64_t parent) {
  const std::vector<ReserveOutcome> reserved = reserve(chain, parent);
  std::vector<BlockStatus> statuses;
  std::vector<std::vector<std::uint32_t>> checksums(chain.size());
  std::vector<CommitItem> items;
  for (std::size_t i = 0; i < chain.size(); ++i) {
    statuses.push_back(reserved[i].status);
    if (reserved[i].status != BlockStatus::kOk) continue;
    const std::vector<std::byte> bytes = body(chain[i]);
    write(reserved[i].extents, bytes);
    checksums[i] = checksums_of(bytes);
    items.push_back({.ref = reserved[i].ref, .checksums = checksums[i]});
  }
  std::vector<BlockStatus> committed(items.size());
  store_->commit(scope_, items, committed);
  std::size_t next = 0;
  for (BlockStatus& status : statuses)
    if (status == BlockStatus::kOk) status = committed[next++];
  return statuses;
}

BlockStatus StoreFixture::put_one(std::uint64_t number, std::uint32_t length) {
  const ReserveOutcome reserved = reserve_one(number, length);
  if (reserved.status != BlockStatus::kOk) return reserved.status;
  return commit_one(reserved, number, length);
}

std::size_t StoreFixture::get_then_put(std::span<const std::uint64_t> chain) {
  std::vector<BlockRef> refs;
  for (const std::uint64_t number : chain) {
    const auto pinned = pin(number);
    if (!pinned) break;
    refs.push_back(pinned->ref);
  }
  store_->touch_root_first(refs);
  for (const BlockRef& ref : refs)
    store_->unpin(ref);
  const std::size_t run = refs.size();
  if (run < chain.size()) put(chain.subspan(run), run > 0 ? chain[run - 1] : 0);
  return run;
}

bool StoreFixture::has(std::uint64_t number) const {
  const std::array<BlockDigest, 1> keys = {digest(number)};
  std::array<LookupHit, 1> hits;
  store_->lookup(scope_, keys, hits);
  return hits[0].tier != TierKind::kNone;
}

std::vector<std::uint64_t> StoreFixture::victims(std::span<const std::uint64_t> of) {
  std::vector<std::uint64_t> left(of.begin(), of.end());
  std::erase_if(left, [this](std::uint64_t number) { return !has(number); });
  std::vector<std::uint64_t> out;
  while (!left.empty() && store_->evict(ByteCount(1)).value() > 0) {
    const auto gone = std::find_if(
        left.begin(), left.end(), [this](std::uint64_t number) { return !has(number); });
    if (gone == left.end()) continue;
    out.push_back(*gone);
    left.erase(gone);
  }
  return out;
}

void StoreFixture::write(const ExtentList& extents, std::span<const std::byte> bytes) {
  const PayloadSpans spans = tier_.payload(extents, ByteCount(bytes.size()));
  for (std::size_t i = 0; i < spans.size; ++i) {
    std::memcpy(spans.items[i].address, bytes.data(), spans.items[i].bytes);
    bytes = bytes.subspan(spans.items[i].bytes);
  }
}

std::vector<std::byte> StoreFixture::read(const ExtentList& extents, std::uint32_t length) {
  std::vector<std::byte> out;
  const PayloadSpans spans = tier_.payload(extents, ByteCount(length));
  for (std::size_t i = 0; i < spans.size; ++i) {
    const auto bytes = spans.items[i].host();
    out.insert(out.end(), bytes.begin(), bytes.end());
  }
  return out;
}

}  // namespace cairn::storage
