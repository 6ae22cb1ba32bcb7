// Input: a frame, as in the golden files. It is decoded as it is; then its body is decoded as if
// the checksum were right, which a hostile peer would see to. What decodes is encoded again and
// must give the same message and the same body.
#include "base/check.h"
#include "tests/transport/wire_cases.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

namespace cairn::wire {
namespace {

constexpr std::size_t kTypeAt = 8;
constexpr std::size_t kRequestIdAt = 16;
constexpr std::size_t kTlvBytesAt = 24;

template <typename T>
T load(std::span<const std::byte> bytes, std::size_t at) {
  T value{};
  std::memcpy(&value, bytes.data() + at, sizeof(value));
  return value;
}

void try_message(const FrameView& view) {
  for (const testing::MessageCase& message : testing::all_messages()) {
    if (message.type != view.type) continue;
    const auto difference = message.difference_when_encoded_again(view);
    CAIRN_CHECK(!difference.has_value() || difference->empty());
  }
}

void try_frame(std::span<const std::byte> frame) {
  const auto whole = decode_frame(frame);
  if (whole.has_value()) try_message(*whole);
  if (frame.size() < kFrameHeaderBytes || frame.size() > kMessageBytesMax.value()) return;
  const auto body = frame.subspan(kFrameHeaderBytes);
  const std::size_t tlv_bytes =
      std::min<std::size_t>(load<std::uint32_t>(frame, kTlvBytesAt), body.size());
  try_message({.type = static_cast<MessageType>(load<std::uint16_t>(frame, kTypeAt)),
               .request_id = load<std::uint64_t>(frame, kRequestIdAt),
               .body = body.first(body.size() - tlv_bytes),
               .tlvs = body.last(tlv_bytes)});
}

}  // namespace
}  // namespace cairn::wire

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  cairn::wire::try_frame(std::as_bytes(std::span(data, size)));
  return 0;
}
