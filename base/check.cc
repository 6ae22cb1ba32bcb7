#include "base/check.h"

#include <cstdio>
#include <cstdlib>

namespace cairn {

void check_failed(const char* condition, const char* file, int line) noexcept {
  std::fprintf(stderr, "check_failed condition=\"%s\" at=%s:%d\n", condition, file, line);
  std::abort();
}

}  // namespace cairn
