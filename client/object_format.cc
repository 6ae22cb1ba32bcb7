#include "client/object_format.h"

#include "base/check.h"
#include "transport/wire/messages.h"

#include <openssl/sha.h>

#include <algorithm>
#include <string_view>

namespace cairn::client {
namespace {

constexpr std::size_t kValueBytes = 20;
constexpr std::size_t kAttributeHeadBytes = 4;

std::uint64_t load(std::span<const std::byte> bytes) noexcept {
  std::uint64_t value = 0;
  for (std::size_t i = bytes.size(); i-- > 0;)
    value = value << 8U | std::to_integer<std::uint64_t>(bytes[i]);
  return value;
}

void store(std::span<std::byte> bytes, std::uint64_t value) noexcept {
  for (std::byte& byte : bytes) {
    byte = static_cast<std::byte>(value);
    value >>= 8U;
  }
}

ObjectInfo decode_object(std::span<const std::byte> value) noexcept {
  if (value.size() != kValueBytes) return {};
  const ObjectInfo object{.length = load(value.first(8)),
                          .body = load(value.subspan(12, 8)),
                          .parts = static_cast<std::uint32_t>(load(value.subspan(8, 4)))};
  const bool is_whole = object.length > kPartBytes.value() && object.parts <= kPartsMax &&
                        divide_up(object.length, kPartBytes.value()) == object.parts;
  return is_whole ? object : ObjectInfo{};
}

}  // namespace

ObjectInfo make_object(std::uint64_t length, std::uint64_t body) noexcept {
  const std::uint64_t parts = divide_up(length, kPartBytes.value());
  CAIRN_CHECK(parts > 1 && parts <= kPartsMax);
  return {.length = length, .body = body, .parts = static_cast<std::uint32_t>(parts)};
}

std::array<std::byte, kObjectAttributeBytes> encode_object(const ObjectInfo& object) noexcept {
  std::array<std::byte, kObjectAttributeBytes> bytes{};
  const std::span<std::byte> all(bytes);
  store(all.subspan(0, 2), wire::kAttributeObject);
  store(all.subspan(2, 2), kValueBytes);
  store(all.subspan(4, 8), object.length);
  store(all.subspan(12, 4), object.parts);
  store(all.subspan(16, 8), object.body);
  return bytes;
}

ObjectInfo find_object(std::span<const std::byte> attributes) noexcept {
  while (attributes.size() >= kAttributeHeadBytes) {
    const std::uint64_t type = load(attributes.first(2));
    const std::uint64_t bytes = load(attributes.subspan(2, 2));
    attributes = attributes.subspan(kAttributeHeadBytes);
    if (bytes > attributes.size()) return {};
    if (type == wire::kAttributeObject) return decode_object(attributes.first(bytes));
    attributes = attributes.subspan(bytes);
  }
  return {};
}

PartRange part_range(const ObjectInfo& object, std::uint32_t part) noexcept {
  const std::uint64_t offset = part * kPartBytes.value();
  return {.offset = offset, .length = std::min(kPartBytes.value(), object.length - offset)};
}

BlockDigest part_digest(const BlockDigest& digest,
                        std::uint64_t body,
                        std::uint32_t part) noexcept {
  constexpr std::string_view kWord = "cairn.part";
  std::array<std::byte, kBlockDigestBytesMax + kWord.size() + 12> text{};
  const std::span<std::byte> all(text);
  std::size_t at = digest.size();
  std::ranges::copy(digest.bytes(), all.begin());
  std::ranges::copy(std::as_bytes(std::span(kWord)), all.subspan(at).begin());
  at += kWord.size();
  store(all.subspan(at, 8), body);
  store(all.subspan(at + 8, 4), part);
  at += 12;
  std::array<unsigned char, SHA256_DIGEST_LENGTH> hash{};
  SHA256(reinterpret_cast<const unsigned char*>(text.data()), at, hash.data());
  const auto cut = BlockDigest::from(std::as_bytes(std::span(hash)).first(digest.size()));
  CAIRN_CHECK(cut.has_value());
  return *cut;
}

}  // namespace cairn::client
