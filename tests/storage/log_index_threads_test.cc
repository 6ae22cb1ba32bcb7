// Readers beside writers; runs under the thread sanitizer. A reader may see the old entry, the new
// one or none, never a place that nobody wrote.
#include "base/random.h"
#include "storage/nvme/log_index.h"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <span>
#include <thread>

namespace cairn::storage {
namespace {

constexpr std::uint64_t kKeys = 64;

LogKey key(std::uint64_t number) {
  std::uint64_t state = number;
  return {.hash = splitmix64(state), .name_space = 1};
}

// Every field follows from the version and the key.
LogPlace place(std::uint64_t number, std::uint64_t version) {
  return {.device = static_cast<std::uint8_t>(version % kLogDevicesMax),
          .segment = static_cast<std::uint32_t>(version % kLogSegmentsMax),
          .page = static_cast<std::uint16_t>(1 + number),
          .pages = static_cast<std::uint16_t>(kFramePagesMin + version % 4'000),
          .generation = static_cast<std::uint16_t>(version % kPlaceGenerations)};
}

// Looks at every key again and again until told to stop; how many places were not whole.
std::uint64_t read_until(const LogIndex& index, const std::atomic<bool>& is_over) {
  std::uint64_t wrong = 0;
  LogCandidates found;
  for (std::uint64_t n = 0; !is_over.load(); n = (n + 1) % kKeys) {
    for (const LogCandidate& seen : std::span(found).first(index.find(key(n), found))) {
      wrong += seen.place == place(n, seen.place.segment) ? 0 : 1;
    }
  }
  return wrong;
}

TEST(LogIndexThreads, ReadersSeeWholePlacesOnly) {
  constexpr std::uint64_t kRounds = 3'000;
  const auto index = std::move(*LogIndex::create(kKeys));
  for (std::uint64_t n = 0; n < kKeys; ++n)
    ASSERT_EQ(index->insert(key(n), place(n, 0)), std::nullopt);
  std::atomic<bool> is_over{false};
  std::array<std::uint64_t, 2> wrong{};
  std::thread reader([&] { wrong[0] = read_until(*index, is_over); });
  std::thread other([&] { wrong[1] = read_until(*index, is_over); });
  std::thread toucher([&] {
    for (std::uint64_t n = 0; !is_over.load(); n = (n + 1) % kKeys)
      index->touch(key(n), place(n, 1));
  });
  for (std::uint64_t version = 1; version <= kRounds; ++version) {
    for (std::uint64_t n = 0; n < kKeys; ++n)
      ASSERT_TRUE(index->replace(key(n), place(n, version - 1), place(n, version)));
  }
  is_over = true;
  for (std::thread* const thread : {&reader, &other, &toucher})
    thread->join();
  EXPECT_EQ(wrong, (std::array<std::uint64_t, 2>{}));
  EXPECT_EQ(index->entries(), kKeys);
}

}  // namespace
}  // namespace cairn::storage
