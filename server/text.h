// How ids are written for people: 16 hexadecimal digits.
#pragma once

#include <cstdint>
#include <string>

namespace cairn::server {

inline std::string hex_id(std::uint64_t id) {
  constexpr const char* kDigits = "0123456789abcdef";
  std::string out(16, '0');
  for (std::size_t i = out.size(); i-- > 0; id >>= 4U)
    out[i] = kDigits[id & 0xFU];
  return out;
}

}  // namespace cairn::server
