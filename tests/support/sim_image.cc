#include "tests/support/sim_image.h"

#include "base/check.h"

#include <algorithm>
#include <cstring>

namespace cairn::testing {

SimImage::SimImage(ByteCount size)
    : size_(size),
      pages_(divide_up(size.value(), kPageBytes)) {}

void SimImage::read(ByteCount offset, std::span<std::byte> into) const {
  CAIRN_CHECK(offset.value() + into.size() <= size_.value());
  std::size_t at = offset.value();
  while (!into.empty()) {
    const std::size_t begin = at % kPageBytes;
    const std::size_t bytes = std::min(into.size(), kPageBytes - begin);
    if (const auto& page = pages_[at / kPageBytes]) {
      std::memcpy(into.data(), page->data() + begin, bytes);
    } else {
      std::memset(into.data(), 0, bytes);
    }
    into = into.subspan(bytes);
    at += bytes;
  }
}

void SimImage::write(ByteCount offset, std::span<const std::byte> from) {
  CAIRN_CHECK(offset.value() + from.size() <= size_.value());
  std::size_t at = offset.value();
  while (!from.empty()) {
    const std::size_t begin = at % kPageBytes;
    const std::size_t bytes = std::min(from.size(), kPageBytes - begin);
    auto& page = pages_[at / kPageBytes];
    if (!page) page = std::make_shared<Page>();
    if (page.use_count() > 1) page = std::make_shared<Page>(*page);
    std::memcpy(page->data() + begin, from.data(), bytes);
    from = from.subspan(bytes);
    at += bytes;
  }
}

}  // namespace cairn::testing
