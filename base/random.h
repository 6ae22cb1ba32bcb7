// Randomness is handed in, so that a simulated run replays from its seed.
#pragma once

#include <array>
#include <cstdint>

namespace cairn {

// Not thread-safe: one owner.
class Random {
 public:
  Random() = default;
  Random(const Random&) = delete;
  Random& operator=(const Random&) = delete;
  virtual ~Random() = default;
  virtual std::uint64_t next_u64() noexcept = 0;
  // Uniform in [0, bound); bound > 0. Unbiased enough for choices: 64-bit multiply and shift.
  std::uint64_t below(std::uint64_t bound) noexcept;
  // Uniform in [0, 1).
  double unit() noexcept;
};

// xoshiro256** of Blackman and Vigna (2018), seeded by splitmix64: the same seed gives the same
// sequence on every machine.
class SeededRandom final : public Random {
 public:
  explicit SeededRandom(std::uint64_t seed) noexcept;
  std::uint64_t next_u64() noexcept override;

 private:
  std::array<std::uint64_t, 4> state_{};
};

// getrandom(2): for incarnations, session secrets and body ids.
class SystemRandom final : public Random {
 public:
  std::uint64_t next_u64() noexcept override;
};

std::uint64_t splitmix64(std::uint64_t& state) noexcept;

}  // namespace cairn
