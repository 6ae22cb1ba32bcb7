// The file system of pool.dir fills up under a running daemon, by somebody else's doing.
#include "client/cli/payload.h"
#include "tests/system/daemon_fixture.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mount.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <vector>

namespace cairn::testing {
namespace {

constexpr std::size_t kBlockBytes = 4'096;
constexpr std::size_t kBlocks = 4'096;

// A tmpfs of its own, which a test may fill.
class SmallFileSystem {
 public:
  SmallFileSystem()
      : is_mounted_(::mount("none", mount_.path().c_str(), "tmpfs", 0, "size=80m") == 0) {}
  ~SmallFileSystem() {
    if (is_mounted_) ::umount2(mount_.path().c_str(), MNT_DETACH);
  }
  SmallFileSystem(const SmallFileSystem&) = delete;
  SmallFileSystem& operator=(const SmallFileSystem&) = delete;

  bool is_mounted() const { return is_mounted_; }
  std::string operator/(std::string_view name) const { return mount_ / name; }
  void fill() const {
    const int fd = ::open((mount_ / "fill").c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
    ASSERT_GE(fd, 0);
    const std::vector<std::byte> page(4'096, std::byte{1});
    while (::write(fd, page.data(), page.size()) > 0) {
    }
    EXPECT_EQ(errno, ENOSPC);
    ::close(fd);
  }
  void empty() const { ::unlink((mount_ / "fill").c_str()); }

 private:
  TempDir mount_;
  bool is_mounted_;
};

// Puts small blocks, which need one record after another; how many were taken.
std::size_t put_many(client::Client& client,
                     const client::Namespace& name_space,
                     std::size_t first,
                     std::size_t blocks = kBlocks) {
  constexpr std::size_t kBatch = 64;
  const std::vector<std::byte> body(kBlockBytes, std::byte{7});
  const std::vector<std::span<const std::byte>> sources(kBatch, body);
  std::vector<client::KeyResult> results(kBatch);
  std::size_t taken = 0;
  for (std::size_t at = 0; at < blocks; at += kBatch) {
    std::vector<BlockDigest> digests;
    for (std::size_t i = 0; i < kBatch; ++i)
      digests.push_back(cli::trace_digest(first + at + i));
    EXPECT_TRUE(client.put({.name_space = name_space,
                            .digests = digests,
                            .sources = sources,
                            .placement = {.is_chain = false},
                            .results = results}));
    for (const client::KeyResult& result : results) {
      const bool is_busy =
          result.status == BlockStatus::kBusy && result.reason == BusyReason::kFrames;
      EXPECT_TRUE(result.status == BlockStatus::kOk || is_busy) << block_status_name(result.status);
      taken += result.status == BlockStatus::kOk ? 1 : 0;
    }
  }
  return taken;
}

TEST(FullDisk, TheDaemonGoesOnAndEvictsForWantOfRecords) {
  const SmallFileSystem files;
  if (!files.is_mounted()) GTEST_SKIP() << "mounting a tmpfs is not permitted here";
  DaemonFixture daemon({.pool = "64MiB", .settings = {"pool.dir=" + (files / "pool")}});
  ASSERT_TRUE(daemon.start());
  const auto client = daemon.connect();
  ASSERT_NE(client, nullptr);
  const client::Namespace name_space = open_test_namespace(*client);
  EXPECT_EQ(put_many(*client, name_space, 0, 64), 64U);
  ASSERT_NO_FATAL_FAILURE(files.fill());

  EXPECT_EQ(put_many(*client, name_space, 64), kBlocks);
  EXPECT_LT(daemon.statistic(*client, "/pool/resident_blocks"), kBlocks);
  ASSERT_FALSE(daemon.process().wait_exit(Milliseconds(0)).has_value())
      << daemon.process().errors();

  files.empty();
  EXPECT_EQ(put_many(*client, name_space, 10'000), kBlocks);
  EXPECT_GE(daemon.statistic(*client, "/pool/resident_blocks"), kBlocks);
  EXPECT_EQ(daemon.stop(), 0);
}

TEST(FullDisk, NewClientsAreServedOnceThereIsRoom) {
  const SmallFileSystem files;
  if (!files.is_mounted()) GTEST_SKIP() << "mounting a tmpfs is not permitted here";
  DaemonFixture daemon({.pool = "64MiB", .settings = {"pool.dir=" + (files / "pool")}});
  ASSERT_TRUE(daemon.start());
  ASSERT_NO_FATAL_FAILURE(files.fill());
  client::ClientOptions options;
  options.server = daemon.server();
  const auto on_full = client::Client::connect(options);
  if (!on_full) {
    EXPECT_EQ(on_full.error().code, ErrorCode::kPeerGone);
  }
  files.empty();
  const auto client = daemon.connect();
  ASSERT_NE(client, nullptr);
  EXPECT_EQ(put_many(*client, open_test_namespace(*client), 0), kBlocks);
  EXPECT_EQ(daemon.stop(), 0);
}

}  // namespace
}  // namespace cairn::testing
