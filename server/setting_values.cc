// How a value of each kind is read. Every function answers nullopt, or what is wrong.
#include "base/human.h"
#include "server/settings.h"
#include "transport/channel.h"

#include <charconv>

namespace cairn::server {
namespace {

constexpr std::size_t kPathBytesMax = 3'000;  // room for names below it in PATH_MAX
constexpr std::size_t kSocketPathBytesMax = 107;
constexpr std::string_view kAddressPrefix = "address: ";

std::string_view without_quotes(std::string_view text) {
  const bool has_quotes = text.size() >= 2 && text.front() == '"' && text.back() == '"';
  return has_quotes ? text.substr(1, text.size() - 2) : text;
}

// The text of a string value; nullopt for another type.
std::optional<std::string> text_of(const RawValue& raw) {
  const std::string* text = std::get_if<std::string>(&raw.value);
  if (text == nullptr) return std::nullopt;
  return raw.is_untyped ? std::string(without_quotes(*text)) : *text;
}

std::optional<std::int64_t> integer_of(const RawValue& raw) {
  if (const auto* number = std::get_if<std::int64_t>(&raw.value)) return *number;
  const std::string* text = std::get_if<std::string>(&raw.value);
  if (text == nullptr || !raw.is_untyped) return std::nullopt;
  std::int64_t number = 0;
  const char* const end = text->data() + text->size();
  const auto [rest, failure] = std::from_chars(text->data(), end, number);
  if (failure != std::errc() || rest != end) return std::nullopt;
  return number;
}

std::optional<bool> switch_of(const RawValue& raw) {
  if (const bool* value = std::get_if<bool>(&raw.value)) return *value;
  const std::string* text = std::get_if<std::string>(&raw.value);
  if (text == nullptr || !raw.is_untyped) return std::nullopt;
  if (*text == "true") return true;
  if (*text == "false") return false;
  return std::nullopt;
}

std::optional<std::string> path_problem(const std::string& path, std::size_t bytes_max) {
  if (path.empty()) return "a path is needed";
  if (path.front() != '/') return "a path must be absolute";
  if (path.find('\0') != std::string::npos) return "a path holds no zero byte";
  if (path.size() > bytes_max) {
    return "the path has " + std::to_string(path.size()) + " bytes, the most is " +
           std::to_string(bytes_max);
  }
  return std::nullopt;
}

std::optional<std::string> address_problem(const std::string& text) {
  const Result<transport::Address> address = transport::Address::parse(text);
  if (!address) {
    std::string_view why = address.error().what;
    if (why.starts_with(kAddressPrefix)) why.remove_prefix(kAddressPrefix.size());
    return std::string(why);
  }
  if (address->is_unix) return "HOST:PORT is needed, not a socket's path";
  if (!address->is_loopback()) {
    return "it can be reached from other machines, and there is no encryption (TLS) yet; use a "
           "loopback address such as 127.0.0.1";
  }
  return std::nullopt;
}

std::optional<std::string> string_problem(const Setting& setting, const std::string& text) {
  switch (setting.kind) {
    case SettingKind::kDirectory:
      return path_problem(text, kPathBytesMax);
    case SettingKind::kSocketPath:
      return text.empty() ? std::nullopt : path_problem(text, kSocketPathBytesMax);
    case SettingKind::kLoopback:
      return text.empty() ? std::nullopt : address_problem(text);
    default:
      break;
  }
  const std::string wanted = "|" + text + "|";
  const std::string choices = "|" + std::string(setting.choices) + "|";
  if (text.find('|') == std::string::npos && choices.find(wanted) != std::string::npos) {
    return std::nullopt;
  }
  return "not one of the choices";
}

std::optional<std::string> assign_string(const Setting& setting,
                                         const RawValue& raw,
                                         std::string& out) {
  std::optional<std::string> text = text_of(raw);
  if (!text) return "a string is needed, not " + raw.type;
  std::optional<std::string> problem = string_problem(setting, *text);
  if (!problem) out = *std::move(text);
  return problem;
}

std::optional<std::string> assign_bytes(const Setting& setting,
                                        const RawValue& raw,
                                        ByteCount& out) {
  if (const auto* number = std::get_if<std::int64_t>(&raw.value)) {
    if (*number < 0) return "out of range";
    out = ByteCount(static_cast<std::uint64_t>(*number));
  } else {
    const std::optional<std::string> text = text_of(raw);
    if (!text) return "a size is needed (\"512MiB\", or a number of bytes), not " + raw.type;
    if (!setting.choices.empty() && *text == setting.choices) {
      out = ByteCount(0);
      return std::nullopt;
    }
    const std::optional<ByteCount> bytes = parse_bytes(*text);
    if (!bytes) return "not a size; write 512MiB, 1.5GiB or a number of bytes";
    out = *bytes;
  }
  if (out.value() < setting.min || out.value() > setting.max) return "out of range";
  return std::nullopt;
}

std::optional<std::string> assign_duration(const Setting& setting,
                                           const RawValue& raw,
                                           Nanoseconds& out) {
  const std::optional<std::string> text = text_of(raw);
  if (!text) return "a duration is needed (\"50us\", \"2s\"), not " + raw.type;
  const std::optional<Nanoseconds> duration = parse_duration(*text);
  if (!duration) return "not a duration; write a number and us, ms, s, m, h or d";
  const auto ns = static_cast<std::uint64_t>(duration->count());
  if (ns < setting.min || ns > setting.max) return "out of range";
  out = *duration;
  return std::nullopt;
}

std::optional<std::string> assign_integer(const Setting& setting,
                                          const RawValue& raw,
                                          std::uint32_t& out) {
  const std::optional<std::int64_t> number = integer_of(raw);
  if (!number) return "a whole number is needed" + (raw.is_untyped ? "" : ", not " + raw.type);
  if (*number < 0 || static_cast<std::uint64_t>(*number) < setting.min ||
      static_cast<std::uint64_t>(*number) > setting.max) {
    return "out of range";
  }
  out = static_cast<std::uint32_t>(*number);
  return std::nullopt;
}

}  // namespace

std::optional<std::string> assign_setting(const Setting& setting,
                                          const RawValue& raw,
                                          Config& config) {
  if (const auto* text = std::get_if<std::string Config::*>(&setting.member)) {
    return assign_string(setting, raw, config.**text);
  }
  if (const auto* bytes = std::get_if<ByteCount Config::*>(&setting.member)) {
    return assign_bytes(setting, raw, config.**bytes);
  }
  if (const auto* duration = std::get_if<Nanoseconds Config::*>(&setting.member)) {
    return assign_duration(setting, raw, config.**duration);
  }
  if (const auto* number = std::get_if<std::uint32_t Config::*>(&setting.member)) {
    return assign_integer(setting, raw, config.**number);
  }
  const std::optional<bool> value = switch_of(raw);
  if (!value) return "true or false is needed" + (raw.is_untyped ? "" : ", not " + raw.type);
  config.*std::get<bool Config::*>(setting.member) = *value;
  return std::nullopt;
}

}  // namespace cairn::server
