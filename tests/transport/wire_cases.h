// Every message under every type it travels as, behind one face without templates.
#pragma once

#include "base/random.h"
#include "transport/wire/messages.h"

#include <cstddef>
#include <span>
#include <string>
#include <vector>

namespace cairn::wire::testing {

struct MessageCase {
  MessageType type{};
  const char* name = "";  // of its golden file

  // A finished frame of the counting sample (wire_samples.h).
  std::vector<std::byte> (*sample_frame)(std::uint64_t request_id) = nullptr;
  // Whether the frame decodes to the counting sample. Errors: decode()'s.
  Result<bool> (*is_sample)(const FrameView& frame) = nullptr;
  // Decodes, encodes what came and decodes that: what differs between the two messages or bodies,
  // empty when nothing does. Errors: the first decode()'s.
  Result<std::string> (*difference_when_encoded_again)(const FrameView& frame) = nullptr;
  // Encodes random messages and decodes them into one object: the first difference, else empty.
  std::string (*difference_in_round_trips)(Random& random, int rounds) = nullptr;
};

std::span<const MessageCase> all_messages();

}  // namespace cairn::wire::testing
