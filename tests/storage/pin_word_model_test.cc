// Every interleaving of readers, an evicting thread and a removing thread on one pin word.
#include "storage/pin_word.h"
#include "tests/support/model_atomics.h"

#include <gtest/gtest.h>

#include <memory>

namespace cairn::storage {
namespace {

using testing::explore;
using testing::model_expect;
using testing::ModelAtomics;
using testing::ModelCase;
using testing::ModelMutex;
using testing::ModelResult;

// One record over its lives. `body_` stands for the frame's bytes: the writer of a life leaves its
// number there, and only the pin word can put readers and writers of it in order.
class PinWordCase : public ModelCase {
 public:
  PinWordCase() {
    first_life_ = begin_life();
    word_.publish();
  }

 protected:
  std::uint32_t begin_life() {
    const std::uint32_t life = word_.reserve();
    model_expect(!is_owned_, "a frame that is in use was reserved");
    is_owned_ = true;
    body_.write(++lives_);
    return life;
  }
  // Whoever frees may write at once: nobody may be reading.
  void free_frame() {
    model_expect(is_owned_, "freed twice");
    model_expect(readers_ == 0, "freed under a reader");
    is_owned_ = false;
    body_.write(kFreed);
  }
  void read_once() { read_life(first_life_); }
  void read_life(std::uint32_t life) {
    if (!word_.pin(life)) return;
    ++readers_;
    model_expect(body_.read() == life, "read another life's bytes");
    --readers_;
    if (word_.unpin(life) != Unpinned::kLastOfDoomed) return;
    mutex_.lock();
    word_.free_doomed();
    free_frame();
    mutex_.unlock();
  }
  void evict_and_reuse() {
    mutex_.lock();
    if (word_.view().state == RecordState::kLive && word_.evict()) {
      free_frame();
      begin_life();
      word_.publish();
    }
    mutex_.unlock();
  }
  void remove() {
    mutex_.lock();
    if (word_.view().state == RecordState::kLive && word_.doom() == 0) {
      word_.free_doomed();
      free_frame();
    }
    mutex_.unlock();
  }

  static constexpr std::uint32_t kFreed = 0xFFFF;
  BasicPinWord<ModelAtomics> word_;
  testing::ModelPlain<std::uint32_t> body_;
  ModelMutex mutex_;
  std::uint32_t first_life_ = 0;
  std::uint32_t lives_ = 0;
  int readers_ = 0;
  bool is_owned_ = false;
};

class TwoReadersAndEviction final : public PinWordCase {
  std::vector<std::function<void()>> threads() override {
    return {[this] { read_once(); }, [this] { read_once(); }, [this] { evict_and_reuse(); }};
  }
};

class ReaderTwiceAndEviction final : public PinWordCase {
  std::vector<std::function<void()>> threads() override {
    return {[this] {
              read_once();
              read_once();
            },
            [this] { evict_and_reuse(); }};
  }
};

// A reader that knows the next life's number, from wherever: its pin alone must show the bytes.
class ReaderOfTheNextLife final : public PinWordCase {
  std::vector<std::function<void()>> threads() override {
    return {[this] { read_life(first_life_ + 1); },
            [this] { read_once(); },
            [this] { evict_and_reuse(); }};
  }
};

class TwoReadersAndRemoval final : public PinWordCase {
  std::vector<std::function<void()>> threads() override {
    return {[this] { read_once(); }, [this] { read_once(); }, [this] { remove(); }};
  }
  void finish() override {
    model_expect(!is_owned_, "removed, and never freed");
    model_expect(word_.view().state == RecordState::kFree, "removed, and not free");
  }
};

class RemovalAndEviction final : public PinWordCase {
  std::vector<std::function<void()>> threads() override {
    return {[this] { read_once(); }, [this] { remove(); }, [this] { evict_and_reuse(); }};
  }
};

template <typename Case>
ModelResult run() {
  return explore({}, [] { return std::make_unique<Case>(); });
}

TEST(PinWordModel, NoPinSurvivesEvictionAndNoEvictionHappensUnderAPin) {
  const ModelResult result = run<TwoReadersAndEviction>();
  EXPECT_EQ(result.failure, "");
  EXPECT_TRUE(result.is_complete) << result.executions;
  EXPECT_GT(result.executions, 1000U);
}

TEST(PinWordModel, AReusedRecordIsNeverPinnedByAnOldRef) {
  const ModelResult result = run<ReaderTwiceAndEviction>();
  EXPECT_EQ(result.failure, "");
  EXPECT_TRUE(result.is_complete) << result.executions;
}

TEST(PinWordModel, APinShowsTheBytesThatWerePublished) {
  const ModelResult result = run<ReaderOfTheNextLife>();
  EXPECT_EQ(result.failure, "");
  EXPECT_TRUE(result.is_complete) << result.executions;
}

TEST(PinWordModel, ARemovedBlockIsFreedExactlyOnceByItsLastReader) {
  const ModelResult result = run<TwoReadersAndRemoval>();
  EXPECT_EQ(result.failure, "");
  EXPECT_TRUE(result.is_complete) << result.executions;
}

TEST(PinWordModel, RemovalAndEvictionDoNotFreeTheSameBlock) {
  const ModelResult result = run<RemovalAndEviction>();
  EXPECT_EQ(result.failure, "");
  EXPECT_TRUE(result.is_complete) << result.executions;
}

}  // namespace
}  // namespace cairn::storage
