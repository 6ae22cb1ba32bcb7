#include "transport/channel.h"
#include "transport/control/socket_address.h"

#include <gtest/gtest.h>

#include <string>

namespace cairn::transport {
namespace {

TEST(Address, ReadsAUnixPath) {
  const auto address = Address::parse("unix:/run/cairn.sock");
  ASSERT_TRUE(address);
  EXPECT_TRUE(address->is_unix);
  EXPECT_EQ(address->path, "/run/cairn.sock");
  EXPECT_EQ(address->to_string(), "unix:/run/cairn.sock");
  EXPECT_FALSE(address->is_loopback());
}

TEST(Address, ReadsHostAndPort) {
  for (const std::string text : {"127.0.0.1:7070", "[::1]:0", "node-3.example:65535", "a_b:1"}) {
    const auto address = Address::parse(text);
    ASSERT_TRUE(address) << text;
    EXPECT_FALSE(address->is_unix);
    EXPECT_EQ(address->to_string(), text);
  }
  EXPECT_EQ(Address::parse("[::1]:80").value().host, "::1");
}

TEST(Address, RefusesWhatIsNone) {
  for (const std::string text : {"",
                                 "unix:",
                                 "/run/cairn.sock",
                                 "host",
                                 ":80",
                                 "host:",
                                 "host:65536",
                                 "host:-1",
                                 "host:80x",
                                 "host: 80",
                                 "ho st:80",
                                 "127.0.0.256:80",
                                 "1.2.3:80",
                                 "::1:80",
                                 "[::1]",
                                 "[::1:80",
                                 "[127.0.0.1]:80",
                                 "[]:80"}) {
    const auto address = Address::parse(text);
    ASSERT_FALSE(address) << text;
    EXPECT_EQ(address.error().code, ErrorCode::kInvalid) << text;
  }
}

TEST(Address, RefusesAPathThatNoSocketCanHave) {
  EXPECT_TRUE(Address::parse("unix:" + std::string(107, 'p')));
  EXPECT_EQ(Address::parse("unix:" + std::string(108, 'p')).error().code, ErrorCode::kInvalid);
  EXPECT_EQ(Address::parse(std::string("unix:a\0b", 8)).error().code, ErrorCode::kInvalid);
}

TEST(Address, KnowsLoopbackByItsText) {
  for (const std::string text : {"127.0.0.1:1", "127.255.0.9:1", "[::1]:1", "[0:0:0::1]:1"}) {
    EXPECT_TRUE(Address::parse(text).value().is_loopback()) << text;
  }
  for (const std::string text : {"128.0.0.1:1", "0.0.0.0:1", "[::]:1", "[::2]:1", "localhost:1"}) {
    EXPECT_FALSE(Address::parse(text).value().is_loopback()) << text;
  }
}

TEST(Resolve, AnswersNumbersAndLocalhostWithoutAsking) {
  EXPECT_EQ(resolve(Address::parse("127.0.0.1:9").value()).value().size(), 1U);
  const auto local = resolve(Address::parse("localhost:9").value());
  ASSERT_TRUE(local);
  EXPECT_EQ(to_address(local->front()).to_string(), "127.0.0.1:9");
  EXPECT_EQ(to_address(local->back()).to_string(), "[::1]:9");
}

TEST(Resolve, LooksNoNameUp) {
  for (const std::string host : {"", "host", "db-1.example.org", "127.0.0.1.", "local host"}) {
    Address address;
    address.host = host;
    const auto found = resolve(address);
    ASSERT_FALSE(found) << host;
    EXPECT_EQ(found.error().code, ErrorCode::kInvalid);
  }
}

}  // namespace
}  // namespace cairn::transport
