// The seed of a randomised test: CAIRN_SEED if set, else the default given. A failing test prints
// it through SCOPED_TRACE, so that CAIRN_SEED=<seed> replays the run.
#pragma once

#include <cstdint>

namespace cairn::testing {

// A variable of the environment; nullptr when it is not set.
const char* test_variable(const char* name);

std::uint64_t test_seed(std::uint64_t fallback = 1);

}  // namespace cairn::testing
