// How a body is written and read. Internal to transport/wire.
//
// A message has one function, layout(io, message), that names its fields in their order on the
// wire. BodyEncoder runs it to write a const message, BodyDecoder to read one, so the two cannot
// differ. A rule stated there with require() or count() is a CAIRN_CHECK when writing and an error
// when reading. After its first error a decoder reads zeros and empty arrays to the end.
#pragma once

#include "base/block_key.h"
#include "base/check.h"
#include "base/result.h"
#include "transport/wire/context.h"
#include "transport/wire/frame.h"
#include "transport/wire/little_endian.h"

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace cairn::wire {

// `M` is T when decoding and const T when encoding.
template <typename M, typename T>
concept Is = std::same_as<std::remove_const_t<M>, T>;

// Arrays of these lie on the wire as in memory: without padding or pointers.
template <typename T>
concept Plain = std::is_trivially_copyable_v<T> && std::has_unique_object_representations_v<T>;

inline bool is_known_status(BlockStatus status) noexcept {
  return static_cast<std::uint8_t>(status) < kBlockStatusCount;
}
inline bool is_known_reason(BusyReason reason) noexcept {
  return static_cast<std::uint8_t>(reason) < kBusyReasonCount;
}

// At most `max` bytes of `text`, cut between two UTF-8 characters.
std::string_view cut_text(std::string_view text, std::size_t max) noexcept;

class BodyEncoder {
 public:
  explicit BodyEncoder(FrameWriter& frame)
      : frame_(frame) {}

  void require(bool holds, const char* what) const noexcept {
    if (!holds) [[unlikely]]
      check_failed(what, __FILE__, __LINE__);
  }
  template <std::integral T>
  void number(T value) {
    store(frame_.append(sizeof(T)), value);
  }
  void flag(bool value) { frame_.u8(value ? 1 : 0); }
  // An enumeration of a byte, from 0 to `last` without gaps.
  template <typename Enum>
  void choice(Enum value, Enum last) {
    require(value <= last, "enumeration");
    frame_.u8(static_cast<std::uint8_t>(value));
  }
  void zeros(std::size_t count);
  template <std::size_t kBytes>
  void raw(const std::array<std::byte, kBytes>& bytes) {
    frame_.bytes(bytes);
  }
  // A u32 of how many elements follow further on; the number.
  std::size_t count(std::size_t size, std::uint32_t max, const char* what) {
    require(size <= max, what);
    frame_.u32(static_cast<std::uint32_t>(size));
    return size;
  }
  // The elements themselves, `count` of them.
  template <Plain T>
  void array(const std::vector<T>& values, std::size_t count) {
    require(values.size() == count, "arrays of one length");
    frame_.bytes(std::as_bytes(std::span(values)));
  }
  // As array(), or `count` zero elements for none.
  template <Plain T>
  void array_or_zeros(const std::vector<T>& values, std::size_t count) {
    if (!values.empty()) return array(values, count);
    zeros(count * sizeof(T));
  }
  // Elements that may not be there.
  template <typename T>
  void none(const std::vector<T>& values) const {
    require(values.empty(), "array that must be empty");
  }
  // Before elements that are written one by one, each of at least `bytes_min`.
  template <typename T>
  void resize(const std::vector<T>& values, std::size_t count, std::size_t /*bytes_min*/) const {
    require(values.size() == count, "arrays of one length");
  }
  void view(std::span<const std::byte> bytes, std::size_t /*count*/) { frame_.bytes(bytes); }
  void string(const std::string& text, std::size_t max, const char* what) {
    require(text.size() <= max, what);
    put_string(text);
  }
  // For people: cut to kTextBytesMax.
  void text(const std::string& text);
  // Their length u8 and three zeros, then `count` digests of that length; length 0 for none.
  void digests(const std::vector<BlockDigest>& digests, std::size_t count);
  // Its length u8, then its bytes.
  void digest(const BlockDigest& digest);
  // Length 0 for none.
  void digest(const std::optional<BlockDigest>& digest);
  template <typename T>
  bool present(const std::optional<T>& value) {
    flag(value.has_value());
    return value.has_value();
  }

 private:
  void put_string(std::string_view text);

  FrameWriter& frame_;
};

class BodyDecoder {
 public:
  // Fails with kCorrupt when the frame is of another type.
  BodyDecoder(const FrameView& frame, MessageType type) noexcept;

  // The first error; kCorrupt when bytes are left over.
  Status finish() const noexcept;

  void require(bool holds, const char* what) noexcept {
    if (!holds) [[unlikely]]
      fail({ErrorCode::kCorrupt, 0, what});
  }
  template <std::integral T>
  void number(T& value) noexcept {
    const auto bytes = take(sizeof(T));
    value = bytes.empty() ? T{} : load<T>(bytes);
  }
  void flag(bool& value) noexcept;
  template <typename Enum>
  void choice(Enum& value, Enum last) noexcept {
    std::uint8_t byte = 0;
    number(byte);
    require(byte <= static_cast<std::uint8_t>(last), "enumeration");
    value = byte <= static_cast<std::uint8_t>(last) ? static_cast<Enum>(byte) : last;
  }
  void zeros(std::size_t count) noexcept;
  template <std::size_t kBytes>
  void raw(std::array<std::byte, kBytes>& bytes) noexcept {
    const auto from = take(kBytes);
    if (!from.empty()) std::memcpy(bytes.data(), from.data(), kBytes);
  }
  // Fails with kTooLarge beyond `max`. `size` is the encoder's concern.
  std::size_t count(std::size_t size, std::uint32_t max, const char* what) noexcept;
  template <Plain T>
  void array(std::vector<T>& values, std::size_t count) noexcept {
    resize(values, count, sizeof(T));
    const auto from = take(values.size() * sizeof(T));
    if (!from.empty()) std::memcpy(values.data(), from.data(), from.size());
  }
  template <Plain T>
  void array_or_zeros(std::vector<T>& values, std::size_t count) noexcept {
    array(values, count);
  }
  template <typename T>
  void none(std::vector<T>& values) const noexcept {
    values.clear();
  }
  template <typename T>
  void resize(std::vector<T>& values, std::size_t count, std::size_t bytes_min) noexcept {
    require(count <= rest_.size() / bytes_min, "body too short");
    values.resize(is_failed_ ? 0 : count);
  }
  void view(std::span<const std::byte>& bytes, std::size_t count) noexcept { bytes = take(count); }
  void string(std::string& text, std::size_t max, const char* what) noexcept;
  void text(std::string& text) noexcept { string(text, kTextBytesMax, "text"); }
  void digests(std::vector<BlockDigest>& digests, std::size_t count) noexcept;
  void digest(BlockDigest& digest) noexcept;
  void digest(std::optional<BlockDigest>& digest) noexcept;
  // Keeps a value that is there already, so that its vectors are reused.
  template <typename T>
  bool present(std::optional<T>& value) noexcept {
    bool is_present = false;
    flag(is_present);
    if (!is_present) value.reset();
    if (is_present && !value) value.emplace();
    return is_present;
  }
  void fail(Error error) noexcept;

 private:
  // The next `count` bytes; empty, with an error, when there are fewer.
  std::span<const std::byte> take(std::size_t count) noexcept {
    if (count > rest_.size()) [[unlikely]] {
      fail({ErrorCode::kCorrupt, 0, "body too short"});
      return {};
    }
    const auto bytes = rest_.first(count);
    rest_ = rest_.subspan(count);
    return bytes;
  }

  std::span<const std::byte> rest_;
  bool is_failed_ = false;
  Error error_;
};

// 40 bytes.
template <typename Io, Is<RequestContext> M>
void layout(Io& io, M& m) {
  io.raw(m.name_space.bytes);
  io.number(m.epoch);
  io.number(m.trace_id);
  io.number(m.remaining_ms);
  io.choice(m.priority, Priority::kStore);
  io.zeros(3);
}

// 4 bytes.
template <typename Io, Is<ReplyContext> M>
void layout(Io& io, M& m) {
  io.choice(m.status, static_cast<BlockStatus>(kBlockStatusCount - 1));
  io.choice(m.reason, static_cast<BusyReason>(kBusyReasonCount - 1));
  io.zeros(2);
}

// NOLINTBEGIN(bugprone-macro-parentheses): `Message` stands in declarations.
// encode() and decode() of `Message` by its layout(), in the file that defines it.
#define CAIRN_WIRE_CODEC(Message, type)                                               \
  void encode(const Message& message, std::uint64_t request_id, FrameWriter& frame) { \
    frame.begin(type, request_id);                                                    \
    BodyEncoder io(frame);                                                            \
    layout(io, message);                                                              \
  }                                                                                   \
  Status decode(const FrameView& frame, Message& out) noexcept {                      \
    BodyDecoder io(frame, type);                                                      \
    layout(io, out);                                                                  \
    return io.finish();                                                               \
  }                                                                                   \
  static_assert(true, "a semicolon follows")
// NOLINTEND(bugprone-macro-parentheses)

}  // namespace cairn::wire
