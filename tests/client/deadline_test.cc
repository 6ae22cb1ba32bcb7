#include "tests/client/client_fixture.h"

#include <algorithm>

namespace cairn::client {
namespace {

using wire::MessageType;

class DeadlineTest : public ClientTest {
 protected:
  DeadlineTest() {
    connect();
    queue_ = std::move(*client_->make_queue());
  }
  Queue& queue() { return *queue_; }
  // Time that finishing `ticket` takes.
  Nanoseconds time_of(Ticket ticket) {
    const MonotonicTime begin = clock_.now();
    finish(queue(), ticket);
    return clock_.now() - begin;
  }

  std::unique_ptr<Queue> queue_;
};

TEST_F(DeadlineTest, EveryTicketEndsThoughTheDaemonIsSilent) {
  Blocks blocks(1, 70, 100);
  daemon_->is_silent = true;
  auto get = blocks.get_request(ns_);
  get.call.deadline = Milliseconds(300);
  EXPECT_LE(time_of(*queue().submit(get)), Milliseconds(310));
  EXPECT_EQ(blocks.statuses(), all(70, BlockStatus::kTimeout));
  auto put = blocks.put_request(ns_);
  put.call.deadline = Milliseconds(300);
  EXPECT_LE(time_of(*queue().submit(put)), Milliseconds(310));
  EXPECT_EQ(blocks.statuses(), all(70, BlockStatus::kTimeout));
  LookupRequest lookup;
  lookup.name_space = ns_;
  lookup.digests = blocks.digests;
  lookup.call.deadline = Milliseconds(300);
  EXPECT_EQ(finish(queue(), *queue().submit(lookup)).lookup.status, BlockStatus::kTimeout);
}

TEST_F(DeadlineTest, BlockingCallsEndByTheirDeadlineToo) {
  daemon_->is_silent = true;
  const MonotonicTime begin = clock_.now();
  const auto pinged = client_->ping();
  ASSERT_FALSE(pinged.has_value());
  EXPECT_EQ(pinged.error().code, ErrorCode::kTimeout);
  EXPECT_LE(clock_.now() - begin, ClientOptions{}.deadline + Milliseconds(10));
}

TEST_F(DeadlineTest, ALateGetReplyIsGivenBackAtOnce) {
  Blocks blocks(1, 3, 100);
  ASSERT_TRUE(client_->put(blocks.put_request(ns_)).has_value());
  daemon_->is_silent = true;
  auto get = blocks.get_request(ns_);
  get.call.deadline = Milliseconds(100);
  finish(queue(), *queue().submit(get));
  EXPECT_EQ(blocks.statuses(), all(3, BlockStatus::kTimeout));
  daemon_->is_silent = false;
  run_for(Milliseconds(5));
  EXPECT_EQ(daemon_->lent_count(), 3U);
  EXPECT_EQ(queue().poll({}), 0U);
  run_for(Milliseconds(5));
  EXPECT_EQ(daemon_->lent_count(), 0U);
  EXPECT_EQ(daemon_->releases.size(), 3U);
}

TEST_F(DeadlineTest, ALateReservationIsAborted) {
  Blocks blocks(1, 3, 100);
  daemon_->is_silent = true;
  auto put = blocks.put_request(ns_);
  put.call.deadline = Milliseconds(100);
  finish(queue(), *queue().submit(put));
  daemon_->is_silent = false;
  run_for(Milliseconds(5));
  EXPECT_EQ(daemon_->lent_count(), 3U);
  queue().poll({});
  run_for(Milliseconds(5));
  EXPECT_EQ(daemon_->aborts.size(), 3U);
  EXPECT_EQ(daemon_->lent_count(), 0U);
}

TEST_F(DeadlineTest, ALateCommitReplyGivesItsNextReservationBack) {
  Blocks blocks(1, 300, 100);
  int commits = 0;
  daemon_->intercept = [&](auto&, const wire::FrameView& frame) {
    if (frame.type == MessageType::kCommit) daemon_->is_silent = ++commits == 1;
    return false;
  };
  // What was read before it fell silent is answered, a moment too late.
  daemon_->change_commit = [&](wire::CommitReply&) { clock_.advance(Milliseconds(200)); };
  auto put = blocks.put_request(ns_);
  put.call.deadline = Milliseconds(100);
  finish(queue(), *queue().submit(put));
  daemon_->is_silent = false;
  for (int i = 0; i < 10; ++i) {
    run_for(Milliseconds(5));
    queue().poll({});
  }
  EXPECT_EQ(daemon_->lent_count(), 0U);
}

TEST_F(DeadlineTest, CancelledKeysEndAtOnceAndTheDaemonHears) {
  Blocks blocks(1, 3, 100);
  daemon_->is_silent = true;
  const Ticket ticket = *queue().submit(blocks.get_request(ns_));
  queue().cancel(ticket);
  EXPECT_EQ(time_of(ticket), Nanoseconds(0));
  EXPECT_EQ(blocks.statuses(), all(3, BlockStatus::kCancelled));
  queue().cancel(ticket);
  daemon_->is_silent = false;
  run_for(Milliseconds(5));
  ASSERT_EQ(daemon_->cancels.size(), 1U);
}

TEST_F(DeadlineTest, AFullWindowAnswersBusyAndChangesNothing) {
  daemon_->is_silent = true;
  ClientOptions options;
  options.window = 2;
  client_.reset();
  queue_.reset();
  daemon_->is_silent = false;
  connect(options);
  queue_ = std::move(*client_->make_queue());
  daemon_->is_silent = true;
  Blocks a(1, 1, 10);
  Blocks b(2, 1, 10);
  Blocks c(3, 1, 10);
  ASSERT_TRUE(queue().submit(a.get_request(ns_)).has_value());
  ASSERT_TRUE(queue().submit(b.get_request(ns_)).has_value());
  EXPECT_EQ(queue().submit(c.get_request(ns_)).error().code, ErrorCode::kBusy);
  EXPECT_EQ(queue().in_flight(), 2U);
  queue_.reset();
}

TEST_F(DeadlineTest, TheDaemonsWindowIsNeverExceeded) {
  daemon_->limits.requests_in_flight = 3;
  queue_.reset();
  client_.reset();
  connect();
  queue_ = std::move(*client_->make_queue());
  daemon_->is_silent = true;
  std::vector<std::unique_ptr<Blocks>> many;
  std::vector<Ticket> tickets;
  for (std::uint64_t i = 0; i < 10; ++i) {
    many.push_back(std::make_unique<Blocks>(i, 1, 10));
    tickets.push_back(*queue().submit(many.back()->get_request(ns_)));
  }
  run_for(Milliseconds(1));
  daemon_->is_silent = false;
  daemon_->gets.clear();
  daemon_->turn();
  EXPECT_EQ(daemon_->gets.size(), 3U);
  for (const Ticket ticket : tickets)
    finish(queue(), ticket);
  EXPECT_EQ(daemon_->gets.size(), 10U);
}

TEST_F(DeadlineTest, RequestsNeverCarryZeroMilliseconds) {
  Blocks blocks(1, 1, 10);
  auto get = blocks.get_request(ns_);
  get.call.deadline = Milliseconds(1);
  finish(queue(), *queue().submit(get));
  run_for(Milliseconds(1));
  ASSERT_EQ(daemon_->gets.size(), 1U);
  EXPECT_EQ(daemon_->gets[0].context.remaining_ms, 1U);
  EXPECT_EQ(daemon_->gets[0].context.name_space, ns_.digest);
  EXPECT_EQ(daemon_->gets[0].context.epoch, ns_.epoch);
}

TEST_F(DeadlineTest, AQueueThatEndsGivesBackWhatItStillAsks) {
  Blocks blocks(1, 3, 100);
  ASSERT_TRUE(client_->put(blocks.put_request(ns_)).has_value());
  ASSERT_TRUE(queue().submit(blocks.get_request(ns_)).has_value());
  queue_.reset();
  run_for(Milliseconds(5));
  EXPECT_EQ(daemon_->gets.size(), 1U);
  EXPECT_EQ(daemon_->lent_count(), 0U);
}

}  // namespace
}  // namespace cairn::client
