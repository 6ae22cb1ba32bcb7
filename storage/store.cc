#include "storage/store.h"

#include "base/check.h"
#include "storage/store_impl.h"

#include <algorithm>
#include <utility>

namespace cairn::storage {
namespace {

constexpr ByteCount kPoolBytesPerRecord = 8_KiB;
constexpr double kRetainedShareMax = 0.9;

}  // namespace

std::uint32_t Store::records_max(const StoreOptions& options) noexcept {
  if (options.records_max != 0) return options.records_max;
  const std::uint64_t records = options.pool_bytes / kPoolBytesPerRecord;
  return static_cast<std::uint32_t>(std::clamp<std::uint64_t>(records, 1, kRecordsMax));
}

ByteCount Store::records_bytes(const StoreOptions& options) noexcept {
  return RecordTable::bytes_for(records_max(options));
}

Result<std::unique_ptr<Store>> Store::open(const StoreOptions& options,
                                           Tier& dram,
                                           const RecordsMemory& records,
                                           std::unique_ptr<EvictionPolicy> policy,
                                           const Clock& clock) noexcept {
  if (!(options.retained_share >= 0 && options.retained_share <= kRetainedShareMax))
    return Error{ErrorCode::kInvalid, 0, "retained_share"};
  if (policy == nullptr) return Error{ErrorCode::kInvalid, 0, "policy"};
  CAIRN_TRY(RecordTable table, RecordTable::create(records, records_max(options)));
  CAIRN_TRY(std::unique_ptr<BlockIndex> index, BlockIndex::create());
  CAIRN_TRY(NamespaceEpochs epochs, NamespaceEpochs::create());
  auto impl = std::make_unique<Impl>(
      Impl::Parts{
          options, std::move(table), std::move(index), std::move(epochs), std::move(policy)},
      dram,
      clock);
  return std::unique_ptr<Store>(new Store(std::move(impl)));
}

Store::Store(std::unique_ptr<Impl> impl) noexcept
    : impl_(std::move(impl)) {}

Store::~Store() = default;

Store::Impl::Impl(Parts parts, Tier& dram, const Clock& clock) noexcept
    : options_(parts.options),
      dram_(dram),
      clock_(clock),
      records_(std::move(parts.records)),
      index_(std::move(parts.index)),
      epochs_(std::move(parts.epochs)),
      granule_(dram.granule()),
      policy_(std::move(parts.policy)),
      retention_(ByteCount(static_cast<std::uint64_t>(
          static_cast<double>(parts.options.pool_bytes.value()) * parts.options.retained_share))) {}

void Store::set_epoch(NamespaceSlot slot, std::uint64_t epoch) noexcept {
  impl_->set_epoch(slot, epoch);
}

std::uint64_t Store::epoch(NamespaceSlot slot) const noexcept {
  return impl_->epoch(slot);
}

bool Store::sweep(std::uint32_t steps) noexcept {
  return impl_->sweep(steps);
}

void Store::lookup(const Scope& scope,
                   std::span<const BlockDigest> digests,
                   std::span<LookupHit> out) const noexcept {
  CAIRN_CHECK(out.size() >= digests.size());
  impl_->lookup(scope, digests, out.first(digests.size()));
}

std::size_t Store::lookup_run(const Scope& scope,
                              std::span<const BlockDigest> digests,
                              std::span<LookupHit> out) const noexcept {
  CAIRN_CHECK(out.size() >= digests.size());
  return impl_->lookup_run(scope, digests, out.first(digests.size()));
}

std::optional<BlockInfo> Store::stat(const Scope& scope, const BlockDigest& digest) const noexcept {
  return impl_->stat(scope, digest);
}

Store::Listing Store::list(const Scope& scope, std::uint64_t cursor, std::size_t limit) const {
  return impl_->list(scope, cursor, limit);
}

std::optional<PinnedBlock> Store::pin(const Scope& scope, const BlockDigest& digest) noexcept {
  return impl_->pin(scope, digest);
}

void Store::unpin(BlockRef ref) noexcept {
  impl_->unpin(ref);
}

Status Store::checksums(const PinnedBlock& block, std::span<std::uint32_t> out) noexcept {
  return impl_->checksums(block, out);
}

Result<std::size_t> Store::attributes(const PinnedBlock& block, std::span<std::byte> out) noexcept {
  return impl_->attributes(block, out);
}

void Store::touch_root_first(std::span<const BlockRef> refs) noexcept {
  std::vector<TouchTip> tips;
  tips.reserve(refs.size());
  for (const BlockRef& ref : refs)
    tips.push_back({ref, 0});
  impl_->touch(tips);
}

bool Store::verify(const PinnedBlock& block) noexcept {
  return impl_->verify(block);
}

std::optional<BlockDigest> Store::reserve(const ReserveRequest& request,
                                          std::span<ReserveOutcome> out) noexcept {
  CAIRN_CHECK(out.size() >= request.items.size());
  return impl_->reserve(request, out.first(request.items.size()));
}

void Store::commit(const Scope& scope,
                   std::span<const CommitItem> items,
                   std::span<BlockStatus> out) noexcept {
  CAIRN_CHECK(out.size() >= items.size());
  impl_->commit(scope, items, out.first(items.size()));
}

void Store::abort(BlockRef ref) noexcept {
  impl_->abort(ref);
}

BlockStatus Store::remove(const Scope& scope, const BlockDigest& digest) noexcept {
  return impl_->remove(scope, digest);
}

ByteCount Store::evict(ByteCount bytes) noexcept {
  return impl_->evict(bytes);
}

BlockStatus Store::retain(const Scope& scope,
                          const BlockDigest& digest,
                          Milliseconds duration) noexcept {
  return impl_->retain(scope, digest, duration);
}

StoreStats Store::stats() const noexcept {
  return impl_->stats();
}

std::string_view Store::policy_name() const noexcept {
  return impl_->policy_name();
}

void Store::lock_tier() noexcept CAIRN_THREAD_ANNOTATION(no_thread_safety_analysis) {
  impl_->lock();
}

void Store::unlock_tier() noexcept CAIRN_THREAD_ANNOTATION(no_thread_safety_analysis) {
  impl_->unlock();
}

Tier& Store::tier() noexcept {
  return impl_->tier();
}

}  // namespace cairn::storage
