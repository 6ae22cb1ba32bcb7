// The one form of a JSON object that RFC 8785 (JSON Canonicalization Scheme) gives, restricted to
// what a namespace may hold, so that every writer of the same facts gets the same digest.
#pragma once

#include "base/result.h"
#include "base/units.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace cairn::server {

inline constexpr ByteCount kFingerprintBytesMax = 64_KiB;
inline constexpr std::size_t kFingerprintDepthMax = 32;  // objects and arrays, the outermost is 1
// Integers that every JSON library keeps exact; a larger one is written as a string.
inline constexpr std::uint64_t kFingerprintIntegerMax = (std::uint64_t{1} << 53U) - 1;

// `text` is an object whose leaves are strings and integers; fields that are null are left out.
// Refused: numbers with a fraction or exponent, integers beyond kFingerprintIntegerMax, booleans,
// null in an array, a key twice in one object, more than kFingerprintDepthMax levels, more than
// kFingerprintBytesMax bytes, anything that is not JSON in UTF-8. Errors: kInvalid; `message` then
// says what is wrong and where ("fingerprint.model.layers[3]: ..."). Any thread.
Result<std::string> canonical_json(std::string_view text, std::string& message) noexcept;

}  // namespace cairn::server
