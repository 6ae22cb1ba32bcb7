#include "base/random.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <limits>

namespace cairn {
namespace {

// A generator that answers what the test says.
class FixedRandom final : public Random {
 public:
  explicit FixedRandom(std::uint64_t value)
      : value_(value) {}
  std::uint64_t next_u64() noexcept override { return value_; }

 private:
  std::uint64_t value_;
};

constexpr std::uint64_t kMax = std::numeric_limits<std::uint64_t>::max();

// The values that splitmix64 is known by; they agree with the reference of its authors.
TEST(Splitmix64, GivesItsKnownSequence) {
  std::uint64_t state = 1'234'567;
  EXPECT_EQ(splitmix64(state), 6'457'827'717'110'365'317ULL);
  EXPECT_EQ(splitmix64(state), 3'203'168'211'198'807'973ULL);
  EXPECT_EQ(splitmix64(state), 9'817'491'932'198'370'423ULL);
}

// Pinned: recorded traces and simulated runs replay from their seed only while this holds.
TEST(SeededRandom, GivesTheSameSequenceForEver) {
  struct Pinned {
    std::uint64_t seed;
    std::array<std::uint64_t, 4> values;
  };
  constexpr std::array<Pinned, 3> kPinned = {
      {{0, {0x99ec5f36cb75f2b4, 0xbf6e1f784956452a, 0x1a5f849d4933e6e0, 0x6aa594f1262d2d2c}},
       {1, {0xb3f2af6d0fc710c5, 0x853b559647364cea, 0x92f89756082a4514, 0x642e1c7bc266a3a7}},
       {42, {0x15780b2e0c2ec716, 0x6104d9866d113a7e, 0xae17533239e499a1, 0xecb8ad4703b360a1}}}};
  for (const Pinned& pinned : kPinned) {
    SeededRandom random(pinned.seed);
    for (const std::uint64_t value : pinned.values)
      EXPECT_EQ(random.next_u64(), value) << "seed " << pinned.seed;
  }
}

TEST(Random, BelowStaysBelowAndReachesBothEnds) {
  EXPECT_EQ(FixedRandom(0).below(10), 0U);
  EXPECT_EQ(FixedRandom(kMax).below(10), 9U);
  EXPECT_EQ(FixedRandom(kMax).below(1), 0U);
  EXPECT_EQ(FixedRandom(kMax).below(kMax), kMax - 1);
}

TEST(Random, BelowSpreadsItsChoicesEvenly) {
  SeededRandom random(3);
  std::array<int, 10> counts{};
  constexpr int kDraws = 100'000;
  constexpr int kExpected = kDraws / 10;
  for (int i = 0; i < kDraws; ++i)
    ++counts[random.below(counts.size())];
  for (const int count : counts)
    EXPECT_NEAR(count, kExpected, 600);
}

TEST(Random, UnitIsFromZeroToJustBelowOne) {
  EXPECT_EQ(FixedRandom(0).unit(), 0.0);
  EXPECT_LT(FixedRandom(kMax).unit(), 1.0);
  EXPECT_GT(FixedRandom(kMax).unit(), 0.999999);
  SeededRandom random(4);
  double sum = 0;
  for (int i = 0; i < 10'000; ++i)
    sum += random.unit();
  EXPECT_NEAR(sum / 10'000, 0.5, 0.02);
}

TEST(RandomDeathTest, BelowZeroIsABug) {
  SeededRandom random(1);
  EXPECT_DEATH(random.below(0), "check_failed");
}

TEST(SystemRandom, DoesNotRepeatItself) {
  SystemRandom random;
  EXPECT_NE(random.next_u64(), random.next_u64());
}

}  // namespace
}  // namespace cairn
