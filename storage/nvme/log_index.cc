#include "storage/nvme/log_index.h"

#include "base/check.h"
#include "base/random.h"

#include <algorithm>
#include <utility>

namespace cairn::storage {
namespace {

// Key word, from the low end: tag 40, pages - 2: 12, hits 3, zero 1, namespace 8.
constexpr unsigned kPagesShift = 40;
constexpr unsigned kHitsShift = 52;
constexpr unsigned kNamespaceShift = 56;
constexpr std::uint64_t kTagMask = (std::uint64_t{1} << kPagesShift) - 1;
constexpr std::uint64_t kPagesMask = 0xFFF;
constexpr std::uint64_t kHitsMask = 0x7;
constexpr std::uint64_t kHitsField = kHitsMask << kHitsShift;
// Place word: page 16, segment 20, device 4, generation 12, check 12.
constexpr unsigned kSegmentShift = 16;
constexpr unsigned kDeviceShift = 36;
constexpr unsigned kGenerationShift = 40;
constexpr unsigned kCheckShift = 52;
constexpr std::uint64_t kPlaceMask = (std::uint64_t{1} << kCheckShift) - 1;
static_assert(kFramePagesMax - kFramePagesMin == kPagesMask);

constexpr int kTornReadsMax = 16;
constexpr double kFullAt = 0.85;

std::uint64_t mixed(std::uint64_t value) noexcept {
  return splitmix64(value);  // a copy: it advances its state
}

std::uint64_t key_word(const LogKey& key, const LogPlace& place) noexcept {
  return (key.hash & kTagMask) | std::uint64_t{place.pages - kFramePagesMin} << kPagesShift |
         std::uint64_t{key.name_space} << kNamespaceShift;
}

// Of both words without hits and check itself.
std::uint64_t check_of(std::uint64_t key, std::uint64_t place) noexcept {
  return mixed((key & ~kHitsField) ^ mixed(place & kPlaceMask)) >> kCheckShift;
}

std::uint64_t place_word(const LogPlace& place, std::uint64_t key) noexcept {
  const std::uint64_t fields = std::uint64_t{place.page} |
                               std::uint64_t{place.segment} << kSegmentShift |
                               std::uint64_t{place.device} << kDeviceShift |
                               std::uint64_t{place.generation} << kGenerationShift;
  return fields | check_of(key, fields) << kCheckShift;
}

LogCandidate candidate_of(std::uint64_t key, std::uint64_t place) noexcept {
  return {.place = {.device = static_cast<std::uint8_t>(place >> kDeviceShift & 0xF),
                    .segment = static_cast<std::uint32_t>(place >> kSegmentShift & 0xFFFFF),
                    .page = static_cast<std::uint16_t>(place),
                    .pages = static_cast<std::uint16_t>((key >> kPagesShift & kPagesMask) +
                                                        kFramePagesMin),
                    .generation = static_cast<std::uint16_t>(place >> kGenerationShift & 0xFFF)},
          .hits = static_cast<std::uint8_t>(key >> kHitsShift & kHitsMask)};
}

// Same tag and namespace, whatever the length and the hits.
bool is_of(std::uint64_t word, const LogKey& key) noexcept {
  return (word & kTagMask) == (key.hash & kTagMask) && word >> kNamespaceShift == key.name_space;
}

void check_place(const LogPlace& place) noexcept {
  CAIRN_CHECK(place.device < kLogDevicesMax && place.segment < kLogSegmentsMax);
  CAIRN_CHECK(place.page > 0 && place.generation < kPlaceGenerations);
  CAIRN_CHECK(place.pages >= kFramePagesMin && place.pages <= kFramePagesMax);
}

std::size_t scaled(std::uint64_t hash, std::size_t count) noexcept {
  __extension__ using Wide = unsigned __int128;
  return static_cast<std::size_t>(Wide{hash} * count >> 64U);
}

// Both words of a slot as they belong together; nothing for a free one.
template <typename Slot>
std::optional<std::pair<std::uint64_t, std::uint64_t>> read(const Slot& slot) noexcept {
  for (int i = 0; i < kTornReadsMax; ++i) {
    const std::uint64_t place = slot.place.load(std::memory_order_acquire);
    if (place == 0) return std::nullopt;
    const std::uint64_t key = slot.key.load(std::memory_order_acquire);
    if (check_of(key, place) == place >> kCheckShift) return std::pair{key, place};
  }
  return std::nullopt;
}

// Readers see the old entry, none, or the new one.
template <typename Slot>
void write(Slot& slot, std::uint64_t key, std::uint64_t place) noexcept {
  slot.place.store(0, std::memory_order_release);
  slot.key.store(key, std::memory_order_release);
  slot.place.store(place, std::memory_order_release);
}

}  // namespace

Result<std::unique_ptr<LogIndex>> LogIndex::create(std::size_t entries) noexcept {
  CAIRN_CHECK(entries > 0);
  const auto slots = static_cast<std::size_t>(static_cast<double>(entries) / kFullAt) + 1;
  const std::size_t buckets = divide_up(slots, kBucketSlots);
  CAIRN_TRY(LazyMemory memory,
            LazyMemory::map(ByteCount(buckets * sizeof(Bucket)), LazyPages::kHuge));
  return std::unique_ptr<LogIndex>(new LogIndex(std::move(memory)));
}

LogIndex::LogIndex(LazyMemory memory) noexcept
    : memory_(std::move(memory)),
      buckets_(memory_.as<Bucket>()) {}

LogIndex::Pair LogIndex::buckets_of(std::uint64_t hash) const noexcept {
  return {scaled(hash, buckets_.size()), scaled(mixed(hash), buckets_.size())};
}

void LogIndex::prefetch(const LogKey& key) const noexcept {
  for (const std::size_t bucket : buckets_of(key.hash)) {
    __builtin_prefetch(&buckets_[bucket].slots[0]);
    __builtin_prefetch(&buckets_[bucket].slots[kBucketSlots / 2]);
  }
}

std::size_t LogIndex::find(const LogKey& key, LogCandidates& out) const noexcept {
  const Pair pair = buckets_of(key.hash);
  std::size_t count = 0;
  for (std::size_t side = 0; side < pair.size(); ++side) {
    if (side > 0 && pair[1] == pair[0]) break;
    for (const Slot& slot : buckets_[pair[side]].slots) {
      if (!is_of(slot.key.load(std::memory_order_relaxed), key)) continue;
      const auto words = read(slot);
      if (!words || !is_of(words->first, key)) continue;
      if (count == out.size()) return count;
      out[count++] = candidate_of(words->first, words->second);
    }
  }
  return count;
}

LogIndex::Slot* LogIndex::find_slot(const LogKey& key, const LogPlace& place) const noexcept {
  const std::uint64_t wanted = key_word(key, place);
  const std::uint64_t at = place_word(place, wanted);
  for (const std::size_t bucket : buckets_of(key.hash)) {
    for (Slot& slot : buckets_[bucket].slots) {
      const auto words = read(slot);
      const bool is_it = words && (words->first & ~kHitsField) == wanted && words->second == at;
      if (is_it) return &slot;
    }
  }
  return nullptr;
}

void LogIndex::touch(const LogKey& key, const LogPlace& place) noexcept {
  Slot* const slot = find_slot(key, place);
  if (slot == nullptr) return;
  std::uint64_t word = slot->key.load(std::memory_order_relaxed);
  const std::uint64_t wanted = key_word(key, place);
  // Another entry may have come meanwhile; then it is not touched.
  while ((word & ~kHitsField) == wanted && (word & kHitsField) != kHitsField) {
    const std::uint64_t more = word + (std::uint64_t{1} << kHitsShift);
    if (slot->key.compare_exchange_weak(word, more, std::memory_order_relaxed)) return;
  }
}

LogIndex::Slot& LogIndex::slot_for_insert(std::uint64_t hash) noexcept {
  const auto is_free = [](const Slot& slot) {
    return slot.place.load(std::memory_order_relaxed) == 0;
  };
  const auto hits = [](const Slot& slot) {
    return slot.key.load(std::memory_order_relaxed) & kHitsField;
  };
  const Pair pair = buckets_of(hash);
  auto& first = buckets_[pair[0]].slots;
  auto& second = buckets_[pair[1]].slots;
  const auto free_first = std::ranges::count_if(first, is_free);
  const auto free_second = std::ranges::count_if(second, is_free);
  if (free_first + free_second > 0) {
    return *std::ranges::find_if(free_second > free_first ? second : first, is_free);
  }
  Slot& one = *std::ranges::min_element(first, {}, hits);
  Slot& other = *std::ranges::min_element(second, {}, hits);
  return hits(other) < hits(one) ? other : one;
}

std::optional<LogPlace> LogIndex::insert(const LogKey& key, const LogPlace& place) noexcept {
  check_place(place);
  const MutexLock lock(mutex_);
  Slot& slot = slot_for_insert(key.hash);
  const auto before = read(slot);
  const std::uint64_t word = key_word(key, place);
  write(slot, word, place_word(place, word));
  if (before) {
    displaced_.fetch_add(1, std::memory_order_relaxed);
    return candidate_of(before->first, before->second).place;
  }
  entries_.fetch_add(1, std::memory_order_relaxed);
  return std::nullopt;
}

bool LogIndex::replace(const LogKey& key,
                       const LogPlace& expected,
                       const LogPlace& place) noexcept {
  check_place(place);
  const MutexLock lock(mutex_);
  Slot* const slot = find_slot(key, expected);
  if (slot == nullptr) return false;
  const std::uint64_t word = key_word(key, place);
  write(*slot, word, place_word(place, word));
  return true;
}

bool LogIndex::erase(const LogKey& key, const LogPlace& expected) noexcept {
  const MutexLock lock(mutex_);
  Slot* const slot = find_slot(key, expected);
  if (slot == nullptr) return false;
  slot->place.store(0, std::memory_order_release);
  entries_.fetch_sub(1, std::memory_order_relaxed);
  return true;
}

}  // namespace cairn::storage
