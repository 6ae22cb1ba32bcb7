// How a block is best copied: one memcpy, the string move of base/checksum.h, that move fused with
// CRC-32C, and memcpy then CRC-32C. Blocks lie one after another in shared memory of small pages,
// as in a pool without huge pages, and are in no cache; the targets are 64 blocks.
#include "base/checksum.h"
#include "base/clock.h"

#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <span>
#include <string_view>
#include <vector>

namespace {

using namespace cairn;  // NOLINT(google-build-using-namespace)

constexpr std::size_t kTargets = 64;
constexpr std::size_t kPageBytes = 4'096;
constexpr std::size_t kSourceBytes = std::size_t{256} << 20U;

void copy_long(std::span<std::byte> target, std::span<const std::byte> source) {
  std::memcpy(target.data(), source.data(), source.size());
}
void copy_fused(std::span<std::byte> target, std::span<const std::byte> source) {
  if (copy_with_crc32c(target, source) == 1) std::abort();  // keeps the result alive
}
void copy_streamed(std::span<std::byte> target, std::span<const std::byte> source) {
  if (stream_with_crc32c(target, source) == 1) std::abort();
}
void copy_then_crc(std::span<std::byte> target, std::span<const std::byte> source) {
  copy_long(target, source);
  if (crc32c(target) == 1) std::abort();
}

struct Way {
  const char* name;
  void (*copy)(std::span<std::byte>, std::span<const std::byte>);
};
constexpr std::array<Way, 5> kWays = {{{"memcpy", copy_long},
                                       {"string_move", copy_bytes},
                                       {"string_move_with_crc", copy_fused},
                                       {"stream_with_crc", copy_streamed},
                                       {"memcpy_then_crc", copy_then_crc}}};

double seconds_of(const Way& way,
                  std::size_t block,
                  std::span<std::byte> source,
                  std::span<std::byte> targets) {
  const SystemClock clock;
  const std::size_t stride = block + kHeaderBytes.value();
  const MonotonicTime begin = clock.now();
  for (std::size_t i = 0; (i + 1) * stride <= source.size(); ++i) {
    way.copy(targets.subspan((i % kTargets) * block, block), source.subspan(i * stride, block));
  }
  return static_cast<double>((clock.now() - begin).count()) / 1e9;
}

// Median over rounds of each way's speed as a share of memcpy's in the same round.
void measure(
    std::size_t block, int rounds, std::span<std::byte> source, bool is_json, bool is_last) {
  // On whole pages, as engines' buffers are.
  std::vector<std::byte> memory(kTargets * block + kPageBytes);
  const std::size_t skipped =
      kPageBytes - reinterpret_cast<std::uintptr_t>(memory.data()) % kPageBytes;
  const auto targets = std::span(memory).subspan(skipped, kTargets * block);
  std::array<std::vector<double>, kWays.size()> ratios;
  for (int round = 0; round <= rounds; ++round) {
    const double plain = seconds_of(kWays[0], block, source, targets);
    for (std::size_t way = 0; way < kWays.size(); ++way) {
      const double own = way == 0 ? plain : seconds_of(kWays[way], block, source, targets);
      if (round > 0) ratios[way].push_back(plain / own);
    }
  }
  std::printf(is_json ? "\"%zu\": {" : "%8zu bytes:", block);
  for (std::size_t way = 0; way < kWays.size(); ++way) {
    std::sort(ratios[way].begin(), ratios[way].end());
    const double median = ratios[way][ratios[way].size() / 2];
    std::printf(is_json ? "%s\"%s\": %.3f" : "%s %s %.2f",
                is_json && way > 0 ? ", " : "",
                kWays[way].name,
                median);
  }
  std::printf(is_json ? "}%s" : "%s\n", is_json && !is_last ? ", " : "");
}

}  // namespace

int main(int argc, char** argv) {
  bool is_json = false;
  int rounds = 15;
  for (int i = 1; i < argc; ++i) {
    const std::string_view word(argv[i]);
    if (word == "--json") {
      is_json = true;
    } else if (word == "--quick") {
      rounds = 1;
    } else {
      std::fputs("usage: copy_steps [--json] [--quick]\n", stderr);
      return 2;
    }
  }
  void* const memory =
      mmap(nullptr, kSourceBytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return 1;
  const std::span<std::byte> source(static_cast<std::byte*>(memory), kSourceBytes);
  std::memset(source.data(), 0x5A, source.size());
  constexpr std::array<std::size_t, 3> kSizes = {65'536, 1'048'576, 4'194'304};
  if (is_json) std::printf("{");
  for (const std::size_t size : kSizes)
    measure(size, rounds, source, is_json, size == kSizes.back());
  if (is_json) std::printf("}\n");
  return 0;
}
