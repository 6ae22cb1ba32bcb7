#include "tests/support/seed.h"

#include <cstdlib>

namespace cairn::testing {

const char* test_variable(const char* name) {
  // NOLINTNEXTLINE(concurrency-mt-unsafe): nobody sets the environment meanwhile.
  return std::getenv(name);
}

std::uint64_t test_seed(std::uint64_t fallback) {
  const char* const text = test_variable("CAIRN_SEED");
  return text == nullptr ? fallback : std::strtoull(text, nullptr, 10);
}

}  // namespace cairn::testing
