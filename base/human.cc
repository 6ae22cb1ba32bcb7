#include "base/human.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdio>
#include <span>

namespace cairn {
namespace {

// More fraction digits than this would not change a byte of a tebibyte.
constexpr std::size_t kFractionDigitsMax = 18;
constexpr std::size_t kUnitNameMax = 8;
constexpr std::uint64_t kMsNs = 1'000'000;
constexpr std::uint64_t kSecondNs = 1'000 * kMsNs;
constexpr std::uint64_t kHourNs = 3'600 * kSecondNs;

__extension__ using Wide = unsigned __int128;

struct Unit {
  std::string_view name;
  std::uint64_t factor;
};

constexpr std::array<Unit, 10> kByteUnits = {{{"", 1},
                                              {"b", 1},
                                              {"kib", 1ULL << 10U},
                                              {"mib", 1ULL << 20U},
                                              {"gib", 1ULL << 30U},
                                              {"tib", 1ULL << 40U},
                                              {"kb", 1'000},
                                              {"mb", 1'000'000},
                                              {"gb", 1'000'000'000},
                                              {"tb", 1'000'000'000'000}}};

constexpr std::array<Unit, 6> kTimeUnits = {{{"us", 1'000},
                                             {"ms", kMsNs},
                                             {"s", kSecondNs},
                                             {"m", 60 * kSecondNs},
                                             {"h", kHourNs},
                                             {"d", 24 * kHourNs}}};

// A decimal number as whole + fraction / scale, so that "1.005s" is 1005 ms and no double is near.
struct Decimal {
  std::uint64_t whole = 0;
  std::uint64_t fraction = 0;
  std::uint64_t scale = 1;
};

bool is_digit(char c) noexcept {
  return c >= '0' && c <= '9';
}

// Takes the digits at the front of `text`, with a '.' and more digits if they follow.
std::optional<Decimal> take_decimal(std::string_view& text) noexcept {
  Decimal number;
  const auto [rest, failure] =
      std::from_chars(text.data(), text.data() + text.size(), number.whole, 10);
  if (failure != std::errc()) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(rest - text.data()));
  if (text.empty() || text.front() != '.') return number;
  text.remove_prefix(1);
  std::size_t digits = 0;
  for (; digits < text.size() && is_digit(text[digits]); ++digits) {
    if (digits == kFractionDigitsMax) return std::nullopt;
    number.fraction = number.fraction * 10 + static_cast<std::uint64_t>(text[digits] - '0');
    number.scale *= 10;
  }
  if (digits == 0) return std::nullopt;
  text.remove_prefix(digits);
  return number;
}

// The unit that is all of `text` but for one space before it.
std::optional<Unit> unit_named(std::string_view text, std::span<const Unit> units) noexcept {
  if (text.starts_with(' ')) {
    text.remove_prefix(1);
    if (text.empty()) return std::nullopt;
  }
  if (text.size() > kUnitNameMax) return std::nullopt;
  std::array<char, kUnitNameMax> lower{};
  std::transform(text.begin(), text.end(), lower.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  });
  const std::string_view name(lower.data(), text.size());
  const auto unit =
      std::find_if(units.begin(), units.end(), [&](const Unit& u) { return u.name == name; });
  if (unit == units.end()) return std::nullopt;
  return *unit;
}

// The number times the unit's factor, rounded down; nullopt if the text is not "<number> <unit>" or
// if it is more than `max`.
std::optional<std::uint64_t> parse_quantity(std::string_view text,
                                            std::span<const Unit> units,
                                            std::uint64_t max) noexcept {
  const auto number = take_decimal(text);
  if (!number) return std::nullopt;
  const auto unit = unit_named(text, units);
  if (!unit) return std::nullopt;
  const Wide value =
      Wide{number->whole} * unit->factor + Wide{number->fraction} * unit->factor / number->scale;
  if (value > max) return std::nullopt;
  return static_cast<std::uint64_t>(value);
}

}  // namespace

std::optional<ByteCount> parse_bytes(std::string_view text) noexcept {
  const auto value = parse_quantity(text, kByteUnits, kParsedBytesMax.value());
  if (!value) return std::nullopt;
  return ByteCount(*value);
}

std::optional<Nanoseconds> parse_duration(std::string_view text) noexcept {
  const auto value =
      parse_quantity(text, kTimeUnits, static_cast<std::uint64_t>(kParsedDurationMax.count()));
  if (!value) return std::nullopt;
  return Nanoseconds(static_cast<std::int64_t>(*value));
}

std::string format_bytes(ByteCount bytes) {
  constexpr std::array<const char*, 7> kNames = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
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

std::string format_duration(Nanoseconds duration) {
  const std::int64_t count = duration.count();
  Unit unit{"ns", 1};
  for (const Unit& larger : kTimeUnits) {
    if (count != 0 && count % static_cast<std::int64_t>(larger.factor) == 0) unit = larger;
  }
  return std::to_string(count / static_cast<std::int64_t>(unit.factor)) + std::string(unit.name);
}

}  // namespace cairn
