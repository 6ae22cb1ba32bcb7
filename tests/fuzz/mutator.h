// Changes inputs the way that breaks decoders: flipped bits, cut and repeated runs, boundary
// numbers, pieces of other inputs. The same random gives the same inputs.
#pragma once

#include "base/random.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace cairn::fuzz {

using Input = std::vector<std::uint8_t>;

inline constexpr std::size_t kInputBytesMax = std::size_t{64} * 1024;
inline constexpr std::uint64_t kChangesMax = 4;

// One of `corpus` with one to kChangesMax changes, at most kInputBytesMax long. An empty corpus
// stands for one empty input. Not thread-safe.
class Mutator {
 public:
  explicit Mutator(Random& random)
      : random_(random) {}
  Input next(std::span<const Input> corpus);

 private:
  void change(Input& input, std::span<const Input> corpus);
  void flip_bit(Input& input);
  void set_byte(Input& input);
  void set_number(Input& input);
  void add_to_number(Input& input);
  void insert_bytes(Input& input);
  void remove_run(Input& input);
  void repeat_run(Input& input);
  void splice(Input& input, const Input& other);
  // A place in `input`, or 0 when it is empty.
  std::size_t place_in(const Input& input);

  Random& random_;
};

}  // namespace cairn::fuzz
