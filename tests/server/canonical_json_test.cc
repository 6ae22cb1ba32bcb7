#include "server/canonical_json.h"

#include "base/block_key.h"
#include "server/namespaces.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>

namespace cairn::server {
namespace {

std::string canonical(std::string_view text) {
  std::string message;
  const Result<std::string> result = canonical_json(text, message);
  return result ? *result : "refused: " + message;
}

std::string refusal(std::string_view text) {
  std::string message;
  const Result<std::string> result = canonical_json(text, message);
  if (result) return "accepted: " + *result;
  EXPECT_EQ(result.error().code, ErrorCode::kInvalid);
  return message;
}

std::string nested(std::size_t levels) {
  std::string text;
  for (std::size_t i = 0; i < levels; ++i)
    text += R"({"a":)";
  return text + "1" + std::string(levels, '}');
}

TEST(CanonicalJson, DropsBlanksAndOrdersKeys) {
  EXPECT_EQ(canonical("{ \"b\" : 1,\n\t\"a\" : [ 2 , \"x\" ] }"), R"({"a":[2,"x"],"b":1})");
}

TEST(CanonicalJson, OrdersKeysByUtf16CodeUnits) {
  // The example of RFC 8785 3.2.3: the emoji's surrogates (D83D ...) come before U+FB33, although
  // its UTF-8 bytes come after.
  EXPECT_EQ(canonical("{\"\\u20ac\":1,\"\\r\":2,\"\\ufb33\":3,\"1\":4,\"\\ud83d\\ude00\":5,"
                      "\"\\u0080\":6,\"\\u00f6\":7}"),
            "{\"\\r\":2,\"1\":4,\"\xC2\x80\":6,\"\xC3\xB6\":7,\"\xE2\x82\xAC\":1,"
            "\"\xF0\x9F\x98\x80\":5,\"\xEF\xAC\xB3\":3}");
}

TEST(CanonicalJson, EscapesOnlyWhatMustBe) {
  EXPECT_EQ(canonical(R"({"s":"\u0000\u001F\b\t\n\f\r\"\\\/\u007f\u00e9"})"),
            "{\"s\":\"\\u0000\\u001f\\b\\t\\n\\f\\r\\\"\\\\/\x7F\xC3\xA9\"}");
}

TEST(CanonicalJson, OrdersTheKeysOfNestedObjects) {
  EXPECT_EQ(canonical(R"({"m":[{"z":1,"y":{"d":1,"c":2}}]})"),
            R"({"m":[{"y":{"c":2,"d":1},"z":1}]})");
}

TEST(CanonicalJson, LeavesNullFieldsOut) {
  EXPECT_EQ(canonical(R"({"a":null,"b":{"c":null},"d":1})"), R"({"b":{},"d":1})");
}

TEST(CanonicalJson, WritesIntegersWithoutSignOfZero) {
  EXPECT_EQ(canonical(R"({"a":-0,"b":-7,"c":9007199254740991,"d":-9007199254740991})"),
            R"({"a":0,"b":-7,"c":9007199254740991,"d":-9007199254740991})");
}

TEST(CanonicalJson, DoesNotChangeWhatIsCanonical) {
  const std::string once = canonical("{\"b\":[\"\\u0001\",{}],\"a\":\"\xF0\x9F\x98\x80\"}");

  EXPECT_EQ(canonical(once), once);
}

TEST(CanonicalJson, RefusesNumbersThatAreNoExactIntegers) {
  EXPECT_EQ(refusal(R"({"a":{"b":1.5}})"),
            "fingerprint.a.b: numbers are integers, without fraction or exponent; write another as "
            "a string");
  EXPECT_NE(refusal(R"({"a":1e3})").find("fingerprint.a: numbers are integers"), std::string::npos);
  EXPECT_NE(refusal(R"({"a":1.0})").find("fingerprint.a: numbers are integers"), std::string::npos);
  for (const char* text : {R"({"a":9007199254740992})",
                           R"({"a":-9007199254740992})",
                           R"({"a":123456789012345678901234567890})"}) {
    EXPECT_EQ(refusal(text),
              "fingerprint.a: beyond 9007199254740991 in size, which not every reader keeps exact; "
              "write it as a string");
  }
}

TEST(CanonicalJson, RefusesBooleansAndNullsInArrays) {
  EXPECT_EQ(refusal(R"({"a":[1,true]})"),
            "fingerprint.a[1]: true is no integer and no string; write 1");
  EXPECT_EQ(refusal(R"({"a":false})"), "fingerprint.a: false is no integer and no string; write 0");
  EXPECT_EQ(refusal(R"({"a":[null]})"), "fingerprint.a[0]: null in an array has no canonical form");
}

TEST(CanonicalJson, RefusesAKeyThatIsThereTwice) {
  EXPECT_EQ(refusal(R"({"m":{"a":1,"b":2,"a":1}})"), "fingerprint.m.a: the key is there twice");
  EXPECT_EQ(refusal(R"({"a":null,"a":1})"), "fingerprint.a: the key is there twice");
  EXPECT_EQ(refusal("{\"\\u0061\":1,\"a\":2}"), "fingerprint.a: the key is there twice");
}

TEST(CanonicalJson, RefusesWhatIsNoObject) {
  for (const char* text : {"[]", "1", "\"x\"", "null"}) {
    EXPECT_EQ(refusal(text), "fingerprint: must be an object") << text;
  }
  EXPECT_NE(refusal("true").find("true is no integer"), std::string::npos);
}

TEST(CanonicalJson, RefusesWhatIsNoJson) {
  for (const char* text : {"",
                           "{",
                           "{\"a\":1}x",
                           "{\"a\":1,}",
                           "{a:1}",
                           "{\"a\":\"\x80\"}",
                           R"({"a":"\ud800"})",
                           "{\"a\":\"\n\"}",
                           "{\"a\":01}",
                           "/*c*/{\"a\":1}"}) {
    EXPECT_EQ(refusal(text).rfind("fingerprint: not JSON: ", 0), 0U) << text << refusal(text);
  }
}

TEST(CanonicalJson, SaysWhereTheJsonBreaks) {
  EXPECT_NE(refusal("{\"a\":x}").find("line 1, column 6"), std::string::npos)
      << refusal("{\"a\":x}");
}

TEST(CanonicalJson, TakesTheDeepestAllowedAndRefusesOneMore) {
  EXPECT_EQ(canonical(nested(kFingerprintDepthMax)), nested(kFingerprintDepthMax));
  EXPECT_NE(refusal(nested(kFingerprintDepthMax + 1)).find(": more than 32 levels"),
            std::string::npos);
  EXPECT_NE(refusal(std::string(50'000, '[')).find("must be an object"), std::string::npos);
}

TEST(CanonicalJson, TakesTheLongestAllowedAndRefusesOneMore) {
  const std::string frame = R"({"a":""})";
  const std::string longest =
      R"({"a":")" + std::string(kFingerprintBytesMax.value() - frame.size(), 'x') + "\"}";

  EXPECT_EQ(canonical(longest), longest);
  EXPECT_EQ(refusal(longest + " "), "fingerprint: 65537 bytes, the most is 65536");
}

TEST(CanonicalJson, ShowsKeysInOnePrintableLine) {
  EXPECT_EQ(refusal("{\"a\\n\":true}").rfind("fingerprint.a\\n: true", 0), 0U);
  const std::string wide = "{\"" + std::string(63, 'k') + "\xC3\xA9\":true}";
  EXPECT_EQ(refusal(wide).rfind("fingerprint." + std::string(63, 'k') + ": true", 0), 0U);
}

// docs/formats.md "Namespace digest" shows these.
TEST(NamespaceDigest, MatchesItsVectors) {
  struct Vector {
    const char* fingerprint;
    const char* digest;
  };
  constexpr Vector kVectors[] = {
      {"{}", "44136fa355b3678a1146ad16f7e8649e"},
      {R"({"model":"llama-3-8b","dtype":"bf16","block_tokens":16})",
       "4ac45957068500535c1e4540d57ac1ef"},
      {R"({"tp":{"rank":1,"size":4},"model":"sha256:0123","layers":[0,1,2],"lora":null})",
       "fbd5db140e7adecff877d18b6c361d38"},
      {"{\"model\":\"\\u00e9\\ud83d\\ude00\",\"\\ufb33\":1,\"\\ud83d\\ude00\":2}",
       "4640fb2e7ef211d14755c8202f1c6fe3"},
  };
  for (const Vector& vector : kVectors) {
    std::string message;
    const Result<std::string> form = canonical_fingerprint(vector.fingerprint, message);
    ASSERT_TRUE(form.has_value()) << message;
    EXPECT_EQ(to_hex(namespace_digest(*form).bytes), vector.digest) << *form;
  }
}

}  // namespace
}  // namespace cairn::server
