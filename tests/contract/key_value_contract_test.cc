// One suite for every KeyValue, then what only a store on disk can show.
#include "storage/key_value.h"
#include "storage/rocksdb_key_value.h"
#include "tests/support/faulty_key_value.h"
#include "tests/support/process_runner.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <thread>

namespace cairn::storage {
namespace {

using testing::FaultyKeyValue;
using testing::TempDir;
using Rows = std::vector<std::pair<std::string, std::string>>;

std::unique_ptr<KeyValue> open_in(const std::string& directory) {
  Result<std::unique_ptr<KeyValue>> opened =
      open_rocksdb({.directory = directory, .in_memory = false});
  if (!opened) {
    ADD_FAILURE() << "open " << directory << ": " << error_code_name(opened.error().code);
    return nullptr;
  }
  return *std::move(opened);
}

KeyValueWrite put(Table table, std::string key, std::string value) {
  return {table, std::move(key), std::move(value)};
}

KeyValueWrite erase(Table table, std::string key) {
  return {table, std::move(key), std::nullopt};
}

std::string value_of(KeyValue& store, Table table, std::string_view key) {
  const Result<std::optional<std::string>> got = store.get(table, key);
  if (!got) return std::string("error ") + error_code_name(got.error().code);
  return got->value_or("nothing");
}

class OnDisk {
 public:
  KeyValue& store() { return *store_; }

 private:
  TempDir directory_;
  std::unique_ptr<KeyValue> store_ = open_in(directory_ / "kv");
};

class InMemory {
 public:
  InMemory() {
    Result<std::unique_ptr<KeyValue>> opened = open_rocksdb({.directory = "", .in_memory = true});
    EXPECT_TRUE(opened.has_value());
    if (opened) store_ = *std::move(opened);
  }
  KeyValue& store() { return *store_; }

 private:
  std::unique_ptr<KeyValue> store_;
};

class Wrapped {
 public:
  KeyValue& store() { return faulty_; }

 private:
  InMemory real_;
  FaultyKeyValue faulty_{real_.store()};
};

template <typename World>
class KeyValueContract : public ::testing::Test {
 protected:
  KeyValue& store() { return world_.store(); }

 private:
  World world_;
};
using Worlds = ::testing::Types<OnDisk, InMemory, Wrapped>;
TYPED_TEST_SUITE(KeyValueContract, Worlds);

TYPED_TEST(KeyValueContract, GivesBackWhatWasWritten) {
  const std::string binary("a\0b\xFF", 4);

  ASSERT_TRUE(this->store().write({put(Table::kNamespaces, binary, binary + binary)}, false));

  EXPECT_EQ(value_of(this->store(), Table::kNamespaces, binary), binary + binary);
}

TYPED_TEST(KeyValueContract, AnswersNothingForAKeyThatIsNotThere) {
  const Result<std::optional<std::string>> got = this->store().get(Table::kSegments, "absent");

  ASSERT_TRUE(got.has_value());
  EXPECT_FALSE((*got).has_value());
}

TYPED_TEST(KeyValueContract, TellsAnEmptyValueFromNone) {
  ASSERT_TRUE(this->store().write({put(Table::kHeat, "k", "")}, false));

  EXPECT_EQ(value_of(this->store(), Table::kHeat, "k"), "");
}

TYPED_TEST(KeyValueContract, KeepsTablesApart) {
  ASSERT_TRUE(this->store().write(
      {put(Table::kSegments, "k", "seg"), put(Table::kPins, "k", "pin")}, false));

  EXPECT_EQ(value_of(this->store(), Table::kSegments, "k"), "seg");
  EXPECT_EQ(value_of(this->store(), Table::kPins, "k"), "pin");
  EXPECT_EQ(value_of(this->store(), Table::kHeat, "k"), "nothing");
}

TYPED_TEST(KeyValueContract, AppliesTheWritesOfABatchInOrder) {
  ASSERT_TRUE(this->store().write({put(Table::kHeat, "a", "1"),
                                   put(Table::kHeat, "a", "2"),
                                   put(Table::kHeat, "b", "1"),
                                   erase(Table::kHeat, "b"),
                                   erase(Table::kHeat, "never there")},
                                  true));

  EXPECT_EQ(value_of(this->store(), Table::kHeat, "a"), "2");
  EXPECT_EQ(value_of(this->store(), Table::kHeat, "b"), "nothing");
}

TYPED_TEST(KeyValueContract, ScansInOrderOfUnsignedBytes) {
  ASSERT_TRUE(this->store().write({put(Table::kNamespaces, "b", "2"),
                                   put(Table::kNamespaces, "\xFF", "4"),
                                   put(Table::kNamespaces, "a", "1"),
                                   put(Table::kNamespaces, "ba", "3")},
                                  false));

  const Result<Rows> rows = this->store().scan(Table::kNamespaces);

  ASSERT_TRUE(rows.has_value());
  EXPECT_EQ(*rows, (Rows{{"a", "1"}, {"b", "2"}, {"ba", "3"}, {"\xFF", "4"}}));
}

TYPED_TEST(KeyValueContract, ScansATableThatIsEmpty) {
  const Result<Rows> rows = this->store().scan(Table::kPins);

  ASSERT_TRUE(rows.has_value());
  EXPECT_TRUE((*rows).empty());
}

TYPED_TEST(KeyValueContract, TakesWritesFromSeveralThreads) {
  constexpr int kThreads = 4;
  constexpr int kWritesEach = 50;
  std::vector<std::thread> threads;
  threads.reserve(kThreads);

  for (int thread = 0; thread < kThreads; ++thread) {
    threads.emplace_back([&, thread] {
      for (int i = 0; i < kWritesEach; ++i) {
        const std::string key = std::to_string(thread) + "." + std::to_string(i);
        EXPECT_TRUE(this->store().write({put(Table::kHeat, key, key)}, false));
      }
    });
  }
  for (std::thread& thread : threads)
    thread.join();

  const Result<Rows> rows = this->store().scan(Table::kHeat);
  ASSERT_TRUE(rows.has_value());
  EXPECT_EQ((*rows).size(), std::size_t{kThreads} * kWritesEach);
}

TEST(FaultyKeyValue, FailsWhenToldAndChangesNothing) {
  InMemory real;
  FaultyKeyValue faulty(real.store());
  faulty.fail_writes_after(1);

  EXPECT_TRUE(faulty.write({put(Table::kHeat, "a", "1")}, true));
  const Status refused = faulty.write({put(Table::kHeat, "b", "1")}, true);
  faulty.fail_reads_after(0, {ErrorCode::kCorrupt, 0, "test"});

  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().code, ErrorCode::kIo);
  EXPECT_EQ(faulty.get(Table::kHeat, "a").error().code, ErrorCode::kCorrupt);
  EXPECT_EQ(faulty.scan(Table::kHeat).error().code, ErrorCode::kCorrupt);
  faulty.heal();
  EXPECT_EQ(value_of(faulty, Table::kHeat, "a"), "1");
  EXPECT_EQ(value_of(faulty, Table::kHeat, "b"), "nothing");
  EXPECT_EQ(faulty.synced_writes(), 1U);
}

TEST(KeyValueOnDisk, KeepsEverythingOverAnOrderlyRestart) {
  const TempDir directory;
  {
    const std::unique_ptr<KeyValue> store = open_in(directory / "kv");
    ASSERT_TRUE(store->write({put(Table::kNamespaces, "a", "1")}, false));
    ASSERT_TRUE(store->write({put(Table::kPins, "b", "2")}, true));
  }

  const std::unique_ptr<KeyValue> again = open_in(directory / "kv");

  EXPECT_EQ(value_of(*again, Table::kNamespaces, "a"), "1");
  EXPECT_EQ(value_of(*again, Table::kPins, "b"), "2");
}

// In a child: writes until it is killed, telling each synced write's number by the pipe.
[[noreturn]] void write_until_killed(const std::string& directory, int pipe) {
  const std::unique_ptr<KeyValue> store = open_in(directory);
  if (store == nullptr) ::_exit(1);
  for (std::uint32_t i = 0;; ++i) {
    if (!store->write({put(Table::kNamespaces, std::to_string(i), "x")}, true)) ::_exit(2);
    if (::write(pipe, &i, sizeof i) != sizeof i) ::_exit(3);
  }
}

TEST(KeyValueOnDisk, KeepsSyncedWritesOverKillNine) {
  constexpr std::uint32_t kWritesBeforeKill = 20;
  const TempDir directory;
  int ends[2] = {-1, -1};
  ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  const pid_t child = ::fork();
  if (child == 0) write_until_killed(directory / "kv", ends[1]);
  ASSERT_GT(child, 0);
  ::close(ends[1]);

  std::uint32_t told = 0;
  while (told < kWritesBeforeKill && ::read(ends[0], &told, sizeof told) == sizeof told) {
  }
  ::kill(child, SIGKILL);
  std::uint32_t last = told;
  while (::read(ends[0], &last, sizeof last) == sizeof last) {
  }
  ::close(ends[0]);
  ASSERT_EQ(::waitpid(child, nullptr, 0), child);

  ASSERT_GE(last, kWritesBeforeKill);
  const std::unique_ptr<KeyValue> again = open_in(directory / "kv");
  for (std::uint32_t i = 0; i <= last; ++i) {
    EXPECT_EQ(value_of(*again, Table::kNamespaces, std::to_string(i)), "x") << i;
  }
}

TEST(KeyValueOnDisk, StartsAfterATornEndOfItsLog) {
  const TempDir directory;
  {
    const std::unique_ptr<KeyValue> store = open_in(directory / "kv");
    ASSERT_TRUE(store->write({put(Table::kNamespaces, "a", "1")}, true));
  }
  for (const auto& file : std::filesystem::directory_iterator(directory / "kv")) {
    if (file.path().extension() != ".log") continue;
    std::ofstream log(file.path(), std::ios::binary | std::ios::app);
    log << std::string(100, '\x5A');
  }

  const std::unique_ptr<KeyValue> again = open_in(directory / "kv");

  ASSERT_NE(again, nullptr);
  EXPECT_EQ(value_of(*again, Table::kNamespaces, "a"), "1");
}

TEST(KeyValueOnDisk, IsLockedWhileItIsOpen) {
  const TempDir directory;
  const std::unique_ptr<KeyValue> first = open_in(directory / "kv");

  const auto second = open_rocksdb({.directory = directory / "kv", .in_memory = false});

  ASSERT_FALSE(second.has_value());
  EXPECT_EQ(second.error().code, ErrorCode::kLocked);
}

TEST(KeyValueOnDisk, IsLockedForAnotherProcess) {
  const TempDir directory;
  const std::unique_ptr<KeyValue> first = open_in(directory / "kv");
  // RocksDB remembers its own locks; another image of the same file shows what another process
  // sees.
  const pid_t child = ::fork();
  if (child == 0) {
    const std::filesystem::path linked = directory / "linked";
    std::filesystem::create_directory_symlink(directory / "kv", linked);
    const auto second = open_rocksdb({.directory = linked, .in_memory = false});
    ::_exit(!second && second.error().code == ErrorCode::kLocked ? 0 : 1);
  }
  int state = -1;
  ASSERT_EQ(::waitpid(child, &state, 0), child);

  EXPECT_EQ(state, 0);
}

TEST(KeyValueOnDisk, RefusesANewerFormatAndLeavesItAsItIs) {
  const TempDir directory;
  const std::string newer("\x02\0\0\0", 4);
  {
    const std::unique_ptr<KeyValue> store = open_in(directory / "kv");
    const std::string ours("\x01\0\0\0", 4);
    EXPECT_EQ(value_of(*store, Table::kMeta, kKeyValueFormatKey), ours);
    ASSERT_TRUE(store->write({put(Table::kMeta, std::string(kKeyValueFormatKey), newer)}, true));
  }

  const auto again = open_rocksdb({.directory = directory / "kv", .in_memory = false});

  ASSERT_FALSE(again.has_value());
  EXPECT_EQ(again.error().code, ErrorCode::kVersion);
  EXPECT_EQ(again.error().sys, 2);
}

TEST(KeyValueOnDisk, CallsAFormatRowThatIsNoNumberCorrupt) {
  for (const std::string& row : {std::string("1"), std::string(4, '\0')}) {
    const TempDir directory;
    {
      const std::unique_ptr<KeyValue> store = open_in(directory / "kv");
      ASSERT_TRUE(store->write({put(Table::kMeta, std::string(kKeyValueFormatKey), row)}, true));
    }

    const auto again = open_rocksdb({.directory = directory / "kv", .in_memory = false});

    ASSERT_FALSE(again.has_value());
    EXPECT_EQ(again.error().code, ErrorCode::kCorrupt);
  }
}

TEST(KeyValueOnDisk, CallsRowsWithoutAFormatCorrupt) {
  const TempDir directory;
  {
    const std::unique_ptr<KeyValue> store = open_in(directory / "kv");
    ASSERT_TRUE(store->write(
        {erase(Table::kMeta, std::string(kKeyValueFormatKey)), put(Table::kPins, "a", "1")}, true));
  }

  const auto again = open_rocksdb({.directory = directory / "kv", .in_memory = false});

  ASSERT_FALSE(again.has_value());
  EXPECT_EQ(again.error().code, ErrorCode::kCorrupt);
}

TEST(KeyValueOnDisk, CallsDamagedTablesCorrupt) {
  const TempDir directory;
  { const std::unique_ptr<KeyValue> store = open_in(directory / "kv"); }
  std::ofstream(directory / "kv/CURRENT", std::ios::trunc) << "no manifest\n";

  const auto again = open_rocksdb({.directory = directory / "kv", .in_memory = false});

  ASSERT_FALSE(again.has_value());
  EXPECT_EQ(again.error().code, ErrorCode::kCorrupt);
}

TEST(KeyValueOnDisk, NeedsAParentDirectory) {
  const auto opened = open_rocksdb({.directory = "/proc/self/nowhere/kv", .in_memory = false});

  ASSERT_FALSE(opened.has_value());
  EXPECT_EQ(opened.error().code, ErrorCode::kIo);
}

TEST(KeyValueOnDisk, SaysWhenItMayNotWrite) {
  const TempDir directory;
  ASSERT_EQ(::chmod(directory.path().c_str(), 0555), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    if (::geteuid() == 0 && ::setresuid(65'534, 65'534, 65'534) != 0) ::_exit(2);
    const auto opened = open_rocksdb({.directory = directory / "kv", .in_memory = false});
    ::_exit(!opened && opened.error().code == ErrorCode::kPermission ? 0 : 1);
  }
  int state = -1;
  ASSERT_EQ(::waitpid(child, &state, 0), child);

  EXPECT_EQ(state, 0);
}

}  // namespace
}  // namespace cairn::storage
