#include "base/human.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <span>

namespace cairn {
namespace {

struct Unit {
  std::string_view name;
  double factor;
};

constexpr std::array<Unit, 10> kByteUnits = {{{"", 1.0},
                                              {"b", 1.0},
                                              {"kib", 0x1p10},
                                              {"mib", 0x1p20},
                                              {"gib", 0x1p30},
                                              {"tib", 0x1p40},
                                              {"kb", 1e3},
                                              {"mb", 1e6},
                                              {"gb", 1e9},
                                              {"tb", 1e12}}};

constexpr std::array<Unit, 5> kTimeUnits = {
    {{"ms", 1.0}, {"s", 1e3}, {"m", 6e4}, {"h", 3.6e6}, {"d", 8.64e7}}};

// The number times the unit's factor, rounded down; nullopt if the text is not "<number> <unit>".
std::optional<std::uint64_t> parse_quantity(std::string_view text,
                                            std::span<const Unit> units) noexcept {
  double number = 0;
  const char* const end = text.data() + text.size();
  const auto [rest, failure] = std::from_chars(text.data(), end, number, std::chars_format::fixed);
  if (failure != std::errc() || number < 0 || !std::isfinite(number)) return std::nullopt;
  std::array<char, 8> buffer{};
  std::size_t used = 0;
  for (const char* p = rest; p != end; ++p) {
    if (*p == ' ' && used == 0) continue;
    if (used == buffer.size()) return std::nullopt;
    buffer[used++] = static_cast<char>(std::tolower(static_cast<unsigned char>(*p)));
  }
  const std::string_view name(buffer.data(), used);
  const auto unit =
      std::find_if(units.begin(), units.end(), [&](const Unit& u) { return u.name == name; });
  if (unit == units.end()) return std::nullopt;
  const double value = number * unit->factor;
  if (value >= 0x1p63) return std::nullopt;
  return static_cast<std::uint64_t>(value);
}

}  // namespace

std::optional<ByteCount> parse_bytes(std::string_view text) noexcept {
  const auto value = parse_quantity(text, kByteUnits);
  if (!value) return std::nullopt;
  return ByteCount(*value);
}

std::optional<Milliseconds> parse_duration(std::string_view text) noexcept {
  const auto value = parse_quantity(text, kTimeUnits);
  if (!value) return std::nullopt;
  return Milliseconds(static_cast<std::int64_t>(*value));
}

std::string format_bytes(ByteCount bytes) {
  constexpr std::array<const char*, 5> kNames = {"B", "KiB", "MiB", "GiB", "TiB"};
  double value = static_cast<double>(bytes.value());
  std::size_t unit = 0;
  while (value >= 1024.0 && unit + 1 < kNames.size()) {
    value /= 1024.0;
    ++unit;
  }
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.4g %s", value, kNames[unit]);
  return text.data();
}

}  // namespace cairn
