// Sizes and durations as people write them.
#pragma once

#include "base/clock.h"
#include "base/units.h"

#include <optional>
#include <string>
#include <string_view>

namespace cairn {

inline constexpr ByteCount kParsedBytesMax = ByteCount(std::uint64_t{1} << 63U);
// A hundred years: in nanoseconds it still fits beside any monotonic time.
inline constexpr Nanoseconds kParsedDurationMax = std::chrono::hours(24 * 36'500);

// "4096", "64KiB", "1.5 GiB", "10GB" (GB = 10^9). Case of the unit does not matter. nullopt for
// anything else, for a negative number and for more than kParsedBytesMax. Fractions of a byte are
// dropped.
std::optional<ByteCount> parse_bytes(std::string_view text) noexcept;
// "50us", "500ms", "2s", "5m", "1h", "7d". nullopt for anything else, for a negative number
// and for more than kParsedDurationMax. Fractions of a nanosecond are dropped.
std::optional<Nanoseconds> parse_duration(std::string_view text) noexcept;
// "64 KiB", "1.5 GiB": four significant digits at most, binary units.
std::string format_bytes(ByteCount bytes);
// "50us", "500ms", "2s", "1h": the largest unit of which it is a whole number; "7ns" if none. Read
// back by parse_duration(), but for nanoseconds.
std::string format_duration(Nanoseconds duration);

}  // namespace cairn
