#include "server/config.h"

#include "server/settings.h"
#include "transport/channel.h"

#include <toml++/toml.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <exception>
#include <memory>
#include <system_error>
#include <utility>

namespace cairn::server {
namespace {

constexpr std::size_t kShownBytesMax = 100;
constexpr std::string_view kOverridePlace = "--set";
constexpr ByteCount kPoolReserve = 64_MiB;
constexpr ByteCount kTwoBatches = (4_MiB + kHeaderBytes) * 128;

struct FileCloser {
  void operator()(std::FILE* file) const { std::fclose(file); }
};

// Text of a file for people: quoted, cut, without control characters.
std::string shown_text(std::string_view text) {
  std::string out;
  for (const char c : text.substr(0, kShownBytesMax)) {
    out += static_cast<unsigned char>(c) < 0x20U || c == 0x7F ? '?' : c;
  }
  return text.size() > kShownBytesMax ? out + "..." : out;
}

std::string shown(const RawValue& raw) {
  if (const auto* text = std::get_if<std::string>(&raw.value)) {
    return raw.is_untyped ? shown_text(*text) : "\"" + shown_text(*text) + "\"";
  }
  if (const auto* number = std::get_if<std::int64_t>(&raw.value)) return std::to_string(*number);
  if (const bool* value = std::get_if<bool>(&raw.value)) return *value ? "true" : "false";
  return "(" + raw.type + ")";
}

std::string allowed(const Setting& setting) {
  return "(allowed: " + range_text(setting) + "; default: " + std::string(setting.default_text) +
         ")";
}

RawValue raw_value(const toml::node& node) {
  if (const auto* text = node.as_string()) return {text->get(), "a string", false};
  if (const auto* number = node.as_integer()) return {number->get(), "an integer", false};
  if (const auto* value = node.as_boolean()) return {value->get(), "a boolean", false};
  if (node.is_table()) return {std::monostate(), "a table", false};
  if (node.is_array()) return {std::monostate(), "an array", false};
  if (node.is_floating_point()) return {std::monostate(), "a number with a fraction", false};
  return {std::monostate(), "a date or time", false};
}

// Collects what is wrong, in the order of the file.
class Loader {
 public:
  explicit Loader(ConfigOutcome& outcome)
      : outcome_(outcome) {}

  void read_file(const std::string& path) {
    const std::optional<std::string> text = contents(path);
    if (!text) return;
    const std::string_view name = path;
    try {
      const toml::table root = toml::parse(*text, name);
      file_ = path;
      walk(root);
    } catch (const toml::parse_error& failure) {
      add(path + ":" + std::to_string(failure.source().begin.line),
          "not TOML: " + std::string(failure.description()));
    }
  }

  void apply_override(const std::string& text) {
    const std::size_t equals = text.find('=');
    if (equals == std::string::npos || equals == 0) {
      add(kOverridePlace, shown_text(text) + ": not key=value");
      return;
    }
    apply(kOverridePlace, text.substr(0, equals), {text.substr(equals + 1), "", true});
  }

  void check_together() {
    const Config& config = outcome_.config;
    if (config.listen_unix.empty() && config.listen_tcp.empty()) {
      complain("listen.unix", "", "no address to listen on: listen.tcp is empty too");
    }
    if (has_same_port(config.listen_tcp, config.admin_listen)) {
      complain("admin.listen", config.admin_listen, "the same address as listen.tcp");
    }
    if (config.data_dir == config.pool_dir) {
      complain("pool.dir", config.pool_dir, "the same directory as data_dir");
    }
    const ByteCount limit = lent_max_limit(config.dram_size);
    if (config.lent_max > limit) {
      complain("clients.lent_max",
               exact_bytes_text(config.lent_max),
               "a pool of " + exact_bytes_text(config.dram_size) + " (tiers.dram.size, " +
                   outcome_.origin("tiers.dram.size") + ") can lend " + exact_bytes_text(limit) +
                   " at most");
    }
  }

 private:
  void add(std::string_view place, const std::string& what) {
    outcome_.errors.push_back(std::string(place) + ": " + what);
  }

  void complain(std::string_view key, const std::string& value, const std::string& what) {
    add(outcome_.origin(key), std::string(key) + " = " + shown_text(value) + ": " + what);
  }

  std::optional<std::string> contents(const std::string& path) {
    const std::unique_ptr<std::FILE, FileCloser> file(std::fopen(path.c_str(), "re"));
    std::string text(kConfigFileBytesMax.value() + 1, '\0');
    std::size_t size = 0;
    if (file != nullptr) size = std::fread(text.data(), 1, text.size(), file.get());
    if (file == nullptr || std::ferror(file.get()) != 0) {
      add(path, "cannot be read: " + std::generic_category().message(errno));
      return std::nullopt;
    }
    if (size > kConfigFileBytesMax.value()) {
      add(path, "longer than " + exact_bytes_text(kConfigFileBytesMax));
      return std::nullopt;
    }
    text.resize(size);
    return text;
  }

  void walk(const toml::table& root) {
    std::vector<std::pair<std::string, const toml::table*>> open = {{"", &root}};
    while (!open.empty()) {
      const auto [prefix, table] = open.back();
      open.pop_back();
      for (const auto& [name, node] : *table) {
        const std::string key = prefix + std::string(name.str());
        if (node.is_table() && is_settings_table(key)) {
          open.emplace_back(key + ".", node.as_table());
          continue;
        }
        if (node.is_table() && !node.as_table()->empty() && find_setting(key) == nullptr) {
          open.emplace_back(key + ".", node.as_table());
          continue;
        }
        places_.emplace_back(name.source().begin.line, key, raw_value(node));
      }
    }
    std::stable_sort(places_.begin(), places_.end(), [](const Place& a, const Place& b) {
      return a.line < b.line;
    });
    for (const Place& place : places_) {
      apply(file_ + ":" + std::to_string(place.line), place.key, place.raw);
    }
  }

  void apply(std::string_view place, const std::string& key, const RawValue& raw) {
    const Setting* setting = find_setting(key);
    if (setting == nullptr) {
      if (is_settings_table(key)) {
        add(place, shown_text(key) + ": holds other keys and takes no value");
        return;
      }
      const Setting& nearest = nearest_setting(key);
      add(place,
          shown_text(key) + ": no such key; the nearest is " + std::string(nearest.key) + " " +
              allowed(nearest));
      return;
    }
    outcome_.origins[key] = place;
    if (const auto problem = assign_setting(*setting, raw, outcome_.config)) {
      add(place, key + " = " + shown(raw) + ": " + *problem + " " + allowed(*setting));
    }
  }

  static bool has_same_port(const std::string& a, const std::string& b) {
    const Result<transport::Address> one = transport::Address::parse(a);
    const Result<transport::Address> two = transport::Address::parse(b);
    return one && two && one->port != 0 && one->port == two->port && one->host == two->host;
  }

  struct Place {
    Place(std::uint32_t line_number, std::string full_key, RawValue value)
        : line(line_number),
          key(std::move(full_key)),
          raw(std::move(value)) {}
    std::uint32_t line;
    std::string key;
    RawValue raw;
  };

  ConfigOutcome& outcome_;
  std::string file_;
  std::vector<Place> places_;
};

}  // namespace

ByteCount lent_max_limit(ByteCount pool) noexcept {
  const ByteCount half(pool.value() / 2);
  return pool > kPoolReserve ? std::max(pool - kPoolReserve, half) : half;
}

ByteCount lent_max_for(ByteCount pool) noexcept {
  const ByteCount quarter(pool.value() / 4);
  return std::min(std::max(quarter, kTwoBatches), lent_max_limit(pool));
}

std::string ConfigOutcome::origin(std::string_view key) const {
  const auto found = origins.find(key);
  return found == origins.end() ? "default" : found->second;
}

ConfigOutcome load_config(const ConfigSources& sources) noexcept {
  ConfigOutcome outcome;
  try {
    outcome.config = default_config();
    Loader loader(outcome);
    if (sources.file) loader.read_file(*sources.file);
    for (const std::string& text : sources.overrides)
      loader.apply_override(text);
    if (outcome.errors.empty()) loader.check_together();
  } catch (const std::exception& failure) {
    outcome.errors.push_back(std::string("configuration: ") + failure.what());
  }
  return outcome;
}

}  // namespace cairn::server
