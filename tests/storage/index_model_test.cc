// Every interleaving of a lookup with a writer that recycles what it looks at: buckets, records and
// the tables that are replaced under it.
#include "storage/block_query.h"
#include "storage/index_bucket.h"
#include "storage/reader_gate.h"
#include "tests/support/model_atomics.h"

#include <gtest/gtest.h>

#include <array>
#include <memory>

namespace cairn::storage {
namespace {

using testing::explore;
using testing::model_expect;
using testing::ModelAtomics;
using testing::ModelCase;
using testing::ModelResult;

BlockQuery query(std::uint64_t first, std::uint64_t last, std::uint64_t epoch) {
  return {.slot = 1, .epoch = epoch, .digest = {.words = {first, 5, 5, last}, .bytes = 32}};
}

// A record that is evicted and taken for another key while a reader compares it.
class RecycledRecord : public ModelCase {
 public:
  explicit RecycledRecord(const BlockQuery& sought)
      : sought_(sought) {
    fill(kFirst);
  }
  std::vector<std::function<void()>> threads() override {
    return {[this] { read(); },
            [this] {
              if (!record_.pin_word().evict()) return;
              fill(kSecond);
            }};
  }

  static const BlockQuery kFirst;
  static const BlockQuery kSecond;

 protected:
  void fill(const BlockQuery& key) {
    record_.pin_word().reserve();
    record_.set_key(key.slot, key.digest);
    record_.set_epoch(key.epoch);
    record_.pin_word().publish();
  }
  virtual void read() {
    const auto generation = match_record(record_, sought_);
    if (!generation) return;
    const bool is_first = sought_.digest == kFirst.digest && sought_.epoch == kFirst.epoch;
    const bool is_second = sought_.digest == kSecond.digest && sought_.epoch == kSecond.epoch;
    model_expect(is_first || is_second, "found a key that never was");
    model_expect(*generation == (is_first ? 1U : 2U), "found a key in another's life");
  }

  BlockQuery sought_;
  BasicRecord<ModelAtomics> record_;
};
const BlockQuery RecycledRecord::kFirst = query(1, 1, 7);
const BlockQuery RecycledRecord::kSecond = query(2, 2, 8);

// As above; the reader pins what it found and then looks at it at leisure.
class PinnedRecord final : public RecycledRecord {
 public:
  PinnedRecord()
      : RecycledRecord(kFirst) {}

 private:
  void read() override {
    const auto generation = match_record(record_, sought_);
    if (!generation || !record_.pin_word().pin(*generation)) return;
    model_expect(record_.digest() == kFirst.digest, "pinned another key");
    model_expect(record_.epoch() == kFirst.epoch, "pinned another epoch");
    record_.pin_word().unpin(*generation);
  }
};

ModelResult recycle(const BlockQuery& sought) {
  return explore({}, [&] { return std::make_unique<RecycledRecord>(sought); });
}

TEST(RecordModel, ALookupNeverFindsAKeyMadeOfTwo) {
  for (const BlockQuery& mixed : {query(1, 2, 7), query(2, 1, 8), query(1, 1, 8), query(2, 2, 7)}) {
    const ModelResult result = recycle(mixed);
    EXPECT_EQ(result.failure, "");
    EXPECT_TRUE(result.is_complete) << result.executions;
  }
}

TEST(RecordModel, ALookupFindsAKeyInItsOwnLifeAlone) {
  for (const BlockQuery& whole : {RecycledRecord::kFirst, RecycledRecord::kSecond}) {
    const ModelResult result = recycle(whole);
    EXPECT_EQ(result.failure, "");
    EXPECT_TRUE(result.is_complete) << result.executions;
    EXPECT_GT(result.executions, 10U);
  }
}

TEST(RecordModel, APinHoldsTheKeyThatWasFound) {
  const ModelResult result = explore({}, [] { return std::make_unique<PinnedRecord>(); });
  EXPECT_EQ(result.failure, "");
  EXPECT_TRUE(result.is_complete) << result.executions;
}

// Two buckets of one slot, two attempts a bucket. Tags 0 and 1 have their home in the first, so the
// second of them lies in the other bucket.
class ChangingRow : public ModelCase {
 public:
  using Row = BasicBucketRow<ModelAtomics, 1, 2>;
  ChangingRow()
      : row_(std::span(buckets_)) {
    row_.insert(0, kPasser);
    row_.insert(1, kStaying);
  }

 protected:
  static constexpr std::uint32_t kPasser = 10;
  static constexpr std::uint32_t kStaying = 11;
  std::array<Row::Bucket, 2> buckets_;
  Row row_;
};

class FindsWhatStays final : public ChangingRow {
  std::vector<std::function<void()>> threads() override {
    return {[this] {
              const auto outcome =
                  row_.find(1, [](std::uint32_t record) { return record == kStaying; });
              model_expect(outcome != FindOutcome::kAbsent, "missed a key that was there");
            },
            [this] {
              row_.erase(0, kPasser);
              row_.insert(0, kPasser + 5);
            }};
  }
};

class FindsNothingErased final : public ChangingRow {
  std::vector<std::function<void()>> threads() override {
    return {[this] {
              row_.erase(1, kStaying);
              is_erased_.store(1, std::memory_order_release);
            },
            [this] {
              if (is_erased_.load(std::memory_order_acquire) == 0) return;
              const auto outcome = row_.find(1, [](std::uint32_t) { return true; });
              model_expect(outcome == FindOutcome::kAbsent, "found what was erased before");
            }};
  }
  ModelAtomics::Atomic<int> is_erased_;
};

class FindsWhatWasInserted final : public ChangingRow {
  std::vector<std::function<void()>> threads() override {
    return {[this] {
              row_.erase(1, kStaying);
              row_.insert(1, kStaying + 5);
              is_in_.store(1, std::memory_order_release);
            },
            [this] {
              if (is_in_.load(std::memory_order_acquire) == 0) return;
              const auto outcome =
                  row_.find(1, [](std::uint32_t record) { return record == kStaying + 5; });
              model_expect(outcome == FindOutcome::kFound, "missed what was inserted before");
            }};
  }
  ModelAtomics::Atomic<int> is_in_;
};

template <typename Case>
ModelResult run() {
  return explore({}, [] { return std::make_unique<Case>(); });
}

TEST(BucketModel, AKeyThatStaysIsFoundWhateverChangesAroundIt) {
  const ModelResult result = run<FindsWhatStays>();
  EXPECT_EQ(result.failure, "");
  EXPECT_TRUE(result.is_complete) << result.executions;
  EXPECT_GT(result.executions, 20U);
}

TEST(BucketModel, WhatWasErasedBeforeIsNotFound) {
  const ModelResult result = run<FindsNothingErased>();
  EXPECT_EQ(result.failure, "");
  EXPECT_TRUE(result.is_complete) << result.executions;
}

TEST(BucketModel, WhatWasInsertedBeforeIsFound) {
  const ModelResult result = run<FindsWhatWasInserted>();
  EXPECT_EQ(result.failure, "");
  EXPECT_TRUE(result.is_complete) << result.executions;
}

// A view of one bucket is of one moment: the writer keeps exactly one of two slots taken between
// its changes, and a reader never sees none or, once it is odd, a half.
class SteadyBucket final : public ModelCase {
 public:
  // In the second slot, so that the new entry enters where the scan has been already.
  SteadyBucket() {
    bucket_.insert(9, 19);
    bucket_.insert(3, 20);
    bucket_.erase(9, 19);
  }
  std::vector<std::function<void()>> threads() override {
    return {[this] {
              bucket_.insert(3, 21);
              bucket_.erase(3, 20);
            },
            [this] {
              const auto view = bucket_.read(3);
              model_expect(!view || view->matches != 0, "saw the bucket empty");
            }};
  }

 private:
  BasicBucket<ModelAtomics, 2, 2> bucket_;
};

TEST(BucketModel, AViewIsOfOneMoment) {
  const ModelResult result = run<SteadyBucket>();
  EXPECT_EQ(result.failure, "");
  EXPECT_TRUE(result.is_complete) << result.executions;
}

// Readers of a table that a writer replaces twice. A freed table's content is 1.
class ReplacedTables final : public ModelCase {
 public:
  explicit ReplacedTables(int readers)
      : readers_(readers) {}
  std::vector<std::function<void()>> threads() override {
    std::vector<std::function<void()>> out(static_cast<std::size_t>(readers_), [this] { read(); });
    out.push_back([this] {
      replace(1);
      replace(2);
      free_if_drained();
    });
    return out;
  }

 private:
  void read() {
    const std::uint32_t side = gate_.enter();
    const std::uint32_t table = current_.load(std::memory_order_seq_cst);
    model_expect(contents_[table].read() == 0, "read a freed table");
    gate_.leave(side);
  }
  void replace(std::uint32_t table) {
    current_.store(table, std::memory_order_seq_cst);
    replaced_ = table;
    gate_.begin_drain();
    free_if_drained();
  }
  void free_if_drained() {
    if (freed_ == replaced_ || !gate_.is_drained()) return;
    for (; freed_ < replaced_; ++freed_)
      contents_[freed_].write(1);
  }

  int readers_;
  BasicReaderGate<ModelAtomics> gate_;
  ModelAtomics::Atomic<std::uint32_t> current_;
  std::array<testing::ModelPlain<int>, 3> contents_;
  std::uint32_t replaced_ = 0;  // tables below have been replaced
  std::uint32_t freed_ = 0;     // tables below have been freed
};

TEST(ReaderGateModel, NoTableIsFreedUnderAReader) {
  for (const int readers : {1, 2}) {
    const ModelResult result =
        explore({}, [readers] { return std::make_unique<ReplacedTables>(readers); });
    EXPECT_EQ(result.failure, "");
    EXPECT_TRUE(result.is_complete) << result.executions;
    EXPECT_GT(result.executions, 20U);
  }
}

}  // namespace
}  // namespace cairn::storage
