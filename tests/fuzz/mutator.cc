#include "tests/fuzz/mutator.h"

#include <algorithm>
#include <array>
#include <limits>

namespace cairn::fuzz {
namespace {

constexpr std::size_t kInsertedBytesMax = 32;
constexpr std::uint64_t kAddedMax = 16;
constexpr std::uint64_t kKinds = 8;

constexpr std::array<std::uint64_t, 12> kBoundaries = {
    0,
    1,
    0x7F,
    0xFF,
    0x7FFF,
    0xFFFF,
    0x7FFF'FFFF,
    0xFFFF'FFFF,
    std::uint64_t{1} << 32U,
    std::uint64_t{1} << 63U,
    std::numeric_limits<std::uint64_t>::max() - 1,
    std::numeric_limits<std::uint64_t>::max()};

// Little-endian, as all formats here; stops at the end of `input`.
void store(Input& input, std::size_t at, std::uint64_t value, std::size_t width) {
  for (std::size_t i = 0; i < width && at + i < input.size(); ++i)
    input[at + i] = static_cast<std::uint8_t>(value >> (8 * i));
}

std::uint64_t load(const Input& input, std::size_t at, std::size_t width) {
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < width && at + i < input.size(); ++i)
    value |= std::uint64_t{input[at + i]} << (8 * i);
  return value;
}

Input::iterator iterator_at(Input& input, std::size_t at) {
  return input.begin() + static_cast<std::ptrdiff_t>(at);
}

}  // namespace

Input Mutator::next(std::span<const Input> corpus) {
  Input input;
  if (!corpus.empty()) input = corpus[random_.below(corpus.size())];
  const std::uint64_t changes = 1 + random_.below(kChangesMax);
  for (std::uint64_t i = 0; i < changes; ++i)
    change(input, corpus);
  if (input.size() > kInputBytesMax) input.resize(kInputBytesMax);
  return input;
}

void Mutator::change(Input& input, std::span<const Input> corpus) {
  const std::uint64_t kinds = corpus.empty() ? kKinds - 1 : kKinds;  // the last one needs a corpus
  switch (input.empty() ? 0 : random_.below(kinds)) {
    case 0:
      return insert_bytes(input);
    case 1:
      return flip_bit(input);
    case 2:
      return set_byte(input);
    case 3:
      return set_number(input);
    case 4:
      return add_to_number(input);
    case 5:
      return remove_run(input);
    case 6:
      return repeat_run(input);
    default:
      return splice(input, corpus[random_.below(corpus.size())]);
  }
}

std::size_t Mutator::place_in(const Input& input) {
  return input.empty() ? 0 : random_.below(input.size());
}

void Mutator::flip_bit(Input& input) {
  std::uint8_t& byte = input[place_in(input)];
  byte = static_cast<std::uint8_t>(byte ^ 1U << random_.below(8));
}

void Mutator::set_byte(Input& input) {
  input[place_in(input)] = static_cast<std::uint8_t>(random_.below(256));
}

void Mutator::set_number(Input& input) {
  const std::size_t width = std::size_t{1} << random_.below(4);
  store(input, place_in(input), kBoundaries[random_.below(kBoundaries.size())], width);
}

void Mutator::add_to_number(Input& input) {
  const std::size_t width = std::size_t{1} << random_.below(4);
  const std::size_t at = place_in(input);
  const std::uint64_t by = random_.below(2 * kAddedMax) - kAddedMax;
  store(input, at, load(input, at, width) + by, width);
}

void Mutator::insert_bytes(Input& input) {
  Input added(1 + random_.below(kInsertedBytesMax));
  for (std::uint8_t& byte : added)
    byte = static_cast<std::uint8_t>(random_.below(256));
  input.insert(iterator_at(input, random_.below(input.size() + 1)), added.begin(), added.end());
}

void Mutator::remove_run(Input& input) {
  const std::size_t at = place_in(input);
  const std::size_t count = 1 + random_.below(input.size() - at);
  input.erase(iterator_at(input, at), iterator_at(input, at + count));
}

void Mutator::repeat_run(Input& input) {
  const std::size_t at = place_in(input);
  const std::size_t count = 1 + random_.below(input.size() - at);
  const Input run(iterator_at(input, at), iterator_at(input, at + count));
  input.insert(iterator_at(input, at), run.begin(), run.end());
}

void Mutator::splice(Input& input, const Input& other) {
  const std::size_t kept = place_in(input);
  const std::size_t from = place_in(other);
  input.resize(kept);
  input.insert(input.end(), other.begin() + static_cast<std::ptrdiff_t>(from), other.end());
}

}  // namespace cairn::fuzz
