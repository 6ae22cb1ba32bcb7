#include "base/memory.h"

#include <gtest/gtest.h>

#include <array>

namespace cairn {
namespace {

TEST(MemorySpan, IsHostMemoryOfAnUnknownNodeByDefault) {
  const MemorySpan nothing;
  EXPECT_EQ(nothing.kind, MemoryKind::kHost);
  EXPECT_EQ(nothing.device, -1);
  EXPECT_TRUE(nothing.host().empty());
}

TEST(MemorySpan, BorrowsTheBytesItNames) {
  std::array<std::byte, 8> bytes{};
  const MemorySpan span{.address = bytes.data(), .bytes = bytes.size()};
  span.host()[7] = std::byte{5};
  EXPECT_EQ(bytes[7], std::byte{5});
  EXPECT_EQ(span.host().size(), 8U);
}

}  // namespace
}  // namespace cairn
