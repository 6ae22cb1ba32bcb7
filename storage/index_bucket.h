// One cache line of the index: seven slots that readers scan without a lock (a seqlock), and rows
// of such buckets with linear probing. Templates over the atomics policy; base/atomics.h says why.
#pragma once

#include "base/check.h"

#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace cairn::storage {

inline constexpr std::size_t kBucketSlots = 7;
// Attempts of a reader at one bucket before it asks for the lock instead.
inline constexpr int kSeqlockTriesMax = 8;
// Buckets that one key may be looked for in. A key that finds no room in so many makes the index
// grow, or is refused (see BlockIndex::insert).
inline constexpr std::uint32_t kProbeBucketsMax = 32;

// 64 bytes, all zero when empty. A slot is tag << 32 | record + 1; 0 is free. Writers hold the
// store's mutex. The version is odd while a writer changes the bucket. Fewer slots and attempts are
// for tests that run every interleaving.
template <typename Atomics, std::size_t kSlots = kBucketSlots, int kTries = kSeqlockTriesMax>
class alignas(64) BasicBucket {
 public:
  // What a bucket says about a tag: bit i of `matches` stands for slot i.
  struct View {
    std::array<std::uint64_t, kSlots> words{};
    std::uint32_t matches = 0;
    bool has_overflow = false;  // keys of this bucket, or passing it, lie further on

    // Record numbers of the matches, in turn: takes one out. matches != 0.
    std::uint32_t take_record() noexcept {
      const auto slot = static_cast<std::size_t>(std::countr_zero(matches));
      matches &= matches - 1;
      return record_of(words[slot]);
    }
  };

  // nullopt: a writer was inside at each of kTries attempts.
  std::optional<View> read(std::uint32_t tag) const noexcept {
    for (int tries = 0; tries < kTries; ++tries) {
      // Acquire: keeps the slot loads behind it, and shows the slots of the version seen.
      const std::uint32_t before = version_.load(std::memory_order_acquire);
      if (before % 2 != 0) continue;
      const View view = scan(tag);
      // Relaxed: the acquire loads of the slots keep it behind them; a slot stored by a later
      // writer (release) brings that writer's odd version along.
      if (version_.load(std::memory_order_relaxed) == before) return view;
    }
    return std::nullopt;
  }
  // For the holder of the mutex, who is the only writer.
  View read_locked(std::uint32_t tag) const noexcept { return scan(tag); }

  // For the holder of the mutex.
  bool is_full() const noexcept {
    for (const auto& slot : slots_)
      if (slot.load(std::memory_order_relaxed) == 0) return false;
    return true;
  }
  // False when no slot is free.
  bool insert(std::uint32_t tag, std::uint32_t record) noexcept {
    for (auto& slot : slots_) {
      if (slot.load(std::memory_order_relaxed) != 0) continue;
      change([&] { slot.store(pack(tag, record), std::memory_order_release); });
      return true;
    }
    return false;
  }
  // False when it is not here.
  bool erase(std::uint32_t tag, std::uint32_t record) noexcept {
    for (auto& slot : slots_) {
      if (slot.load(std::memory_order_relaxed) != pack(tag, record)) continue;
      change([&] { slot.store(0, std::memory_order_release); });
      return true;
    }
    return false;
  }
  void add_overflow() noexcept {
    const std::uint32_t count = overflow_.load(std::memory_order_relaxed);
    change([&] { overflow_.store(count + 1, std::memory_order_release); });
  }
  void drop_overflow() noexcept {
    const std::uint32_t count = overflow_.load(std::memory_order_relaxed);
    CAIRN_CHECK(count > 0);
    change([&] { overflow_.store(count - 1, std::memory_order_release); });
  }

  // For the holder of the mutex: calls visit(tag, record) for each taken slot.
  template <typename Visit>
  void for_each(Visit&& visit) const {
    for (const auto& slot : slots_) {
      const std::uint64_t word = slot.load(std::memory_order_relaxed);
      if (word != 0) visit(static_cast<std::uint32_t>(word >> 32U), record_of(word));
    }
  }

 private:
  static constexpr std::uint64_t pack(std::uint32_t tag, std::uint32_t record) noexcept {
    return std::uint64_t{tag} << 32U | (std::uint64_t{record} + 1);
  }
  static constexpr std::uint32_t record_of(std::uint64_t word) noexcept {
    return static_cast<std::uint32_t>(word) - 1;
  }

  View scan(std::uint32_t tag) const noexcept {
    View view;
    for (std::size_t i = 0; i < kSlots; ++i)
      view.words[i] = slots_[i].load(std::memory_order_acquire);
    for (std::size_t i = 0; i < kSlots; ++i) {
      const bool is_match = view.words[i] >> 32U == tag && view.words[i] != 0;
      view.matches |= static_cast<std::uint32_t>(is_match) << i;
    }
    view.has_overflow = overflow_.load(std::memory_order_acquire) != 0;
    return view;
  }

  template <typename Store>
  void change(Store&& store) noexcept {
    const std::uint32_t version = version_.load(std::memory_order_relaxed);
    CAIRN_DCHECK(version % 2 == 0);
    // Relaxed: the release store inside keeps it before the change.
    version_.store(version + 1, std::memory_order_relaxed);
    store();
    // Release: whoever sees the even version sees the change.
    version_.store(version + 2, std::memory_order_release);
  }

  typename Atomics::template Atomic<std::uint32_t> version_{0};
  typename Atomics::template Atomic<std::uint32_t> overflow_{0};
  std::array<typename Atomics::template Atomic<std::uint64_t>, kSlots> slots_{};
};

// How a search without the lock ended.
enum class FindOutcome : std::uint8_t {
  kFound,
  kAbsent,
  kContended,  // a bucket kept changing: search again under the lock
};

// Any number of buckets in a row, at least one. A tag's home is its high bits multiplied out, so a
// larger row keeps the order of a smaller one and growing is one pass over both.
template <typename Atomics, std::size_t kSlots = kBucketSlots, int kTries = kSeqlockTriesMax>
class BasicBucketRow {
 public:
  using Bucket = BasicBucket<Atomics, kSlots, kTries>;
  BasicBucketRow() = default;
  explicit BasicBucketRow(std::span<Bucket> buckets) noexcept
      : buckets_(buckets) {}

  std::size_t size() const noexcept { return buckets_.size(); }
  std::size_t home(std::uint32_t tag) const noexcept {
    return static_cast<std::size_t>(std::uint64_t{tag} * buckets_.size() >> 32U);
  }
  const Bucket& bucket(std::size_t number) const noexcept { return buckets_[number]; }

  // Calls is_match(record) for each candidate until it answers true. Any thread.
  template <typename IsMatch>
  FindOutcome find(std::uint32_t tag, IsMatch&& is_match) const noexcept {
    std::size_t at = home(tag);
    for (std::uint32_t step = 0; step < probes(); ++step) {
      std::optional<typename Bucket::View> view = buckets_[at].read(tag);
      if (!view) return FindOutcome::kContended;
      while (view->matches != 0)
        if (is_match(view->take_record())) return FindOutcome::kFound;
      if (!view->has_overflow) return FindOutcome::kAbsent;
      at = next(at);
    }
    return FindOutcome::kAbsent;
  }
  // As find(), for the holder of the mutex; never kContended.
  template <typename IsMatch>
  FindOutcome find_locked(std::uint32_t tag, IsMatch&& is_match) const noexcept {
    std::size_t at = home(tag);
    for (std::uint32_t step = 0; step < probes(); ++step) {
      typename Bucket::View view = buckets_[at].read_locked(tag);
      while (view.matches != 0)
        if (is_match(view.take_record())) return FindOutcome::kFound;
      if (!view.has_overflow) return FindOutcome::kAbsent;
      at = next(at);
    }
    return FindOutcome::kAbsent;
  }

  // False when the tag's kProbeBucketsMax buckets are full; then nothing is changed. The overflow
  // counts rise first, so a reader never stops short of an entry that is already there.
  bool insert(std::uint32_t tag, std::uint32_t record) noexcept {
    const std::size_t first = home(tag);
    std::size_t at = first;
    std::uint32_t step = 0;
    while (step < probes() && buckets_[at].is_full()) {
      at = next(at);
      ++step;
    }
    if (step == probes()) return false;
    for (std::size_t passed = first; passed != at; passed = next(passed))
      buckets_[passed].add_overflow();
    CAIRN_CHECK(buckets_[at].insert(tag, record));
    return true;
  }
  // The entry is here.
  void erase(std::uint32_t tag, std::uint32_t record) noexcept {
    const std::size_t first = home(tag);
    std::size_t at = first;
    std::uint32_t step = 0;
    while (!buckets_[at].erase(tag, record)) {
      at = next(at);
      CAIRN_CHECK(++step < probes());
    }
    for (std::size_t passed = first; passed != at; passed = next(passed))
      buckets_[passed].drop_overflow();
  }

 private:
  std::size_t next(std::size_t at) const noexcept { return at + 1 == buckets_.size() ? 0 : at + 1; }
  std::uint32_t probes() const noexcept {
    return buckets_.size() < kProbeBucketsMax ? static_cast<std::uint32_t>(buckets_.size())
                                              : kProbeBucketsMax;
  }

  std::span<Bucket> buckets_;
};

}  // namespace cairn::storage
