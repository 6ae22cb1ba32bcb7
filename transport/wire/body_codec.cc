#include "transport/wire/body_codec.h"

#include <algorithm>
#include <cstring>

namespace cairn::wire {
namespace {

// A copy of a length known to the compiler is one or two moves; the others are rare.
template <std::size_t kWidth>
void copy_digests(std::span<const BlockDigest> from, std::span<std::byte> to) noexcept {
  std::byte* at = to.data();
  for (const BlockDigest& digest : from) {
    std::memcpy(at, digest.padded().data(), kWidth);
    at += kWidth;
  }
}

void copy_digests(std::span<const BlockDigest> from, std::span<std::byte> to, std::size_t width) {
  if (width == 32) return copy_digests<32>(from, to);
  if (width == 16) return copy_digests<16>(from, to);
  for (std::size_t i = 0; i < from.size(); ++i) {
    std::memcpy(to.data() + i * width, from[i].padded().data(), width);
  }
}

}  // namespace

void BodyEncoder::zeros(std::size_t count) {
  std::ranges::fill(frame_.append(count), std::byte{0});
}

void BodyEncoder::put_string(std::string_view text) {
  frame_.u32(static_cast<std::uint32_t>(text.size()));
  frame_.bytes(std::as_bytes(std::span(text)));
}

void BodyEncoder::text(const std::string& text) {
  put_string(cut_text(text, kTextBytesMax));
}

void BodyEncoder::digests(const std::vector<BlockDigest>& digests, std::size_t count) {
  require(digests.size() == count, "arrays of one length");
  const std::size_t width = digests.empty() ? 0 : digests.front().size();
  for (const BlockDigest& digest : digests) {
    require(digest.size() == width && width > 0, "digests of one length");
  }
  frame_.u8(static_cast<std::uint8_t>(width));
  zeros(3);
  copy_digests(digests, frame_.append(count * width), width);
}

void BodyEncoder::digest(const BlockDigest& digest) {
  require(digest.size() > 0, "digest");
  frame_.u8(static_cast<std::uint8_t>(digest.size()));
  frame_.bytes(digest.bytes());
}

void BodyEncoder::digest(const std::optional<BlockDigest>& digest) {
  if (digest) {
    this->digest(*digest);
  } else {
    frame_.u8(0);
  }
}

BodyDecoder::BodyDecoder(const FrameView& frame, MessageType type) noexcept
    : rest_(frame.body) {
  require(frame.type == type, "message type");
}

Status BodyDecoder::finish() const noexcept {
  if (is_failed_) return error_;
  if (!rest_.empty()) return Error{ErrorCode::kCorrupt, 0, "body too long"};
  return {};
}

void BodyDecoder::fail(Error error) noexcept {
  if (is_failed_) return;
  is_failed_ = true;
  error_ = error;
  rest_ = {};
}

void BodyDecoder::flag(bool& value) noexcept {
  std::uint8_t byte = 0;
  number(byte);
  require(byte <= 1, "boolean");
  value = byte == 1;
}

void BodyDecoder::zeros(std::size_t count) noexcept {
  const auto bytes = take(count);
  require(std::ranges::all_of(bytes, [](std::byte byte) { return byte == std::byte{0}; }),
          "reserved bytes");
}

std::size_t BodyDecoder::count(std::size_t /*size*/, std::uint32_t max, const char* what) noexcept {
  std::uint32_t count = 0;
  number(count);
  if (count > max) fail({ErrorCode::kTooLarge, 0, what});
  return is_failed_ ? 0 : count;
}

void BodyDecoder::string(std::string& text, std::size_t max, const char* what) noexcept {
  const std::size_t size = count(0, static_cast<std::uint32_t>(max), what);
  const auto bytes = take(size);
  text.resize(bytes.size());
  if (!bytes.empty()) std::memcpy(text.data(), bytes.data(), bytes.size());
}

void BodyDecoder::digests(std::vector<BlockDigest>& digests, std::size_t count) noexcept {
  std::uint8_t width = 0;
  number(width);
  zeros(3);
  require(width <= kBlockDigestBytesMax && (width > 0) == (count > 0), "digest length");
  resize(digests, count, std::max<std::size_t>(width, 1));
  const auto from = take(digests.size() * width);
  for (std::size_t i = 0; i < digests.size(); ++i) {
    digests[i] = *BlockDigest::from(from.subspan(i * width, width));
  }
}

void BodyDecoder::digest(BlockDigest& digest) noexcept {
  std::optional<BlockDigest> read;
  this->digest(read);
  require(read.has_value(), "digest length");
  digest = read.value_or(BlockDigest{});
}

void BodyDecoder::digest(std::optional<BlockDigest>& digest) noexcept {
  std::uint8_t width = 0;
  number(width);
  require(width <= kBlockDigestBytesMax, "digest length");
  digest = BlockDigest::from(take(is_failed_ ? 0 : width));
}

std::string_view cut_text(std::string_view text, std::size_t max) noexcept {
  if (text.size() <= max) return text;
  std::size_t end = max;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0U) == 0x80U)
    --end;
  return text.substr(0, end);
}

}  // namespace cairn::wire
