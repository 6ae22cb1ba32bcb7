// The table of configuration keys: the one place that names a key. The parser, the help, the
// documentation and conf/cairnd.toml are all made from it.
#pragma once

#include "base/units.h"
#include "server/config.h"

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>

namespace cairn::server {

enum class SettingKind : std::uint8_t {
  kDirectory,   // an absolute path
  kSocketPath,  // an absolute path of at most 107 bytes, or empty
  kLoopback,    // HOST:PORT of this machine alone, or empty
  kBytes,       // "512MiB", "1.5GiB" or a number of bytes
  kDuration,    // "50us", "2s"
  kInteger,
  kSwitch,  // true or false
  kChoice,  // one of a list
};

using SettingMember = std::variant<std::string Config::*,
                                   ByteCount Config::*,
                                   Nanoseconds Config::*,
                                   std::uint32_t Config::*,
                                   bool Config::*>;

struct Setting {
  std::string_view key;
  SettingKind kind = SettingKind::kSwitch;
  SettingMember member;
  std::string_view default_text;  // as it stands in TOML
  std::uint64_t min = 0;          // of kBytes, kDuration (ns) and kInteger, both ends included
  std::uint64_t max = 0;
  std::string_view choices;  // of kChoice: separated by '|'; of kBytes: a word that means 0
  std::string_view text;     // what it does, in full sentences
};

std::span<const Setting> settings() noexcept;
const Setting* find_setting(std::string_view key) noexcept;
// The key with the fewest changed, added or removed characters.
const Setting& nearest_setting(std::string_view key);
// True when `key` is a table that holds keys: "tiers" or "tiers.dram".
bool is_settings_table(std::string_view key) noexcept;

// "64MiB to 16TiB", "1 to 64", "true or false", ...
std::string range_text(const Setting& setting);
// "64MiB": the largest binary unit that divides it.
std::string exact_bytes_text(ByteCount bytes);

// A value as it came, before it is known to fit.
struct RawValue {
  // monostate: something that no key takes (`type` names it).
  std::variant<std::monostate, std::string, std::int64_t, bool> value;
  std::string type;         // "a string", "an integer", ... for people
  bool is_untyped = false;  // of --set: the text alone; each kind reads it as it would read TOML
};

// Puts `raw` into `config`; nullopt, or what is wrong with it.
std::optional<std::string> assign_setting(const Setting& setting,
                                          const RawValue& raw,
                                          Config& config);

// The reference of docs/operations.md: a table in Markdown.
std::string settings_markdown();
// conf/cairnd.toml: every key at its default, with its meaning, unit and range.
std::string settings_toml();

}  // namespace cairn::server
