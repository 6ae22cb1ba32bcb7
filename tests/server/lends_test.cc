#include "server/lends.h"

#include "base/random.h"
#include "server/log.h"
#include "server/metrics.h"
#include "server/session.h"
#include "tests/support/seed.h"

#include <gtest/gtest.h>

#include <array>
#include <map>
#include <numeric>

namespace cairn::server {
namespace {

Lend lend(LendId id, LendKind kind = LendKind::kRead) {
  Lend out;
  out.id = id;
  out.frame = static_cast<std::uint32_t>(id % 100 + 1);
  out.kind = kind;
  return out;
}

TEST(LendTable, AgreesWithAMapUnderRandomChanges) {
  const std::uint64_t seed = testing::test_seed();
  SCOPED_TRACE(seed);
  SeededRandom random(seed);
  LendTable table;
  std::map<LendId, std::uint32_t> model;
  LendId next = 1;
  for (int step = 0; step < 50'000; ++step) {
    if (model.empty() || random.below(100) < (step < 25'000 ? 60U : 40U)) {
      next += 1 + random.below(3);
      table.insert(lend(next));
      model[next] = lend(next).frame;
    } else {
      auto victim = model.lower_bound(random.below(next));
      if (victim == model.end()) victim = model.begin();
      table.erase(victim->first);
      model.erase(victim);
    }
    const LendId probe = random.below(next + 10);
    EXPECT_EQ(table.find(probe) != nullptr, model.contains(probe));
    ASSERT_EQ(table.size(), model.size());
  }
  const std::uint64_t bytes = std::accumulate(
      model.begin(), model.end(), std::uint64_t{0}, [](std::uint64_t sum, const auto& entry) {
        return sum + entry.second;
      });
  EXPECT_EQ(table.bytes(), ByteCount(bytes));
  EXPECT_EQ(table.take_all().size(), model.size());
  EXPECT_EQ(table.size(), 0U);
  EXPECT_EQ(table.find(next), nullptr);
}

TEST(LendTable, KnowsNoLendZero) {
  EXPECT_EQ(LendTable().find(0), nullptr);
}

TEST(LentAccount, NeverExceedsItsLimit) {
  LentAccount account;
  EXPECT_TRUE(account.try_add(ByteCount(60), ByteCount(100)));
  EXPECT_FALSE(account.try_add(ByteCount(41), ByteCount(100)));
  EXPECT_FALSE(account.try_add(ByteCount(~std::uint64_t{0}), ByteCount(100)));
  EXPECT_TRUE(account.try_add(ByteCount(40), ByteCount(100)));
  account.sub(ByteCount(100));
  EXPECT_EQ(account.bytes(), ByteCount(0));
}

TEST(LendIds, RiseAcrossBoots) {
  LendIds before(1'700'000'000'000);
  LendIds after(1'700'000'000'001);
  const LendId ten = before.take(10);
  EXPECT_EQ(before.take(1), ten + 10);
  EXPECT_GT(after.take(1), before.take(1) + 4'000'000);
}

TEST(Session, HoldsNoMoreLendsThanOneResumeCanList) {
  Session session({}, nullptr);
  EXPECT_EQ(session.claim_lends(30'000), 30'000U);
  EXPECT_EQ(session.claim_lends(30'000), wire::kSessionLendsMax - 30'000U);
  EXPECT_EQ(session.claim_lends(1), 0U);
  session.give_back_claims(5);
  EXPECT_EQ(session.claim_lends(10), 5U);
}

TEST(Session, TakesOutTheLendsThatWereAskedForOnly) {
  Session session({}, nullptr);
  session.claim_lends(3);
  ASSERT_TRUE(
      session.add_lends(std::array{lend(1), lend(2, LendKind::kWrite), lend(3, LendKind::kWrite)}));
  const std::array<LendId, 4> ids = {1, 2, 2, 9};
  std::array<Lend, 4> out;
  session.take_lends(ids, LendKind::kWrite, out);
  EXPECT_EQ(out[0].kind, LendKind::kRead);
  EXPECT_EQ(out[1].id, 2U);
  EXPECT_EQ(out[2].id, 0U);
  EXPECT_EQ(out[3].id, 0U);
  EXPECT_EQ(session.lend_count(), 2U);
  EXPECT_TRUE(session.has_lend(1));
}

TEST(Metrics, PutALatencyIntoItsBucket) {
  LatencyHistogram histogram;
  histogram.observe(Nanoseconds(1));
  histogram.observe(std::chrono::microseconds(1));
  histogram.observe(Nanoseconds(1'001));
  histogram.observe(std::chrono::seconds(6));
  const auto counts = histogram.counts();
  EXPECT_EQ(counts[0], 2U);
  EXPECT_EQ(counts[1], 1U);
  EXPECT_EQ(counts.back(), 1U);
  EXPECT_NEAR(histogram.sum_seconds(), 6.000002, 1e-6);
}

TEST(Metrics, NamesEveryOperation) {
  EXPECT_STREQ(operation_name(Operation::kHello), "hello");
  EXPECT_STREQ(operation_name(Operation::kStats), "stats");
}

TEST(Log, WritesAnEventWithItsFields) {
  EXPECT_EQ(format_event("session_opened", {{"session", "12ab"}, {"peer", "pid 7"}}),
            "session_opened session=12ab peer=\"pid 7\"");
  EXPECT_EQ(format_event("x", {{"a", ""}, {"b", "say \"hi\"\n"}}),
            "x a=\"\" b=\"say \\\"hi\\\"\\x0a\"");
}

}  // namespace
}  // namespace cairn::server
