#include "tests/support/seed.h"

#include <cstdlib>

namespace cairn::testing {

std::uint64_t test_seed(std::uint64_t fallback) {
  const char* const text = std::getenv("CAIRN_SEED");
  return text == nullptr ? fallback : std::strtoull(text, nullptr, 10);
}

}  // namespace cairn::testing
