#include "server/data_directory.h"

#include "server/start_failure.h"
#include "tests/support/faulty_key_value.h"
#include "tests/support/manual_clock.h"
#include "tests/support/process_runner.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <string>

namespace cairn::server {
namespace {

using storage::Table;
using testing::FaultyKeyValue;
using testing::ManualClock;
using testing::TempDir;

std::string failure_of(const std::string& path) {
  const auto opened = DataDirectory::open(path, "cairnd.toml:3");
  EXPECT_FALSE(opened.has_value());
  if (opened) return "";
  EXPECT_EQ(opened.error().exit_code, kExitUnavailable);
  return opened.error().message;
}

TEST(DataDirectory, IsMadeForThisUserAlone) {
  const TempDir parent;

  ASSERT_TRUE(DataDirectory::open(parent / "data", "default").has_value());

  struct stat made {};
  ASSERT_EQ(::stat((parent / "data").c_str(), &made), 0);
  EXPECT_EQ(made.st_mode & 07777U, 0700U);
}

TEST(DataDirectory, CanBeOpenedAgainWhenItWasClosed) {
  const TempDir parent;
  {
    auto first = DataDirectory::open(parent / "data", "default");
    ASSERT_TRUE(first.has_value());
    ASSERT_TRUE(first->key_value().write({{Table::kPins, "k", "v"}}, true));
  }

  auto second = DataDirectory::open(parent / "data", "default");

  ASSERT_TRUE(second.has_value());
  EXPECT_EQ(*second->key_value().get(Table::kPins, "k"), "v");
}

TEST(DataDirectory, NamesTheDaemonThatHoldsIt) {
  const TempDir parent;
  const auto first = DataDirectory::open(parent / "data", "default");
  ASSERT_TRUE(first.has_value());

  const std::string message = failure_of(parent / "data");

  EXPECT_EQ(message.rfind("data_dir = " + parent.path() +
                              "/data (cairnd.toml:3): in use by another daemon, pid " +
                              std::to_string(::getpid()) + " (",
                          0),
            0U)
      << message;
}

TEST(DataDirectory, NeedsAParent) {
  const TempDir parent;

  EXPECT_NE(failure_of(parent / "a/b").find("its parent does not exist"), std::string::npos);
}

TEST(DataDirectory, SaysThatItMayNotWrite) {
  const TempDir parent;
  ASSERT_EQ(::chmod(parent.path().c_str(), 0555), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    if (::geteuid() == 0 && ::setresuid(65'534, 65'534, 65'534) != 0) ::_exit(2);
    const auto opened = DataDirectory::open(parent / "data", "default");
    const bool is_named =
        !opened && opened.error().exit_code == kExitUnavailable &&
        opened.error().message.find("may not write there (mkdir: Permission denied)") !=
            std::string::npos;
    ::_exit(is_named ? 0 : 1);
  }
  int state = -1;
  ASSERT_EQ(::waitpid(child, &state, 0), child);

  EXPECT_EQ(state, 0);
}

TEST(DataDirectory, RefusesANewerFormat) {
  const TempDir parent;
  {
    auto first = DataDirectory::open(parent / "data", "default");
    ASSERT_TRUE(first.has_value());
    ASSERT_TRUE(
        first->key_value().write({{Table::kMeta, "FORMAT", std::string("\x07\0\0\0", 4)}}, true));
  }

  EXPECT_NE(failure_of(parent / "data").find("written by a newer version of cairnd"),
            std::string::npos);
}

TEST(DataDirectory, SaysThatItIsDamaged) {
  const TempDir parent;
  ASSERT_TRUE(DataDirectory::open(parent / "data", "default").has_value());
  std::ofstream(parent / "data/rocksdb/CURRENT", std::ios::trunc) << "nonsense\n";

  EXPECT_NE(failure_of(parent / "data").find("what is there is damaged"), std::string::npos);
}

TEST(DataDirectory, IsNotAFile) {
  const TempDir parent;
  std::ofstream(parent / "data") << "x";

  const auto opened = DataDirectory::open(parent / "data", "default");

  ASSERT_FALSE(opened.has_value());
  EXPECT_EQ(opened.error().exit_code, kExitFailed);
  EXPECT_NE(opened.error().message.find("Not a directory"), std::string::npos);
}

class BootCounter : public ::testing::Test {
 protected:
  std::unique_ptr<storage::KeyValue> real_ =
      *storage::open_rocksdb({.directory = "", .in_memory = true});
  FaultyKeyValue store_{*real_};
  ManualClock clock_;
};

TEST_F(BootCounter, IsTheTimeOfDayAtTheFirstStart) {
  clock_.set_unix_ms(1'000);

  EXPECT_EQ(*next_boot_counter(store_, clock_), 1'000U);
  EXPECT_EQ(store_.synced_writes(), 1U);
}

TEST_F(BootCounter, RisesEvenWhenTheTimeOfDayGoesBack) {
  clock_.set_unix_ms(1'000);
  ASSERT_TRUE(next_boot_counter(store_, clock_));
  clock_.set_unix_ms(5);

  EXPECT_EQ(*next_boot_counter(store_, clock_), 1'001U);
  EXPECT_EQ(*next_boot_counter(store_, clock_), 1'002U);
}

TEST_F(BootCounter, PassesOnThatTheStoreFails) {
  store_.fail_writes_after(0);
  EXPECT_EQ(next_boot_counter(store_, clock_).error().code, ErrorCode::kIo);
  store_.fail_reads_after(0);
  EXPECT_EQ(next_boot_counter(store_, clock_).error().code, ErrorCode::kIo);
}

TEST_F(BootCounter, CallsARowThatIsNoNumberCorrupt) {
  ASSERT_TRUE(store_.write({{Table::kMeta, "boot", "1"}}, true));

  EXPECT_EQ(next_boot_counter(store_, clock_).error().code, ErrorCode::kCorrupt);
}

TEST(LockHolder, IsEmptyWhenNobodyHoldsTheFile) {
  const TempDir parent;
  std::ofstream(parent / "lock") << "";

  EXPECT_EQ(lock_holder(parent / "lock"), "");
  EXPECT_EQ(lock_holder(parent / "absent"), "");
}

}  // namespace
}  // namespace cairn::server
