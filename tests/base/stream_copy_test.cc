#include "base/stream_copy.h"

#include "base/checksum.h"
#include "base/random.h"
#include "tests/support/seed.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <vector>

namespace cairn {
namespace {

std::vector<std::byte> random_bytes(SeededRandom& random, std::size_t size) {
  std::vector<std::byte> bytes(size);
  std::ranges::generate(bytes, [&] { return static_cast<std::byte>(random.below(256)); });
  return bytes;
}

// Around lines of 64 bytes, from every place in a line to every other.
TEST(StreamBytes, CopiesEveryLengthToEveryPlaceOfALineAndNothingBeside) {
  SeededRandom random(testing::test_seed());
  const auto source = random_bytes(random, 400);
  for (const std::size_t size : {0U, 1U, 63U, 64U, 65U, 127U, 128U, 200U, 321U}) {
    for (std::size_t to = 1; to <= 65; ++to) {
      const std::size_t from = random.below(source.size() - size + 1);
      std::vector<std::byte> target(size + 130, std::byte{0xEE});
      const auto taken = std::span(source).subspan(from, size);
      stream_bytes(std::span(target).subspan(to, size), taken);
      stream_fence();
      const auto* const begin = target.data() + to;
      ASSERT_TRUE(std::equal(taken.begin(), taken.end(), begin)) << size << " to " << to;
      ASSERT_EQ(std::count(target.begin(), target.end(), std::byte{0xEE}) -
                    std::count(taken.begin(), taken.end(), std::byte{0xEE}),
                130);
    }
  }
}

TEST(StreamBytesDeathTest, OfUnequalSizesIsABug) {
  std::array<std::byte, 4> target{};
  const std::array<std::byte, 5> source{};
  EXPECT_DEATH(stream_bytes(target, source), "check_failed");
}

TEST(StreamWithCrc32c, CopiesAndChecksumsAcrossItsSteps) {
  SeededRandom random(testing::test_seed());
  for (const std::size_t size : {0U, 1U, 1023U, 1024U, 4095U, 4097U, 65'536U, 262'144U, 300'001U}) {
    const auto source = random_bytes(random, size);
    std::vector<std::byte> target(size + 2, std::byte{0xEE});
    const std::uint32_t crc = stream_with_crc32c(std::span(target).subspan(1, size), source);
    EXPECT_EQ(crc, crc32c(source)) << size;
    EXPECT_TRUE(std::equal(source.begin(), source.end(), target.begin() + 1)) << size;
    EXPECT_EQ(target.front(), std::byte{0xEE});
    EXPECT_EQ(target.back(), std::byte{0xEE});
  }
}

TEST(StreamWithCrc32cDeathTest, OfUnequalSizesIsABug) {
  std::array<std::byte, 4> target{};
  const std::array<std::byte, 5> source{};
  EXPECT_DEATH(stream_with_crc32c(target, source), "check_failed");
}

}  // namespace
}  // namespace cairn
