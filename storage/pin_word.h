// The word that decides whether a record's frame may be read, and whether it may be freed. It
// lives in the records file (docs/formats.md, "Record"), so that a later daemon sees what was
// pinned or lent when this one ended.
//
//   free --reserve--> reserved --publish--> live --evict (no pins)--> free
//                        |                    |
//                        +--abort--> free     +--doom--> doomed --last unpin, free--> free
#pragma once

#include "base/check.h"

#include <atomic>
#include <cstdint>

namespace cairn::storage {

// In the records file; the numbers do not change.
enum class RecordState : std::uint8_t {
  kFree = 0,
  kReserved = 1,  // a writer fills the frame
  kLive = 2,      // may be found and pinned
  kDoomed = 3,    // removed or superseded while pinned: invisible, freed at its last unpin
};

inline constexpr std::uint32_t kPinsMax = (1U << 24U) - 1;
// Attempts of one pin. Each failed one means that another thread pinned or unpinned the very same
// record at that instant; a reader that loses them all answers a miss, which a cache always may.
inline constexpr int kPinTriesMax = 256;

struct PinView {
  std::uint32_t generation = 0;
  RecordState state = RecordState::kFree;
  std::uint32_t pins = 0;
  bool is_live(std::uint32_t in_generation) const noexcept {
    return state == RecordState::kLive && generation == in_generation;
  }
};

// What an unpin leaves behind.
enum class Unpinned : std::uint8_t {
  kStays,
  kLastOfDoomed,  // the caller, and nobody else, shall free the frame and then call free_doomed()
  kNotPinned,     // the record has moved on to another life; nothing changed
};

// 64 bits: generation 32 (high), state 8, pins 24 (low). A generation is one life of the record and
// begins at reserve(); 0 is never a life. pin(), unpin() and view() may run in any thread; the
// other calls belong to the holder of the store's mutex (reserve, publish, evict, doom, free).
template <typename Atomics>
class BasicPinWord {
 public:
  // Acquire: what follows reads record fields that the view is meant to vouch for (see
  // is_still()).
  PinView view() const noexcept { return unpack(word_.load(std::memory_order_acquire)); }

  // After fields were read by acquire loads: true when the life seen before them had not ended, so
  // that all of them belong to it. Relaxed: the acquire loads of the fields keep this load behind
  // them, and a field of a later life was stored with release after that life's reserve(), so
  // whoever read it also reads a later generation here.
  bool is_still(std::uint32_t generation) const noexcept {
    return unpack(word_.load(std::memory_order_relaxed)).is_live(generation);
  }

  // True when the record was live in `generation` and now has one pin more.
  bool pin(std::uint32_t generation) noexcept {
    std::uint64_t seen = word_.load(std::memory_order_relaxed);
    for (int tries = 0; tries < kPinTriesMax; ++tries) {
      const PinView view = unpack(seen);
      if (!view.is_live(generation) || view.pins == kPinsMax) return false;
      // Acquire on success: the reader sees the fields and the payload as publish() released them.
      // Relaxed on failure: only the word itself is looked at again.
      if (word_.compare_exchange_weak(
              seen, seen + 1, std::memory_order_acquire, std::memory_order_relaxed)) {
        return true;
      }
    }
    return false;
  }

  // Takes back one pin. Wait-free: the caller's own pin keeps generation from changing.
  Unpinned unpin(std::uint32_t generation) noexcept {
    // Relaxed: a pin of this generation that the caller holds has been seen by its own pin().
    const PinView before = unpack(word_.load(std::memory_order_relaxed));
    if (before.generation != generation || before.pins == 0) return Unpinned::kNotPinned;
    // Release: the reads of the frame end before the pin does, and evict() or the last unpin
    // acquires. Acquire: the last unpin of a doomed frame must see that every other reader is done.
    const PinView old = unpack(word_.fetch_sub(1, std::memory_order_acq_rel));
    CAIRN_CHECK(old.generation == generation && old.pins > 0);
    const bool is_last = old.state == RecordState::kDoomed && old.pins == 1;
    return is_last ? Unpinned::kLastOfDoomed : Unpinned::kStays;
  }

  // free -> reserved in a new life, whose generation is returned. Relaxed: the caller stores the
  // fields with release afterwards, which keeps this store before them (see is_still()).
  std::uint32_t reserve() noexcept {
    const PinView old = unpack(word_.load(std::memory_order_relaxed));
    CAIRN_CHECK(old.state == RecordState::kFree && old.pins == 0);
    const std::uint32_t generation = next(old.generation);
    word_.store(pack({generation, RecordState::kReserved, 0}), std::memory_order_relaxed);
    return generation;
  }

  // reserved -> live. Release: fields and payload are in place before a reader can pin.
  void publish() noexcept { move_unpinned(RecordState::kReserved, RecordState::kLive); }
  // reserved -> free.
  void abort() noexcept { move_unpinned(RecordState::kReserved, RecordState::kFree); }
  // doomed without pins -> free.
  void free_doomed() noexcept { move_unpinned(RecordState::kDoomed, RecordState::kFree); }

  // live without pins -> free. False when pinned; then nothing changes.
  bool evict() noexcept {
    std::uint64_t seen = word_.load(std::memory_order_relaxed);
    PinView view = unpack(seen);
    CAIRN_CHECK(view.state == RecordState::kLive);
    if (view.pins > 0) return false;
    view.state = RecordState::kFree;
    // Acquire on success: every unpin released its reads, and the frame is about to be reused.
    return word_.compare_exchange_strong(
        seen, pack(view), std::memory_order_acquire, std::memory_order_relaxed);
  }

  // live -> doomed. Returns the pins it had: with none the caller frees at once. An addition, since
  // pins may come and go meanwhile but only the mutex's holder changes the state. Acquire: as in
  // evict(), for the case of no pins.
  std::uint32_t doom() noexcept {
    const PinView old = unpack(word_.fetch_add(kLiveToDoomed, std::memory_order_acquire));
    CAIRN_CHECK(old.state == RecordState::kLive);
    return old.pins;
  }

 private:
  static constexpr unsigned kStateShift = 24;
  static constexpr unsigned kGenerationShift = 32;
  static constexpr std::uint64_t kLiveToDoomed = std::uint64_t{1} << kStateShift;
  static_assert(static_cast<int>(RecordState::kLive) + 1 == static_cast<int>(RecordState::kDoomed));

  static constexpr std::uint64_t pack(PinView view) noexcept {
    return std::uint64_t{view.generation} << kGenerationShift |
           static_cast<std::uint64_t>(view.state) << kStateShift | view.pins;
  }
  static constexpr PinView unpack(std::uint64_t word) noexcept {
    return {static_cast<std::uint32_t>(word >> kGenerationShift),
            static_cast<RecordState>(word >> kStateShift & 0xFFU),
            static_cast<std::uint32_t>(word & kPinsMax)};
  }
  static constexpr std::uint32_t next(std::uint32_t generation) noexcept {
    return generation == UINT32_MAX ? 1 : generation + 1;
  }

  void move_unpinned(RecordState from, RecordState to) noexcept {
    // Relaxed load: the state is changed under the mutex alone. A plain store is enough, since
    // nothing pins a reserved or doomed record. Release: for publish(); for the way to free it
    // costs nothing and keeps the freeing thread's last reads before it.
    PinView view = unpack(word_.load(std::memory_order_relaxed));
    CAIRN_CHECK(view.state == from && view.pins == 0);
    view.state = to;
    word_.store(pack(view), std::memory_order_release);
  }

  typename Atomics::template Atomic<std::uint64_t> word_{0};
};

}  // namespace cairn::storage
