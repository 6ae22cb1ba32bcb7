#include "tests/fuzz/mutator.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

namespace cairn::fuzz {
namespace {

std::vector<Input> outputs(std::uint64_t seed, std::span<const Input> corpus, std::size_t count) {
  SeededRandom random(seed);
  Mutator mutator(random);
  std::vector<Input> inputs(count);
  for (Input& input : inputs)
    input = mutator.next(corpus);
  return inputs;
}

std::size_t different(const std::vector<Input>& inputs) {
  std::set<std::string> found;
  for (const Input& input : inputs)
    found.emplace(input.begin(), input.end());
  return found.size();
}

TEST(Mutator, RepeatsItselfFromASeed) {
  const std::vector<Input> corpus = {{1, 2, 3}, {4, 5, 6, 7, 8, 9, 10, 11, 12}};
  EXPECT_EQ(outputs(5, corpus, 200), outputs(5, corpus, 200));
  EXPECT_NE(outputs(5, corpus, 200), outputs(6, corpus, 200));
}

TEST(Mutator, MakesManyDifferentInputsOfManyLengths) {
  const std::vector<Input> corpus = {Input(64, 7)};
  const auto made = outputs(1, corpus, 2'000);
  std::set<std::size_t> lengths;
  for (const Input& input : made)
    lengths.insert(input.size());
  EXPECT_GT(different(made), 1'500U);
  EXPECT_GT(lengths.size(), 50U);
  EXPECT_LT(*lengths.begin(), 8U);
}

TEST(Mutator, StartsFromNothingWithoutACorpus) {
  EXPECT_GT(different(outputs(2, {}, 500)), 400U);
}

TEST(Mutator, NeverGrowsBeyondItsBound) {
  const std::vector<Input> corpus = {Input(kInputBytesMax, 1)};
  for (const Input& input : outputs(3, corpus, 200))
    EXPECT_LE(input.size(), kInputBytesMax);
}

}  // namespace
}  // namespace cairn::fuzz
