#include "server/canonical_json.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <exception>
#include <optional>
#include <utility>
#include <vector>

namespace cairn::server {
namespace {

constexpr std::size_t kShownKeyBytesMax = 64;

struct Decoded {
  char32_t point = 0;
  std::size_t bytes = 1;
};

// `text` is valid UTF-8: the parser has checked it.
Decoded decode_at(std::string_view text, std::size_t at) {
  const auto byte = [&](std::size_t i) {
    return static_cast<char32_t>(static_cast<unsigned char>(text[at + i]));
  };
  const char32_t lead = byte(0);
  if (lead < 0x80U) return {lead, 1};
  if (lead < 0xE0U) return {((lead & 0x1FU) << 6U) | (byte(1) & 0x3FU), 2};
  if (lead < 0xF0U) {
    return {((lead & 0x0FU) << 12U) | ((byte(1) & 0x3FU) << 6U) | (byte(2) & 0x3FU), 3};
  }
  return {((lead & 0x07U) << 18U) | ((byte(1) & 0x3FU) << 12U) | ((byte(2) & 0x3FU) << 6U) |
              (byte(3) & 0x3FU),
          4};
}

// RFC 8785 3.2.3 orders keys by UTF-16 code units, which is not the order of UTF-8 bytes.
std::u16string utf16_of(std::string_view text) {
  std::u16string units;
  units.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) {
    const Decoded decoded = decode_at(text, at);
    at += decoded.bytes;
    if (decoded.point < 0x10000U) {
      units.push_back(static_cast<char16_t>(decoded.point));
    } else {
      const char32_t above = decoded.point - 0x10000U;
      units.push_back(static_cast<char16_t>(0xD800U + (above >> 10U)));
      units.push_back(static_cast<char16_t>(0xDC00U + (above & 0x3FFU)));
    }
  }
  return units;
}

void append_escaped(std::string& out, char c) {
  constexpr std::string_view kHex = "0123456789abcdef";
  constexpr std::array<std::pair<char, char>, 7> kShort = {
      {{'"', '"'}, {'\\', '\\'}, {'\b', 'b'}, {'\t', 't'}, {'\n', 'n'}, {'\f', 'f'}, {'\r', 'r'}}};
  for (const auto& [raw, letter] : kShort) {
    if (c == raw) {
      out += '\\';
      out += letter;
      return;
    }
  }
  const auto value = static_cast<unsigned char>(c);
  if (value >= 0x20U) {
    out += c;
    return;
  }
  out += "\\u00";
  out += kHex[value >> 4U];
  out += kHex[value & 0x0FU];
}

// RFC 8785 3.2.2.2.
std::string json_string(std::string_view text) {
  std::string out = "\"";
  for (const char c : text)
    append_escaped(out, c);
  out += '"';
  return out;
}

// A key for people: escaped, and cut between characters.
std::string shown(std::string_view key) {
  std::size_t end = std::min(key.size(), kShownKeyBytesMax);
  while (end < key.size() && (static_cast<unsigned char>(key[end]) & 0xC0U) == 0x80U)
    --end;
  const std::string escaped = json_string(key.substr(0, end));
  return escaped.substr(1, escaped.size() - 2);
}

// The parser's words without its prefix and without the input it quotes.
std::string plain_parse_error(std::string_view text) {
  const std::size_t prefix = text.find("] ");
  if (prefix != std::string_view::npos) text.remove_prefix(prefix + 2);
  return std::string(text.substr(0, text.find("; last read")));
}

// Receives the parser's events; builds each container's canonical text when it ends, so nothing
// here recurses.
class Canonicalizer {
 public:
  using Json = nlohmann::json;

  bool null() {
    if (stack_.empty()) return refuse("must be an object");
    if (!stack_.back().is_object) return refuse("null in an array has no canonical form");
    return add("", true);
  }
  bool boolean(bool value) {
    return refuse(value ? "true is no integer and no string; write 1"
                        : "false is no integer and no string; write 0");
  }
  bool number_integer(Json::number_integer_t value) {
    if (value < -static_cast<std::int64_t>(kFingerprintIntegerMax)) return refuse_integer();
    return add(std::to_string(value), false);
  }
  bool number_unsigned(Json::number_unsigned_t value) {
    if (value > kFingerprintIntegerMax) return refuse_integer();
    return add(std::to_string(value), false);
  }
  bool number_float(Json::number_float_t /*value*/, const std::string& text) {
    if (text.find_first_of(".eE") == std::string::npos) return refuse_integer();
    return refuse("numbers are integers, without fraction or exponent; write another as a string");
  }
  bool string(const std::string& value) { return add(json_string(value), false); }
  bool binary(const Json::binary_t& /*value*/) { return refuse("binary"); }

  bool start_object(std::size_t /*elements*/) { return start(true); }
  bool start_array(std::size_t /*elements*/) { return start(false); }
  bool key(const std::string& name) {
    stack_.back().key = name;
    return true;
  }
  bool end_object() {
    Container& object = stack_.back();
    std::sort(object.members.begin(), object.members.end(), [](const auto& a, const auto& b) {
      return a.order < b.order;
    });
    std::string text = "{";
    for (std::size_t i = 0; i < object.members.size(); ++i) {
      const Member& member = object.members[i];
      if (i > 0 && member.order == object.members[i - 1].order) {
        object.key = member.key;
        return refuse("the key is there twice");
      }
      if (member.is_null) continue;
      if (text.size() > 1) text += ',';
      text += json_string(member.key) + ":" + member.text;
    }
    return end(text + "}");
  }
  bool end_array() {
    std::string text = "[";
    for (const Member& member : stack_.back().members) {
      if (text.size() > 1) text += ',';
      text += member.text;
    }
    return end(text + "]");
  }
  bool parse_error(std::size_t /*byte*/, const std::string& /*token*/, const std::exception& ex) {
    message_ = "fingerprint: not JSON: " + plain_parse_error(ex.what());
    return false;
  }

  const std::string& result() const { return result_; }
  const std::string& message() const { return message_; }

 private:
  struct Member {
    std::u16string order;  // of the key; empty in an array
    std::string key;
    std::string text;
    bool is_null = false;
  };
  struct Container {
    bool is_object = false;
    std::string key;  // of the member that is being read
    std::vector<Member> members;
  };

  bool start(bool is_object) {
    if (stack_.empty() && !is_object) return refuse("must be an object");
    if (stack_.size() == kFingerprintDepthMax) {
      return refuse("more than " + std::to_string(kFingerprintDepthMax) + " levels");
    }
    stack_.push_back({is_object, "", {}});
    return true;
  }
  bool end(std::string text) {
    stack_.pop_back();
    if (!stack_.empty()) return add(std::move(text), false);
    result_ = std::move(text);
    return true;
  }
  bool add(std::string text, bool is_null) {
    if (stack_.empty()) return refuse("must be an object");
    Container& parent = stack_.back();
    Member member{{}, parent.key, std::move(text), is_null};
    if (parent.is_object) member.order = utf16_of(parent.key);
    parent.members.push_back(std::move(member));
    return true;
  }
  bool refuse_integer() {
    return refuse("beyond " + std::to_string(kFingerprintIntegerMax) +
                  " in size, which not every reader keeps exact; write it as a string");
  }
  bool refuse(std::string_view why) {
    message_ = "fingerprint";
    for (const Container& container : stack_) {
      if (container.is_object) {
        message_ += "." + shown(container.key);
      } else {
        message_ += "[" + std::to_string(container.members.size()) + "]";
      }
    }
    message_ += ": ";
    message_ += why;
    return false;
  }

  std::vector<Container> stack_;
  std::string result_;
  std::string message_;
};

}  // namespace

Result<std::string> canonical_json(std::string_view text, std::string& message) noexcept {
  try {
    if (text.size() > kFingerprintBytesMax.value()) {
      message = "fingerprint: " + std::to_string(text.size()) + " bytes, the most is " +
                std::to_string(kFingerprintBytesMax.value());
      return Error{ErrorCode::kInvalid, 0, "fingerprint"};
    }
    Canonicalizer events;
    if (nlohmann::json::sax_parse(text, &events)) return events.result();
    message = events.message();
    return Error{ErrorCode::kInvalid, 0, "fingerprint"};
  } catch (const std::exception& failure) {
    message = std::string("fingerprint: ") + failure.what();
    return Error{ErrorCode::kInvalid, 0, "fingerprint"};
  }
}

}  // namespace cairn::server
