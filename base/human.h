// Sizes and durations as people write them.
#pragma once

#include "base/clock.h"
#include "base/units.h"

#include <optional>
#include <string>
#include <string_view>

namespace cairn {

// "4096", "64KiB", "1.5 GiB", "10GB" (GB = 10^9). Case of the unit does not matter. nullopt for
// anything else, for a negative number and for more than 2^63 bytes.
std::optional<ByteCount> parse_bytes(std::string_view text) noexcept;
// "500ms", "2s", "5m", "1h", "7d". nullopt for anything else.
std::optional<Milliseconds> parse_duration(std::string_view text) noexcept;
// "64 KiB", "1.5 GiB": three significant digits, binary units.
std::string format_bytes(ByteCount bytes);

}  // namespace cairn
