// Blocks through a mapping: put, get, lookup, release, and what they answer.
#include "tests/server/node_fixture.h"

namespace cairn::server {
namespace {

class NodeBlocks : public NodeTest {};

TEST_F(NodeBlocks, GivesBackTheBytesThatWerePut) {
  const auto client = join_in();
  const auto digests = keys(1, 3);
  const auto statuses = put(*client, digests, 300'000, 7);
  EXPECT_EQ(statuses, std::vector<BlockStatus>(3, BlockStatus::kOk));
  EXPECT_EQ(lent_bytes(), 0U);
  const wire::GetReply reply = get(*client, digests);
  ASSERT_EQ(reply.grants.size(), 3U);
  for (std::size_t i = 0; i < 3; ++i) {
    const wire::Grant& grant = reply.grants[i];
    EXPECT_EQ(grant.status, BlockStatus::kOk);
    EXPECT_NE(grant.lend, 0U);
    const auto expected = body(7 + i, 300'000);
    EXPECT_EQ(bytes_of(*client, reply, i), expected);
    const auto sums =
        std::span(reply.checksums).subspan(grant.checksum_first, grant.checksum_count);
    EXPECT_TRUE(std::ranges::equal(sums, checksums_of(expected)));
  }
  EXPECT_EQ(lent_bytes(), 3 * round_up(300'000 + 4'096, 4'096));
  release(*client, reply);
  run_for(Milliseconds(5));
  EXPECT_EQ(lent_bytes(), 0U);
}

}  // namespace
}  // namespace cairn::server
