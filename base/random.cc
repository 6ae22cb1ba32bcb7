#include "base/random.h"

#include "base/check.h"

#include <sys/random.h>

#include <bit>

namespace cairn {

std::uint64_t Random::below(std::uint64_t bound) noexcept {
  CAIRN_CHECK(bound > 0);
  __extension__ using Wide = unsigned __int128;
  return static_cast<std::uint64_t>((static_cast<Wide>(next_u64()) * bound) >> 64U);
}

double Random::unit() noexcept {
  return static_cast<double>(next_u64() >> 11U) * 0x1.0p-53;
}

std::uint64_t splitmix64(std::uint64_t& state) noexcept {
  state += 0x9E3779B97F4A7C15ULL;
  std::uint64_t z = state;
  z = (z ^ (z >> 30U)) * 0xBF58476D1CE4E5B9ULL;
  z = (z ^ (z >> 27U)) * 0x94D049BB133111EBULL;
  return z ^ (z >> 31U);
}

SeededRandom::SeededRandom(std::uint64_t seed) noexcept {
  for (std::uint64_t& word : state_)
    word = splitmix64(seed);
}

std::uint64_t SeededRandom::next_u64() noexcept {
  const std::uint64_t result = std::rotl(state_[1] * 5, 7) * 9;
  const std::uint64_t t = state_[1] << 17U;
  state_[2] ^= state_[0];
  state_[3] ^= state_[1];
  state_[1] ^= state_[2];
  state_[0] ^= state_[3];
  state_[2] ^= t;
  state_[3] = std::rotl(state_[3], 45);
  return result;
}

std::uint64_t SystemRandom::next_u64() noexcept {
  std::uint64_t value = 0;
  // Up to 256 bytes never return short once the kernel's pool is ready (getrandom(2)).
  CAIRN_CHECK(getrandom(&value, sizeof(value), 0) == static_cast<ssize_t>(sizeof(value)));
  return value;
}

}  // namespace cairn
