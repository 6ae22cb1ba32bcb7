#include "base/human.h"

#include <gtest/gtest.h>

#include <string>

namespace cairn {
namespace {

TEST(ParseBytes, ReadsPlainNumbersAndBothKindsOfUnits) {
  EXPECT_EQ(parse_bytes("0"), 0_B);
  EXPECT_EQ(parse_bytes("4096"), 4_KiB);
  EXPECT_EQ(parse_bytes("4096B"), 4_KiB);
  EXPECT_EQ(parse_bytes("64KiB"), 64_KiB);
  EXPECT_EQ(parse_bytes("3MiB"), 3_MiB);
  EXPECT_EQ(parse_bytes("1GiB"), 1_GiB);
  EXPECT_EQ(parse_bytes("2TiB"), 2048_GiB);
  EXPECT_EQ(parse_bytes("1KB"), ByteCount(1'000));
  EXPECT_EQ(parse_bytes("1MB"), ByteCount(1'000'000));
  EXPECT_EQ(parse_bytes("10GB"), ByteCount(10'000'000'000));
  EXPECT_EQ(parse_bytes("1TB"), ByteCount(1'000'000'000'000));
}

TEST(ParseBytes, TakesOneSpaceAndAnyCaseOfTheUnit) {
  EXPECT_EQ(parse_bytes("1 GiB"), 1_GiB);
  EXPECT_EQ(parse_bytes("1gib"), 1_GiB);
  EXPECT_EQ(parse_bytes("1GIB"), 1_GiB);
}

TEST(ParseBytes, TakesFractionsAndDropsFractionsOfAByte) {
  EXPECT_EQ(parse_bytes("1.5GiB"), 1536_MiB);
  EXPECT_EQ(parse_bytes("0.25 KiB"), 256_B);
  EXPECT_EQ(parse_bytes("1.9B"), 1_B);
  EXPECT_EQ(parse_bytes("0.001KiB"), 1_B);
  EXPECT_EQ(parse_bytes("1.1GB"), ByteCount(1'100'000'000));
}

TEST(ParseBytes, IsExactForEveryNumberOfBytes) {
  EXPECT_EQ(parse_bytes("9007199254740993"), ByteCount(9'007'199'254'740'993ULL));
  EXPECT_EQ(parse_bytes("9223372036854775807"), ByteCount((1ULL << 63U) - 1));
  EXPECT_EQ(parse_bytes("9223372036854775808"), kParsedBytesMax);
}

TEST(ParseBytes, RefusesWhatIsTooLarge) {
  EXPECT_FALSE(parse_bytes("9223372036854775809").has_value());
  EXPECT_FALSE(parse_bytes("8388609TiB").has_value());
  EXPECT_EQ(parse_bytes("8388608TiB"), kParsedBytesMax);
  EXPECT_FALSE(parse_bytes("18446744073709551615TiB").has_value());
  EXPECT_FALSE(parse_bytes("99999999999999999999").has_value());
}

TEST(ParseBytes, RefusesEverythingElse) {
  for (const char* const text :
       {"",    " ",      "B",       "KiB",    "-1",         "-0",
        "+1",  " 1",     "1 ",      "1  KiB", "1KiB ",      "1K",
        "1G",  "16 GBB", "1KiBKiB", "1e3",    "0x10",       "inf",
        "nan", "1,5GiB", "1.GiB",   ".5GiB",  "1.5.2",      "1_000",
        "1 2", "1KiB2",  "1\n",     "1\tKiB", "1kilobytes", "0.1234567890123456789B"})
    EXPECT_FALSE(parse_bytes(text).has_value()) << '"' << text << '"';
  EXPECT_FALSE(parse_bytes({}).has_value());
  EXPECT_FALSE(parse_bytes(std::string_view("1\0B", 3)).has_value());
}

TEST(ParseDuration, ReadsEveryUnit) {
  EXPECT_EQ(parse_duration("0s"), Milliseconds(0));
  EXPECT_EQ(parse_duration("50us"), Nanoseconds(50'000));
  EXPECT_EQ(parse_duration("500ms"), Milliseconds(500));
  EXPECT_EQ(parse_duration("2s"), Milliseconds(2'000));
  EXPECT_EQ(parse_duration("5m"), Milliseconds(300'000));
  EXPECT_EQ(parse_duration("1h"), Milliseconds(3'600'000));
  EXPECT_EQ(parse_duration("7d"), Milliseconds(604'800'000));
  EXPECT_EQ(parse_duration("7 D"), Milliseconds(604'800'000));
}

TEST(ParseDuration, IsExactInFractions) {
  EXPECT_EQ(parse_duration("1.005s"), Milliseconds(1'005));
  EXPECT_EQ(parse_duration("1.5h"), Milliseconds(5'400'000));
  EXPECT_EQ(parse_duration("0.0019s"), Nanoseconds(1'900'000));
  EXPECT_EQ(parse_duration("0.0019us"), Nanoseconds(1));
}

TEST(ParseDuration, RefusesANumberWithoutUnitAndEverythingElse) {
  for (const char* const text :
       {"", "5", "s", "-1s", "5 ", "5ns", "5min", "5sec", "1w", "1h30m", "1GiB", "inf s"})
    EXPECT_FALSE(parse_duration(text).has_value()) << '"' << text << '"';
}

TEST(ParseDuration, RefusesMoreThanAHundredYears) {
  EXPECT_EQ(parse_duration("36500d"), kParsedDurationMax);
  EXPECT_FALSE(parse_duration("36500.1d").has_value());
  EXPECT_FALSE(parse_duration("18446744073709551615d").has_value());
  EXPECT_GT(MonotonicTime{0} + kParsedDurationMax, MonotonicTime{0});
}

TEST(FormatDuration, UsesTheLargestUnitOfWhichItIsAWholeNumber) {
  EXPECT_EQ(format_duration(Nanoseconds(0)), "0ns");
  EXPECT_EQ(format_duration(Nanoseconds(7)), "7ns");
  EXPECT_EQ(format_duration(Nanoseconds(50'000)), "50us");
  EXPECT_EQ(format_duration(Milliseconds(1'500)), "1500ms");
  EXPECT_EQ(format_duration(Milliseconds(120'000)), "2m");
  EXPECT_EQ(format_duration(std::chrono::hours(72)), "3d");
}

TEST(FormatDuration, IsReadBackAsTheSame) {
  for (const Nanoseconds duration : {Nanoseconds(1'000), Nanoseconds(999'000), kParsedDurationMax})
    EXPECT_EQ(parse_duration(format_duration(duration)), duration);
}

TEST(FormatBytes, UsesTheLargestUnitThatFits) {
  EXPECT_EQ(format_bytes(0_B), "0 B");
  EXPECT_EQ(format_bytes(1023_B), "1023 B");
  EXPECT_EQ(format_bytes(64_KiB), "64 KiB");
  EXPECT_EQ(format_bytes(1536_MiB), "1.5 GiB");
  EXPECT_EQ(format_bytes(ByteCount(1'234'567)), "1.177 MiB");
  EXPECT_EQ(format_bytes(2048_GiB), "2 TiB");
}

TEST(FormatBytes, WritesTheLargestNumberWithoutAnExponent) {
  EXPECT_EQ(format_bytes(kParsedBytesMax), "8 EiB");
  EXPECT_EQ(format_bytes(ByteCount(~0ULL)), "16 EiB");
  EXPECT_EQ(format_bytes(2'097'152_GiB), "2 PiB");
}

TEST(FormatBytes, IsReadBackAsTheSameSize) {
  for (const ByteCount size : {0_B, 1_B, 1023_B, 64_KiB, 1536_MiB, 2048_GiB})
    EXPECT_EQ(parse_bytes(format_bytes(size)), size);
}

}  // namespace
}  // namespace cairn
