// Any bytes decode to a header or to an error, and what decodes encodes to the same bytes. The
// input is laid over a valid page and hashed anew, so that the checks behind the hash are reached.
#include "base/checksum.h"
#include "storage/header_page.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <span>

namespace cairn::storage {
namespace {

using Page = std::array<std::byte, kHeaderPageBytes>;
constexpr std::size_t kHashedBytes = 3584;
constexpr std::size_t kHashAt = 504;

Page valid_page() {
  HeaderPage header;
  const std::array<std::byte, kBlockDigestBytesMin> digest{};
  header.digest = *BlockDigest::from(digest);
  header.length = 300'000;
  Page page{};
  if (!encode_header(header, page)) std::abort();
  return page;
}

void rehash(Page& page) {
  std::memset(page.data() + kHashAt, 0, sizeof(std::uint64_t));
  const std::uint64_t hash = xxh3_64(std::span(page).first(kHashedBytes));
  for (std::size_t i = 0; i < sizeof(hash); ++i)
    page[kHashAt + i] = static_cast<std::byte>(hash >> (8 * i));
}

void check(const Page& page) {
  static_cast<void>(decode_location(page));
  const auto header = decode_header(page);
  if (!header) return;
  Page again{};
  if (!encode_header(*header, again)) std::abort();
  if (!std::equal(page.begin(), page.begin() + kHashedBytes, again.begin())) std::abort();
}

void try_input(std::span<const std::byte> input) {
  Page raw{};
  std::copy_n(input.begin(), std::min(input.size(), raw.size()), raw.begin());
  check(raw);

  // Two bytes of offset, then what is laid over the page there.
  if (input.size() < 3) return;
  Page page = valid_page();
  const std::size_t at =
      (std::to_integer<std::size_t>(input[0]) | std::to_integer<std::size_t>(input[1]) << 8U) %
      page.size();
  const auto patch = input.subspan(2).first(std::min(input.size() - 2, page.size() - at));
  std::copy(patch.begin(), patch.end(), page.begin() + static_cast<std::ptrdiff_t>(at));
  rehash(page);
  check(page);
}

}  // namespace
}  // namespace cairn::storage

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  cairn::storage::try_input(std::as_bytes(std::span(data, size)));
  return 0;
}
