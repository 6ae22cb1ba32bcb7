// The explorer itself: it must find what C++ allows and nothing that C++ forbids, on programs whose
// answers are in every textbook.
#include "tests/support/model_atomics.h"

#include <gtest/gtest.h>

#include <memory>

namespace cairn::testing {
namespace {

using Cell = ModelAtomics::Atomic<int>;

// Message passing: data, then a flag.
class MessagePassing final : public ModelCase {
 public:
  MessagePassing(std::memory_order store, std::memory_order load)
      : store_(store),
        load_(load) {}
  std::vector<std::function<void()>> threads() override {
    return {[this] {
              data_.store(1, std::memory_order_relaxed);
              flag_.store(1, store_);
            },
            [this] {
              if (flag_.load(load_) == 0) return;
              model_expect(data_.load(std::memory_order_relaxed) == 1, "the data came");
            }};
  }

 private:
  std::memory_order store_;
  std::memory_order load_;
  Cell data_;
  Cell flag_;
};

// A reader that says it is done, and a writer that waits for nothing else.
class HandingBack final : public ModelCase {
 public:
  explicit HandingBack(std::memory_order store)
      : store_(store) {}
  std::vector<std::function<void()>> threads() override {
    return {[this] {
              static_cast<void>(data_.read());
              is_done_.store(1, store_);
            },
            [this] {
              if (is_done_.load(std::memory_order_acquire) == 1) data_.write(2);
            }};
  }

 private:
  std::memory_order store_;
  ModelPlain<int> data_;
  Cell is_done_;
};

// Each stores its own cell and reads the other's.
class StoreBuffering final : public ModelCase {
 public:
  explicit StoreBuffering(std::memory_order store, std::memory_order load)
      : store_(store),
        load_(load) {}
  std::vector<std::function<void()>> threads() override {
    return {[this] {
              left_.store(1, store_);
              seen_right_ = right_.load(load_);
            },
            [this] {
              right_.store(1, store_);
              seen_left_ = left_.load(load_);
            }};
  }
  void finish() override { model_expect(seen_left_ == 1 || seen_right_ == 1, "one saw the other"); }

 private:
  std::memory_order store_;
  std::memory_order load_;
  Cell left_;
  Cell right_;
  int seen_left_ = 0;
  int seen_right_ = 0;
};

// Three threads count; two of them with a load and a store instead of one step when `is_atomic` is
// false.
class Counting final : public ModelCase {
 public:
  explicit Counting(bool is_atomic)
      : is_atomic_(is_atomic) {}
  std::vector<std::function<void()>> threads() override {
    const auto count = [this] {
      if (is_atomic_) {
        count_.fetch_add(1, std::memory_order_relaxed);
      } else {
        count_.store(count_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
      }
    };
    return {count, count, count};
  }
  void finish() override {
    model_expect(count_.load(std::memory_order_relaxed) == 3, "all were counted");
  }

 private:
  bool is_atomic_;
  Cell count_;
};

class Locking final : public ModelCase {
 public:
  std::vector<std::function<void()>> threads() override {
    const auto count = [this] {
      mutex_.lock();
      count_.store(count_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
      mutex_.unlock();
    };
    return {count, count};
  }
  void finish() override {
    model_expect(count_.load(std::memory_order_relaxed) == 2, "both were counted");
  }

 private:
  ModelMutex mutex_;
  Cell count_;
};

TEST(ModelAtomics, FindsTheMissingReleaseAndTheMissingAcquire) {
  const auto run = [](std::memory_order store, std::memory_order load) {
    return explore({}, [=] { return std::make_unique<MessagePassing>(store, load); });
  };
  EXPECT_NE(run(std::memory_order_relaxed, std::memory_order_acquire).failure, "");
  EXPECT_NE(run(std::memory_order_release, std::memory_order_relaxed).failure, "");
  const ModelResult right = run(std::memory_order_release, std::memory_order_acquire);
  EXPECT_EQ(right.failure, "");
  EXPECT_TRUE(right.is_complete);
}

TEST(ModelAtomics, FindsTheReadThatMayComeAfterItsRelease) {
  const auto run = [](std::memory_order store) {
    return explore({}, [=] { return std::make_unique<HandingBack>(store); });
  };
  EXPECT_NE(run(std::memory_order_relaxed).failure, "");
  EXPECT_EQ(run(std::memory_order_release).failure, "");
}

TEST(ModelAtomics, AcquireAndReleaseDoNotOrderAStoreBeforeALoad) {
  const auto run = [](std::memory_order store, std::memory_order load) {
    return explore({}, [=] { return std::make_unique<StoreBuffering>(store, load); });
  };
  EXPECT_NE(run(std::memory_order_release, std::memory_order_acquire).failure, "");
  EXPECT_EQ(run(std::memory_order_seq_cst, std::memory_order_seq_cst).failure, "");
}

TEST(ModelAtomics, FindsTheLostCount) {
  EXPECT_NE(explore({}, [] { return std::make_unique<Counting>(false); }).failure, "");
  const ModelResult atomic = explore({}, [] { return std::make_unique<Counting>(true); });
  EXPECT_EQ(atomic.failure, "");
  EXPECT_EQ(atomic.executions, 6U);
}

TEST(ModelAtomics, AMutexOrdersWhatItGuards) {
  const ModelResult result = explore({}, [] { return std::make_unique<Locking>(); });
  EXPECT_EQ(result.failure, "");
  EXPECT_TRUE(result.is_complete);
}

TEST(ModelAtomics, SaysWhenItHasNotSeenEverything) {
  const ModelResult result =
      explore({.executions_max = 2}, [] { return std::make_unique<Counting>(true); });
  EXPECT_FALSE(result.is_complete);
  EXPECT_EQ(result.executions, 2U);
}

}  // namespace
}  // namespace cairn::testing
