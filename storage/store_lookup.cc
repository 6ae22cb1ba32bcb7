#include "base/check.h"
#include "storage/store_impl.h"

#include <algorithm>

namespace cairn::storage {
namespace {

// Keys whose memory is fetched together: few enough that their buckets and records stay in the L1
// cache, many enough to keep a core's outstanding loads busy.
constexpr std::size_t kLookupGroup = 32;

void prefetch(const void* address) noexcept {
  __builtin_prefetch(address);
}

// One key of a group between the stages.
struct Probe {
  BlockQuery query;
  enum class Next : std::uint8_t { kMiss, kCompare, kSearch } next = Next::kSearch;
  RecordNumber candidate = 0;
};

// A block that left since it was found is a miss.
LookupHit hit_of(const Record& record, std::uint32_t generation) noexcept {
  const LookupHit hit = {TierKind::kDram, record.length()};
  return record.pin_word().is_still(generation) ? hit : LookupHit{};
}

// The home bucket answers most keys; what it can't answer is left to a full search.
void read_home(const BlockIndex::Row& row, Probe& probe) noexcept {
  const std::uint32_t tag = probe.query.tag();
  auto view = row.bucket(row.home(tag)).read(tag);
  if (!view) return;
  if (view->matches != 0) {
    probe.candidate = view->take_record();
    probe.next = Probe::Next::kCompare;
  } else if (!view->has_overflow) {
    probe.next = Probe::Next::kMiss;
  }
}

}  // namespace

std::optional<BlockRef> Store::Impl::find(const BlockQuery& query) const noexcept {
  BlockRef found;
  FindOutcome outcome = FindOutcome::kAbsent;
  {
    const BlockIndex::Reading reading(*index_);
    outcome = reading.row().find(query.tag(), [&](RecordNumber number) {
      const auto generation = match_record(records_[number], query);
      if (generation) found = {number, *generation};
      return generation.has_value();
    });
  }
  if (outcome == FindOutcome::kFound) return found;
  if (outcome == FindOutcome::kAbsent) return std::nullopt;
  const MutexLock lock(mutex_);
  return find_locked(query);
}

std::optional<BlockRef> Store::Impl::find_locked(const BlockQuery& query) const noexcept {
  BlockRef found;
  const FindOutcome outcome = index_->row_locked().find_locked(query.tag(), [&](RecordNumber n) {
    const auto generation = match_record(records_[n], query);
    if (generation) found = {n, *generation};
    return generation.has_value();
  });
  if (outcome != FindOutcome::kFound) return std::nullopt;
  return found;
}

void Store::Impl::lookup_group(const Scope& scope,
                               std::span<const BlockDigest> digests,
                               std::span<LookupHit> out) const noexcept {
  CAIRN_DCHECK(digests.size() <= kLookupGroup);
  std::array<Probe, kLookupGroup> probes;
  {
    const BlockIndex::Reading reading(*index_);
    const BlockIndex::Row& row = reading.row();
    for (std::size_t i = 0; i < digests.size(); ++i) {
      probes[i].query = query_of(scope, digests[i]);
      prefetch(&row.bucket(row.home(probes[i].query.tag())));
    }
    for (std::size_t i = 0; i < digests.size(); ++i) {
      read_home(row, probes[i]);
      if (probes[i].next == Probe::Next::kCompare) prefetch(&records_[probes[i].candidate]);
    }
  }
  for (std::size_t i = 0; i < digests.size(); ++i) {
    const Probe& probe = probes[i];
    out[i] = {};
    if (probe.next == Probe::Next::kMiss) continue;
    if (probe.next == Probe::Next::kCompare) {
      const auto generation = match_record(records_[probe.candidate], probe.query);
      if (generation) {
        out[i] = hit_of(records_[probe.candidate], *generation);
        continue;
      }
    }
    const auto found = find(probe.query);
    if (found) out[i] = hit_of(records_[found->record], found->generation);
  }
}

void Store::Impl::lookup(const Scope& scope,
                         std::span<const BlockDigest> digests,
                         std::span<LookupHit> out) const noexcept {
  if (!epochs_.is_current(scope)) {
    std::fill(out.begin(), out.end(), LookupHit{});
    return;
  }
  for (std::size_t at = 0; at < digests.size(); at += kLookupGroup) {
    const std::size_t count = std::min(kLookupGroup, digests.size() - at);
    lookup_group(scope, digests.subspan(at, count), out.subspan(at, count));
  }
}

std::size_t Store::Impl::lookup_run(const Scope& scope,
                                    std::span<const BlockDigest> digests,
                                    std::span<LookupHit> out) const noexcept {
  if (!epochs_.is_current(scope)) return 0;
  for (std::size_t at = 0; at < digests.size(); at += kLookupGroup) {
    const std::size_t count = std::min(kLookupGroup, digests.size() - at);
    const auto group = out.subspan(at, count);
    lookup_group(scope, digests.subspan(at, count), group);
    const auto miss = std::find_if(group.begin(), group.end(), [](const LookupHit& hit) {
      return hit.tier == TierKind::kNone;
    });
    if (miss != group.end()) return at + static_cast<std::size_t>(miss - group.begin());
  }
  return digests.size();
}

}  // namespace cairn::storage
