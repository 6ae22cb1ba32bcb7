#include "base/mutex.h"

#include <gtest/gtest.h>

#include <array>
#include <thread>

namespace cairn {
namespace {

class Counter {
 public:
  void add() {
    const MutexLock lock(mutex_);
    ++value_;
  }
  int value() {
    const MutexLock lock(mutex_);
    return value_;
  }

 private:
  Mutex mutex_;
  int value_ CAIRN_GUARDED_BY(mutex_) = 0;
};

TEST(MutexLock, LosesNoIncrementOfFourThreads) {
  constexpr int kRounds = 10'000;
  Counter counter;
  {
    std::array<std::jthread, 4> threads;
    for (std::jthread& thread : threads) {
      thread = std::jthread([&counter] {
        for (int i = 0; i < kRounds; ++i)
          counter.add();
      });
    }
  }
  EXPECT_EQ(counter.value(), 4 * kRounds);
}

TEST(MutexLock, LetsGoAtTheEndOfItsBlock) {
  Mutex mutex;
  { const MutexLock lock(mutex); }
  const MutexLock again(mutex);
}

}  // namespace
}  // namespace cairn
