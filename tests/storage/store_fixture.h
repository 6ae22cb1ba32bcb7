// A store over a fake tier, a clock that stands still and records in plain memory.
#pragma once

#include "base/checksum.h"
#include "storage/lazy_memory.h"
#include "storage/store.h"
#include "tests/support/fake_tier.h"
#include "tests/support/manual_clock.h"

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace cairn::storage {

struct FixtureOptions {
  std::uint32_t frames = 16;      // of one-granule blocks: header page and 4 KiB
  std::uint32_t records_max = 0;  // 0: as many as frames, and a few
  double retained_share = 0.2;
  bool has_memory = true;
  bool splits_frames = false;
  RecordsOwner* records_owner = nullptr;
};

// A block of the default length takes two granules, so `frames` of them fill the tier.
class StoreFixture {
 public:
  static constexpr std::uint32_t kLength = 4096;
  static constexpr std::uint64_t kEpoch = 100;

  explicit StoreFixture(FixtureOptions options = {});

  Store& store() { return *store_; }
  testing::FakeTier& tier() { return tier_; }
  testing::ManualClock& clock() { return clock_; }
  const Scope& scope() const { return scope_; }

  static BlockDigest digest(std::uint64_t number);
  static std::vector<BlockDigest> digests(std::span<const std::uint64_t> numbers);
  // Bytes of a payload that only this key has.
  static std::vector<std::byte> body(std::uint64_t number, std::uint32_t length = kLength);

  // One chain, root first; `parent` 0: none.
  std::vector<ReserveOutcome> reserve(std::span<const std::uint64_t> chain,
                                      std::uint64_t parent = 0);
  ReserveOutcome reserve_one(std::uint64_t number, std::uint32_t length = kLength);
  // Writes body(number) into the frame and commits with its checksums.
  BlockStatus commit_one(const ReserveOutcome& reserved,
                         std::uint64_t number,
                         std::uint32_t length = kLength);
  // Reserves, writes and commits what is not there; the status of each.
  std::vector<BlockStatus> put(std::span<const std::uint64_t> chain, std::uint64_t parent = 0);
  BlockStatus put_one(std::uint64_t number, std::uint32_t length = kLength);
  // As a client does it: looks up, gets the leading run, puts the rest. The run.
  std::size_t get_then_put(std::span<const std::uint64_t> chain);

  bool has(std::uint64_t number) const;
  std::optional<PinnedBlock> pin(std::uint64_t number) {
    return store_->pin(scope_, digest(number));
  }
  // The numbers still there after dropping the coldest, one at a time, until nothing is left: the
  // victims in their order.
  std::vector<std::uint64_t> victims(std::span<const std::uint64_t> of);
  void write(const ExtentList& extents, std::span<const std::byte> bytes);
  std::vector<std::byte> read(const ExtentList& extents, std::uint32_t length);

 private:
  testing::FakeTier tier_;
  testing::ManualClock clock_;
  LazyMemory records_;
  Scope scope_;
  std::unique_ptr<Store> store_;
};

std::vector<std::uint32_t> checksums_of(std::span<const std::byte> bytes);

}  // namespace cairn::storage
