// Any bytes decode to a superblock, segment header or footer, or to an error; what decodes encodes
// to the same bytes. The input is laid over a valid page and hashed anew, so that the checks behind
// the hash are reached.
#include "base/checksum.h"
#include "storage/little_endian.h"
#include "storage/nvme/log_format.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <vector>

namespace cairn::storage {
namespace {

using Bytes = std::vector<std::byte>;
constexpr std::size_t kPage = 4'096;
constexpr std::size_t kPageHashAt = 4'088;
constexpr std::size_t kRowsHashAt = 72;
constexpr std::size_t kBodyHashAt = 56;

void expect(bool is_right) {
  if (!is_right) std::abort();
}

void check_superblock(std::span<const std::byte> bytes) {
  const auto superblock = decode_superblock(bytes);
  if (!superblock) return;
  Bytes again(superblock_bytes(superblock->namespaces.size()).value());
  expect(encode_superblock(*superblock, again).has_value());
  expect(std::ranges::equal(again, bytes.first(again.size())));
}

void check_footer(std::span<const std::byte> bytes) {
  const auto footer = decode_footer(bytes, kSegmentBytesMax);
  if (!footer) return;
  Bytes again(bytes.size());
  expect(encode_footer(*footer, again).has_value());
  expect(std::ranges::equal(again, bytes));
}

void check_header(std::span<const std::byte, kPage> bytes) {
  const auto header = decode_segment_header(bytes);
  if (!header) return;
  std::array<std::byte, kPage> again{};
  expect(encode_segment_header(*header, again).has_value());
  expect(std::ranges::equal(again, bytes));
}

void lay_over(std::span<const std::byte> input, Bytes& bytes) {
  const std::size_t at =
      (std::to_integer<std::size_t>(input[0]) | std::to_integer<std::size_t>(input[1]) << 8U) %
      bytes.size();
  const auto patch = input.subspan(2).first(std::min(input.size() - 2, bytes.size() - at));
  std::ranges::copy(patch, bytes.begin() + static_cast<std::ptrdiff_t>(at));
}

void hash_page(std::span<std::byte> page) {
  put_number(page, kPageHashAt, xxh3_64(page.first(kPageHashAt)));
}

void try_patched(std::span<const std::byte> input) {
  NamespaceEpoch row{.digest = {}, .epoch = 1};
  Superblock superblock{
      .sequence = 1, .segment_bytes = kSegmentBytesMin, .segments = 1, .namespaces = {row}};
  Bytes area(superblock_bytes(1).value());
  expect(encode_superblock(superblock, area).has_value());
  lay_over(input, area);
  put_number(std::span(area).first(kPage), kRowsHashAt, xxh3_64(std::span(area).subspan(kPage)));
  hash_page(std::span(area).first(kPage));
  check_superblock(area);

  SegmentFooter footer{.of = {.device = {}, .segment = 0, .generation = 1},
                       .namespaces = {row},
                       .frames = {{.page = 1, .pages = 2}, {.page = 3, .pages = 9}}};
  Bytes pages(footer_bytes(1, 2).value());
  expect(encode_footer(footer, pages).has_value());
  lay_over(input, pages);
  const auto trailer = std::span(pages).last(kPage);
  put_number(trailer, kBodyHashAt, xxh3_64(std::span(pages).first(pages.size() - kPage)));
  hash_page(trailer);
  check_footer(pages);
}

void try_input(std::span<const std::byte> input) {
  check_superblock(input);
  check_footer(input);
  std::array<std::byte, kPage> page{};
  std::ranges::copy(input.first(std::min(input.size(), page.size())), page.begin());
  check_header(page);
  if (input.size() >= 3) try_patched(input);
}

}  // namespace
}  // namespace cairn::storage

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  cairn::storage::try_input(std::as_bytes(std::span(data, size)));
  return 0;
}
