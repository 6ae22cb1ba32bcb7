// Failures as values. A function that can fail returns Result<T>, or Status where there is nothing
// to return; its comment lists the codes it can give. Error holds no heap memory, so failing is as
// cheap as succeeding and an error can be copied across threads.
#pragma once

#include <tl/expected.hpp>

#include <cstdint>
#include <type_traits>
#include <utility>

namespace cairn {

// Why a call inside the process failed. Never leaves the process: what a client is told about a key
// is a BlockStatus (base/block_status.h).
enum class ErrorCode : std::uint8_t {
  kInvalid,      // the arguments, the configuration or the input break a stated rule
  kNotFound,     // there is nothing under that name
  kExists,       // something already is under that name
  kBusy,         // a bounded thing is full; nothing changed, trying later is right
  kTooLarge,     // beyond a stated limit
  kCorrupt,      // bytes that fail their own proof (checksum, magic, impossible field)
  kVersion,      // a format or protocol version this build does not speak
  kPeerGone,     // the other end of a channel has closed or broken it
  kTimeout,      // the deadline passed
  kPermission,   // the system or the other side refused
  kLocked,       // another process owns it
  kUnsupported,  // this machine or build lacks it
  kNoSpace,      // memory, disk or a budget does not hold it
  kIo,           // the operating system failed; `sys` says how
};

const char* error_code_name(ErrorCode code) noexcept;

// `sys` is an errno (0 if none), `what` a literal naming the call or field that failed.
struct Error {
  ErrorCode code = ErrorCode::kInvalid;
  std::int32_t sys = 0;
  const char* what = "";

  friend bool operator==(const Error& left, const Error& right) noexcept {
    return left.code == right.code && left.sys == right.sys;
  }
};

// A value or an Error. The names are std::expected's, so that it can replace this one day.
template <typename T>
class [[nodiscard]] Result {
 public:
  // Both are implicit so that `return value;` and `return Error{...};` read alike.
  template <typename U = T>
  requires(std::is_constructible_v<T, U&&> && !std::is_same_v<std::remove_cvref_t<U>, Result> &&
           !std::is_same_v<std::remove_cvref_t<U>, Error>)
      // NOLINTNEXTLINE(google-explicit-constructor,bugprone-forwarding-reference-overload)
      Result(U&& value)
      : state_(std::forward<U>(value)) {}
  // NOLINTNEXTLINE(google-explicit-constructor)
  Result(Error error)
      : state_(tl::unexpect, error) {}

  bool has_value() const noexcept { return state_.has_value(); }
  explicit operator bool() const noexcept { return has_value(); }
  T& value() & noexcept { return *state_; }
  const T& value() const& noexcept { return *state_; }
  T&& value() && noexcept { return *std::move(state_); }
  const Error& error() const noexcept { return state_.error(); }
  T& operator*() & noexcept { return *state_; }
  const T& operator*() const& noexcept { return *state_; }
  T&& operator*() && noexcept { return *std::move(state_); }
  T* operator->() noexcept { return &*state_; }
  const T* operator->() const noexcept { return &*state_; }

 private:
  tl::expected<T, Error> state_;
};

template <>
class [[nodiscard]] Result<void> {
 public:
  Result() = default;
  // NOLINTNEXTLINE(google-explicit-constructor)
  Result(Error error)
      : state_(tl::unexpect, error) {}

  bool has_value() const noexcept { return state_.has_value(); }
  explicit operator bool() const noexcept { return has_value(); }
  const Error& error() const noexcept { return state_.error(); }

 private:
  tl::expected<void, Error> state_;
};

using Status = Result<void>;

}  // namespace cairn

// NOLINTBEGIN(bugprone-macro-parentheses): `target` is a declaration, which parentheses would
// break.
#define CAIRN_TRY_CONCAT_INNER(a, b) a##b
#define CAIRN_TRY_CONCAT(a, b) CAIRN_TRY_CONCAT_INNER(a, b)
#define CAIRN_TRY_VALUE(name, target, ...)    \
  auto name = (__VA_ARGS__);                  \
  if (!name.has_value()) return name.error(); \
  target = std::move(name).value()
// CAIRN_TRY(auto ring, Ring::open(depth)): declares `ring`, or returns the error from this
// function.
#define CAIRN_TRY(target, ...) \
  CAIRN_TRY_VALUE(CAIRN_TRY_CONCAT(try_, __LINE__), target, __VA_ARGS__)
// CAIRN_TRY_STATUS(file.sync()): goes on, or returns the error from this function.
#define CAIRN_TRY_STATUS(...)                                                                \
  do {                                                                                       \
    if (auto try_status = (__VA_ARGS__); !try_status.has_value()) return try_status.error(); \
  } while (false)
// NOLINTEND(bugprone-macro-parentheses)
