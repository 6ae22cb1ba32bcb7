#include "tests/support/block_io.h"

#include "base/check.h"
#include "base/random.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <vector>

namespace cairn::testing {

using storage::BlockDevice;
using storage::IoCompletion;

PageBuffer::PageBuffer(ByteCount bytes) {
  void* const address =
      ::mmap(nullptr, bytes.value(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  CAIRN_CHECK(address != MAP_FAILED);
  bytes_ = {static_cast<std::byte*>(address), bytes.value()};
}

PageBuffer::~PageBuffer() {
  CAIRN_CHECK(::munmap(bytes_.data(), bytes_.size()) == 0);
}

void fill(std::span<std::byte> bytes, std::uint64_t seed) {
  std::uint64_t state = seed;
  for (std::size_t at = 0; at + sizeof(state) <= bytes.size(); at += sizeof(state)) {
    const std::uint64_t word = splitmix64(state);
    std::memcpy(bytes.data() + at, &word, sizeof(word));
  }
}

bool is_filled(std::span<const std::byte> bytes, std::uint64_t seed) {
  std::vector<std::byte> expected(bytes.size());
  fill(expected, seed);
  return std::ranges::equal(bytes, expected);
}

Completions complete(BlockDevice& device, const Clock& clock, std::size_t count) {
  Completions completions;
  const Deadline end = Deadline::after(clock, Milliseconds(30'000));
  std::vector<IoCompletion> out(7);
  while (completions.size() < count) {
    const std::size_t got = device.poll(out, end);
    for (std::size_t i = 0; i < got; ++i) {
      const bool is_new = completions.emplace(out[i].id.value(), out[i].result).second;
      EXPECT_TRUE(is_new) << "operation " << out[i].id.value() << " completed twice";
    }
    if (got == 0 && (device.in_flight() == 0 || end.has_passed(clock.now()))) {
      ADD_FAILURE() << completions.size() << " of " << count << " operations completed";
      break;
    }
  }
  return completions;
}

}  // namespace cairn::testing
