#include "server/logging.h"

#include "server/log.h"

#include <gtest/gtest.h>

#include <regex>
#include <string>

namespace cairn::server {
namespace {

std::string logged(std::string_view level) {
  ::testing::internal::CaptureStderr();
  configure_logging(level);
  log_event(LogLevel::kInfo, "thing_done", {{"size", "4"}, {"name", "a b"}});
  log_event(LogLevel::kWarning, "thing_odd", {});
  log_event(LogLevel::kError, "thing_failed", {{"errno", "5"}});
  flush_log();
  return ::testing::internal::GetCapturedStderr();
}

TEST(Logging, WritesOneLineAnEventWithTimeAndLevel) {
  const std::string text = logged("info");

  const std::string time = R"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z )";
  EXPECT_TRUE(
      std::regex_match(text,
                       std::regex(time + "info thing_done size=4 name=\"a b\"\n" + time +
                                  "warning thing_odd\n" + time + "error thing_failed errno=5\n")))
      << text;
}

TEST(Logging, DropsWhatIsBelowItsLevel) {
  const std::string text = logged("error");

  EXPECT_EQ(text.find("thing_done"), std::string::npos);
  EXPECT_EQ(text.find("thing_odd"), std::string::npos);
  EXPECT_NE(text.find("thing_failed"), std::string::npos);
}

}  // namespace
}  // namespace cairn::server
