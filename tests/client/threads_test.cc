// copy_threads, many callers of one client, and forked children.
#include "tests/client/client_fixture.h"

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <thread>

namespace cairn::client {
namespace {

class ThreadsTest : public ClientTest {};

TEST_F(ThreadsTest, CopyThreadsMoveTheSameBytes) {
  ClientOptions options;
  options.copy_threads = 3;
  connect(options);
  Blocks small(1, 100, 10'000);
  Blocks large(1'000, 3, 5'000'000);
  for (Blocks* blocks : {&small, &large}) {
    const std::size_t count = blocks->digests.size();
    ASSERT_TRUE(client_->put(blocks->put_request(ns_)).has_value());
    EXPECT_EQ(blocks->statuses(), all(count, BlockStatus::kOk));
    ASSERT_TRUE(client_->get(blocks->get_request(ns_)).has_value());
    EXPECT_EQ(blocks->right(), count);
  }
  daemon_->byte_of(key(1'001), 4'999'999) ^= std::byte{1};
  ASSERT_TRUE(client_->get(large.get_request(ns_)).has_value());
  EXPECT_EQ(large.statuses(),
            (std::vector{BlockStatus::kOk, BlockStatus::kCorrupt, BlockStatus::kCut}));
  run_for(Milliseconds(1));
  EXPECT_EQ(daemon_->lent_count(), 0U);
}

TEST_F(ThreadsTest, ACancelledGetIsReturnedWhenItsCopiesHaveEnded) {
  ClientOptions options;
  options.copy_threads = 1;
  connect(options);
  Blocks blocks(1, 3, 5'000'000);
  ASSERT_TRUE(client_->put(blocks.put_request(ns_)).has_value());
  auto queue = client_->make_queue();
  const auto ticket = (*queue)->submit(blocks.get_request(ns_));
  ASSERT_TRUE(ticket.has_value());
  run_for(Milliseconds(2));
  (*queue)->poll({});
  (*queue)->cancel(*ticket);
  const Completion done = finish(**queue, *ticket);
  EXPECT_TRUE(done.is_done);
  run_for(Milliseconds(1));
  EXPECT_EQ(daemon_->lent_count(), 0U);
  EXPECT_EQ((*queue)->in_flight(), 0U);
}

TEST_F(ThreadsTest, CallsOfManyThreadsTakeTurns) {
  constexpr int kThreads = 4;
  constexpr int kRounds = 20;
  connect();
  std::atomic<int> right{0};
  std::vector<std::thread> threads;
  threads.reserve(kThreads);
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (int round = 0; round < kRounds; ++round) {
        Blocks blocks(static_cast<std::uint64_t>(1'000 * t + round), 3, 5'000);
        std::vector<BlockView> views(3);
        const bool is_put = client_->put(blocks.put_request(ns_)).has_value();
        const bool is_read = client_
                                 ->get_views({.name_space = ns_,
                                              .digests = blocks.digests,
                                              .is_chain = true,
                                              .verify = {},
                                              .views = views,
                                              .results = blocks.results,
                                              .call = {}})
                                 .has_value();
        if (is_put && is_read && std::ranges::equal(views[2].pieces[0], blocks.payloads[2]))
          ++right;
        client_->release(views);
      }
    });
  }
  for (std::thread& thread : threads)
    thread.join();
  EXPECT_EQ(right.load(), kThreads * kRounds);
  ASSERT_TRUE(client_->ping().has_value());
  run_for(Milliseconds(1));
  EXPECT_EQ(daemon_->lent_count(), 0U);
}

TEST_F(ThreadsTest, AForkedChildIsToldThatItsHandlesAreInvalid) {
  connect();
  auto queue = std::move(*client_->make_queue());
  Blocks blocks(1, 1, 100);
  ASSERT_TRUE(client_->put(blocks.put_request(ns_)).has_value());
  std::vector<BlockView> views(1);
  ASSERT_TRUE(client_
                  ->get_views({.name_space = ns_,
                               .digests = blocks.digests,
                               .is_chain = true,
                               .verify = {},
                               .views = views,
                               .results = blocks.results,
                               .call = {}})
                  .has_value());
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    const bool is_refused =
        client_->get(blocks.get_request(ns_)).error().code == ErrorCode::kInvalid &&
        queue->submit(blocks.get_request(ns_)).error().code == ErrorCode::kInvalid &&
        client_->make_queue().error().code == ErrorCode::kInvalid &&
        client_->ping().error().code == ErrorCode::kInvalid;
    client_->release(views);
    const int mapped = slabs_.mapped;
    queue.reset();
    client_.reset();
    ::_exit(is_refused && slabs_.mapped == mapped ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  EXPECT_TRUE(std::ranges::equal(views[0].pieces[0], blocks.payloads[0]));
}

TEST(Options, ValidateNamesTheFirstFieldThatIsWrong) {
  const auto wrong = [](auto change) {
    ClientOptions options;
    change(options);
    return std::string(options.validate().value_or("none"));
  };
  EXPECT_EQ(wrong([](ClientOptions&) {}), "none");
  EXPECT_EQ(wrong([](ClientOptions& o) { o.server = "here"; }), "server");
  EXPECT_EQ(wrong([](ClientOptions& o) { o.name = std::string(201, 'x'); }), "name");
  EXPECT_EQ(wrong([](ClientOptions& o) { o.token = std::string(5'000, 'x'); }), "token");
  EXPECT_EQ(wrong([](ClientOptions& o) { o.deadline = Milliseconds(0); }), "deadline");
  EXPECT_EQ(wrong([](ClientOptions& o) { o.connect_timeout = std::chrono::minutes(2); }),
            "connect_timeout");
  EXPECT_EQ(wrong([](ClientOptions& o) { o.backoff_min = Milliseconds(0); }), "backoff_min");
  EXPECT_EQ(wrong([](ClientOptions& o) { o.backoff_max = Milliseconds(1); }), "backoff_max");
  EXPECT_EQ(wrong([](ClientOptions& o) { o.copy_threads = 65; }), "copy_threads");
  EXPECT_EQ(wrong([](ClientOptions& o) { o.spin = Nanoseconds(-1); }), "spin");
  EXPECT_EQ(wrong([](ClientOptions& o) { o.spin = Milliseconds(2); }), "spin");
  EXPECT_EQ(wrong([](ClientOptions& o) { o.window = 1'025; }), "window");
}

}  // namespace
}  // namespace cairn::client
