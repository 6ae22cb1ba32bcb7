#include "server/namespaces.h"

#include "storage/key_value.h"
#include "tests/support/faulty_key_value.h"
#include "tests/support/manual_clock.h"
#include "tests/support/process_runner.h"

#include <gtest/gtest.h>

#include <string>
#include <thread>

namespace cairn::server {
namespace {

using storage::KeyValue;
using storage::Table;
using testing::FaultyKeyValue;
using testing::ManualClock;
using testing::TempDir;

std::unique_ptr<KeyValue> memory_store() {
  Result<std::unique_ptr<KeyValue>> opened =
      storage::open_rocksdb({.directory = "", .in_memory = true});
  EXPECT_TRUE(opened.has_value());
  return *std::move(opened);
}

class NamespaceRegistryTest : public ::testing::Test {
 protected:
  std::unique_ptr<NamespaceRegistry> open_registry() {
    Result<std::unique_ptr<NamespaceRegistry>> opened = NamespaceRegistry::open(store_, clock_);
    if (!opened) {
      ADD_FAILURE() << error_code_name(opened.error().code);
      return nullptr;
    }
    return *std::move(opened);
  }
  ErrorCode open_error() {
    const Result<std::unique_ptr<NamespaceRegistry>> opened =
        NamespaceRegistry::open(store_, clock_);
    EXPECT_FALSE(opened.has_value());
    return opened ? ErrorCode::kInvalid : opened.error().code;
  }
  NamespaceEntry must_open(NamespaceRegistry& registry, std::string_view fingerprint) {
    std::string message;
    const Result<NamespaceEntry> entry = registry.open_namespace(fingerprint, message);
    EXPECT_TRUE(entry.has_value()) << message;
    return entry ? *entry : NamespaceEntry{};
  }
  void change_row(const NamespaceDigest& digest, std::string value) {
    std::string key;
    for (const std::byte byte : digest.bytes)
      key.push_back(static_cast<char>(byte));
    ASSERT_TRUE(real_->write({{Table::kNamespaces, key, std::move(value)}}, true));
  }
  std::string row(const NamespaceDigest& digest) {
    std::string key;
    for (const std::byte byte : digest.bytes)
      key.push_back(static_cast<char>(byte));
    return (*real_->get(Table::kNamespaces, key)).value_or("");
  }

  std::unique_ptr<KeyValue> real_ = memory_store();
  FaultyKeyValue store_{*real_};
  ManualClock clock_;
};

TEST_F(NamespaceRegistryTest, GivesSlotsFromZeroUp) {
  const auto registry = open_registry();

  EXPECT_EQ(must_open(*registry, R"({"m":1})").slot.value(), 0U);
  EXPECT_EQ(must_open(*registry, R"({"m":2})").slot.value(), 1U);
  EXPECT_EQ(must_open(*registry, R"({"m":1})").slot.value(), 0U);
  ASSERT_EQ(registry->all().size(), 2U);
  EXPECT_EQ(registry->all()[1].slot.value(), 1U);
}

TEST_F(NamespaceRegistryTest, KnowsANamespaceInWhateverOrderItsFieldsCome) {
  const auto registry = open_registry();

  const NamespaceEntry one = must_open(*registry, R"({"a":1,"b":2,"c":null})");
  const NamespaceEntry two = must_open(*registry, R"({ "b":2, "a":1 })");

  EXPECT_EQ(one.digest, two.digest);
  EXPECT_EQ(one.epoch, two.epoch);
}

TEST_F(NamespaceRegistryTest, StartsAnEpochAtTheTimeOfDay) {
  clock_.set_unix_ms(1'234'567);

  EXPECT_EQ(must_open(*open_registry(), R"({"m":1})").epoch, 1'234'567U);
}

TEST_F(NamespaceRegistryTest, NeverStartsAtEpochZero) {
  clock_.set_unix_ms(0);

  EXPECT_EQ(must_open(*open_registry(), R"({"m":1})").epoch, 1U);
}

TEST_F(NamespaceRegistryTest, RaisesTheEpochEvenWhenTheTimeOfDayGoesBack) {
  const auto registry = open_registry();
  const NamespaceEntry before = must_open(*registry, R"({"m":1})");
  clock_.set_unix_ms(5);

  const Result<NamespaceEntry> after = registry->purge(before.digest);

  ASSERT_TRUE(after.has_value());
  EXPECT_EQ((*after).epoch, before.epoch + 1);
  EXPECT_EQ((*after).slot, before.slot);
  EXPECT_EQ(registry->find(before.digest)->epoch, before.epoch + 1);
}

TEST_F(NamespaceRegistryTest, SyncsEveryNewNamespaceAndPurgeBeforeItAnswers) {
  const auto registry = open_registry();
  const std::uint64_t before = store_.synced_writes();

  const NamespaceEntry entry = must_open(*registry, R"({"m":1})");
  EXPECT_EQ(store_.synced_writes(), before + 1);
  ASSERT_TRUE(registry->purge(entry.digest));
  EXPECT_EQ(store_.synced_writes(), before + 2);
  EXPECT_EQ(store_.writes(), store_.synced_writes());
}

TEST_F(NamespaceRegistryTest, RemembersEverythingOverARestart) {
  const auto first = open_registry();
  const NamespaceEntry a = must_open(*first, R"({"m":1})");
  const NamespaceEntry b = must_open(*first, R"({"m":2})");
  const Result<NamespaceEntry> purged = first->purge(b.digest);
  ASSERT_TRUE(purged.has_value());

  const auto second = open_registry();

  EXPECT_EQ(second->find(a.digest)->epoch, a.epoch);
  EXPECT_EQ(second->find(b.digest)->epoch, (*purged).epoch);
  EXPECT_EQ(second->find(b.digest)->slot.value(), 1U);
  EXPECT_EQ(second->fingerprint(b.digest), R"({"m":2})");
  EXPECT_EQ(must_open(*second, R"({"m":3})").slot.value(), 2U);
}

TEST_F(NamespaceRegistryTest, KnowsNothingOfADigestThatWasNeverOpened) {
  const auto registry = open_registry();
  const NamespaceDigest unknown{};

  EXPECT_FALSE(registry->find(unknown).has_value());
  EXPECT_FALSE(registry->fingerprint(unknown).has_value());
  EXPECT_EQ(registry->purge(unknown).error().code, ErrorCode::kNotFound);
}

TEST_F(NamespaceRegistryTest, RefusesABadFingerprintWithTheReason) {
  std::string message;

  const Result<NamespaceEntry> entry = open_registry()->open_namespace(R"({"m":1.5})", message);

  ASSERT_FALSE(entry.has_value());
  EXPECT_EQ(entry.error().code, ErrorCode::kInvalid);
  EXPECT_NE(message.find("fingerprint.m:"), std::string::npos);
}

TEST_F(NamespaceRegistryTest, ChangesNothingWhenTheWriteFails) {
  const auto registry = open_registry();
  const NamespaceEntry entry = must_open(*registry, R"({"m":1})");
  std::string message;
  store_.fail_writes_after(0);

  const Result<NamespaceEntry> purged = registry->purge(entry.digest);
  const Result<NamespaceEntry> opened = registry->open_namespace(R"({"m":2})", message);
  store_.heal();

  EXPECT_EQ(purged.error().code, ErrorCode::kIo);
  EXPECT_EQ(opened.error().code, ErrorCode::kIo);
  EXPECT_EQ(registry->find(entry.digest)->epoch, entry.epoch);
  EXPECT_EQ(registry->all().size(), 1U);
  EXPECT_EQ(must_open(*registry, R"({"m":2})").slot.value(), 1U);
}

// A write whose failure came after it had reached the disk: its slot is not given to another.
TEST_F(NamespaceRegistryTest, LooksAgainAtWhatAFailedWriteLeft) {
  const auto registry = open_registry();
  const NamespaceEntry first = must_open(*registry, R"({"m":1})");
  std::string message;
  store_.fail_writes_after_they_are_done();
  EXPECT_FALSE(registry->open_namespace(R"({"m":2})", message).has_value());
  EXPECT_FALSE(registry->purge(first.digest).has_value());
  EXPECT_TRUE(registry->write_failure().has_value());
  store_.heal();

  EXPECT_EQ(must_open(*registry, R"({"m":3})").slot.value(), 2U);
  EXPECT_EQ(must_open(*registry, R"({"m":2})").slot.value(), 1U);
  EXPECT_GT(registry->find(first.digest)->epoch, first.epoch);
  EXPECT_FALSE(registry->write_failure().has_value());
  EXPECT_EQ(open_registry()->all().size(), 3U);
}

TEST_F(NamespaceRegistryTest, ChangesNothingWhileItCannotLookAgain) {
  const auto registry = open_registry();
  std::string message;
  store_.fail_writes_after_they_are_done();
  EXPECT_FALSE(registry->open_namespace(R"({"m":1})", message).has_value());
  store_.heal();
  store_.fail_reads_after(0);
  EXPECT_EQ(registry->open_namespace(R"({"m":2})", message).error().code, ErrorCode::kIo);
  store_.heal();
  EXPECT_EQ(must_open(*registry, R"({"m":2})").slot.value(), 1U);
}

TEST_F(NamespaceRegistryTest, PassesOnThatItsTableCannotBeRead) {
  store_.fail_reads_after(0);

  EXPECT_EQ(open_error(), ErrorCode::kIo);
}

TEST_F(NamespaceRegistryTest, CallsDamagedRowsCorrupt) {
  const NamespaceEntry entry = must_open(*open_registry(), R"({"m":1})");
  const std::string good = row(entry.digest);
  std::string other_text = good;
  other_text.back() = ']';
  std::string other_slot = good;
  other_slot[4] = 1;
  std::string padding = good;
  padding[2] = 1;
  std::string no_epoch = good;
  no_epoch.replace(8, 8, std::string(8, '\0'));

  for (const std::string& bad :
       {std::string(), good.substr(0, 15), other_text, other_slot, padding, no_epoch}) {
    change_row(entry.digest, bad);
    EXPECT_EQ(open_error(), ErrorCode::kCorrupt) << to_hex(std::as_bytes(std::span(bad)));
  }
}

TEST_F(NamespaceRegistryTest, RefusesRowsOfANewerVersion) {
  const NamespaceEntry entry = must_open(*open_registry(), R"({"m":1})");
  std::string newer = row(entry.digest);
  newer[0] = 2;
  change_row(entry.digest, newer);

  EXPECT_EQ(open_error(), ErrorCode::kVersion);
}

TEST_F(NamespaceRegistryTest, PinsTheBytesOfARow) {
  clock_.set_unix_ms(0x0102030405060708);
  const NamespaceEntry entry = must_open(*open_registry(), "{}");

  const std::string bytes = row(entry.digest);

  EXPECT_EQ(to_hex(std::as_bytes(std::span(bytes))),
            "0100000000000000"
            "0807060504030201"
            "7b7d");
}

TEST_F(NamespaceRegistryTest, RefusesOneMoreThanTheMostItHolds) {
  // Rows are made by hand, in one batch: opening each would sync each.
  const NamespaceEntry first = must_open(*open_registry(), R"({"m":0})");
  const std::string pattern = row(first.digest);
  std::vector<storage::KeyValueWrite> rows;
  for (std::uint32_t slot = 1; slot < storage::kNamespacesMax; ++slot) {
    const std::string text = R"({"m":)" + std::to_string(slot) + "}";
    std::string bytes = pattern.substr(0, 16) + text;
    bytes[4] = static_cast<char>(slot & 0xFFU);
    bytes[5] = static_cast<char>(slot >> 8U);
    const NamespaceDigest digest = namespace_digest(text);
    std::string key;
    for (const std::byte byte : digest.bytes)
      key.push_back(static_cast<char>(byte));
    rows.push_back({Table::kNamespaces, key, bytes});
  }
  ASSERT_TRUE(real_->write(rows, false));
  const auto registry = open_registry();
  std::string message;

  EXPECT_EQ(must_open(*registry, R"({"m":32767})").slot.value(), 32'767U);
  const Result<NamespaceEntry> more = registry->open_namespace(R"({"m":"new"})", message);

  ASSERT_FALSE(more.has_value());
  EXPECT_EQ(more.error().code, ErrorCode::kNoSpace);
  EXPECT_NE(message.find("32768"), std::string::npos);
}

TEST_F(NamespaceRegistryTest, MakesANamespaceOnceWhenThreadsRaceForIt) {
  const auto registry = open_registry();
  std::vector<std::thread> threads;
  threads.reserve(4);
  for (int thread = 0; thread < 4; ++thread) {
    threads.emplace_back([&] {
      for (int i = 0; i < 20; ++i)
        must_open(*registry, R"({"m":)" + std::to_string(i) + "}");
    });
  }
  for (std::thread& thread : threads)
    thread.join();

  EXPECT_EQ(registry->all().size(), 20U);
  EXPECT_EQ(open_registry()->all().size(), 20U);
}

TEST(NamespaceRegistryOnDisk, KeepsAPurgeOverARestart) {
  const TempDir directory;
  const ManualClock clock;
  NamespaceEntry purged;
  {
    const auto store = storage::open_rocksdb({.directory = directory / "kv", .in_memory = false});
    const auto registry = NamespaceRegistry::open(**store, clock);
    std::string message;
    const auto entry = (*registry)->open_namespace("{}", message);
    purged = *(*registry)->purge((*entry).digest);
  }

  const auto store = storage::open_rocksdb({.directory = directory / "kv", .in_memory = false});
  const auto registry = NamespaceRegistry::open(**store, clock);

  ASSERT_TRUE(registry.has_value());
  EXPECT_EQ((*registry)->find(purged.digest)->epoch, purged.epoch);
}

}  // namespace
}  // namespace cairn::server
