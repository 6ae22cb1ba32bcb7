// The bytes of every message of version 1. CAIRN_WRITE_GOLDEN=1 writes the files anew; a difference
// to the committed ones is a change of the protocol.
#include "base/block_key.h"
#include "tests/transport/wire_cases.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

namespace cairn::wire::testing {
namespace {

constexpr std::uint64_t kRequestId = 0xA7A6A5A4A3A2A1A0;
constexpr std::size_t kBytesPerLine = 16;

std::filesystem::path golden_path(const char* name) {
  return std::filesystem::path(CAIRN_GOLDEN_WIRE_DIR) / (std::string(name) + ".hex");
}

std::string hex_lines(std::span<const std::byte> bytes) {
  std::string text;
  for (std::size_t at = 0; at < bytes.size(); at += kBytesPerLine) {
    const auto line = bytes.subspan(at, std::min(kBytesPerLine, bytes.size() - at));
    for (std::size_t i = 0; i < line.size(); ++i) {
      if (i > 0 && i % 4 == 0) text += ' ';
      text += to_hex(line.subspan(i, 1));
    }
    text += '\n';
  }
  return text;
}

std::string golden_text(const char* name, std::span<const std::byte> frame) {
  const auto view = decode_frame(frame);
  EXPECT_TRUE(view.has_value());
  const auto field = [&](std::size_t at, std::size_t bytes) {
    return ' ' + to_hex(frame.subspan(at, bytes));
  };
  std::string text = std::string("# ") + name + '\n';
  text += "# header: magic, body_bytes, type, flags, checksum, request_id, tlv_bytes, reserved\n";
  text += to_hex(frame.first(4)) + field(4, 4) + field(8, 2) + field(10, 2) + field(12, 4) +
          field(16, 8) + field(24, 4) + field(28, 4) + '\n';
  if (!view->body.empty()) text += "# body\n" + hex_lines(view->body);
  auto tlvs = view->tlvs;
  while (!tlvs.empty()) {
    const auto before = tlvs;
    EXPECT_TRUE(take_tlv(tlvs).has_value());
    text += "# tlv\n" + hex_lines(before.first(before.size() - tlvs.size()));
  }
  return text;
}

std::string read_text(const std::filesystem::path& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

std::vector<std::byte> bytes_of(const std::string& text) {
  std::istringstream lines(text);
  std::string digits;
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with('#')) continue;
    std::erase(line, ' ');
    digits += line;
  }
  const std::string raw = bytes_from_hex(digits).value_or("");
  const auto bytes = std::as_bytes(std::span(raw));
  return {bytes.begin(), bytes.end()};
}

TEST(GoldenBytes, AreWhatEncodeWritesAndDecodeReads) {
  // NOLINTNEXTLINE(concurrency-mt-unsafe): nobody sets the environment meanwhile.
  const bool is_writing = std::getenv("CAIRN_WRITE_GOLDEN") != nullptr;
  for (const MessageCase& message : all_messages()) {
    SCOPED_TRACE(message.name);
    const auto path = golden_path(message.name);
    const std::string expected = golden_text(message.name, message.sample_frame(kRequestId));
    if (is_writing) std::ofstream(path) << expected;
    const std::string text = read_text(path);
    ASSERT_EQ(text, expected);
    const auto golden = bytes_of(text);
    const auto view = decode_frame(golden);
    ASSERT_TRUE(view.has_value());
    const auto is_sample = message.is_sample(*view);
    ASSERT_TRUE(is_sample.has_value());
    EXPECT_TRUE(*is_sample);
  }
  EXPECT_FALSE(is_writing) << "written; run again without CAIRN_WRITE_GOLDEN";
}

TEST(GoldenBytes, HaveAFileForEachMessageAndNoOther) {
  const std::filesystem::directory_iterator folder(CAIRN_GOLDEN_WIRE_DIR);
  EXPECT_EQ(static_cast<std::size_t>(std::distance(begin(folder), end(folder))),
            all_messages().size());
}

}  // namespace
}  // namespace cairn::wire::testing
