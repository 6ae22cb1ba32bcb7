// The examples of docs/sdk.md, compiled and run. What lies between the marks stands there word for
// word.
#include "client/client.h"
#include "tests/client/client_fixture.h"

#include <algorithm>
#include <cstddef>
#include <fstream>
#include <span>
#include <sstream>
#include <string>
#include <vector>

namespace cairn::client {
namespace {

// [blocking]
// Gets the blocks of a prefix that are there and puts the others.
std::size_t fill(Client& client,
                 const Namespace& name_space,
                 std::span<const BlockDigest> chain,
                 std::span<const std::span<std::byte>> blocks) {
  std::vector<KeyResult> results(chain.size());
  const Status got = client.get(
      {.name_space = name_space, .digests = chain, .targets = blocks, .results = results});
  if (!got) return 0;  // misuse: a span of another length, a forked child
  const auto is_hit = [](const KeyResult& result) { return result.status == BlockStatus::kOk; };
  const auto hits = std::size_t(std::ranges::find_if_not(results, is_hit) - results.begin());

  std::vector<std::span<const std::byte>> sources;
  for (const std::span<std::byte> block : blocks.subspan(hits)) {
    // ... compute the block ...
    sources.emplace_back(block);
  }
  PutRequest put{.name_space = name_space,
                 .digests = chain.subspan(hits),
                 .sources = sources,
                 .results = std::span(results).subspan(hits)};
  put.placement.position = static_cast<std::uint32_t>(hits);
  if (hits > 0) put.placement.parent = chain[hits - 1];
  static_cast<void>(client.put(put));  // kBusy and kDeclined are answers too
  return hits;
}
// [blocking]

// [queue]
// Reads blocks in place while the caller does something else.
std::uint64_t add_up(Client& client,
                     const Clock& clock,
                     const Namespace& name_space,
                     std::span<const BlockDigest> keys) {
  auto queue = client.make_queue();
  if (!queue) return 0;
  std::vector<BlockView> views(keys.size());
  std::vector<KeyResult> results(keys.size());
  const auto ticket = (*queue)->submit(GetViewsRequest{
      .name_space = name_space, .digests = keys, .views = views, .results = results});
  if (!ticket) return 0;
  bool is_returned = false;
  while (!is_returned) {
    // An event loop would watch (*queue)->fd() and call poll() by next_due() instead.
    (*queue)->wait(Deadline::after(clock, Milliseconds(100)));
    Completion completion;
    while ((*queue)->poll(std::span(&completion, 1)) > 0)
      is_returned = completion.is_returned;
  }
  std::uint64_t sum = 0;
  for (const BlockView& view : views) {
    for (const auto piece : std::span(view.pieces).first(view.piece_count)) {
      for (const std::byte byte : piece)
        sum += std::to_integer<std::uint64_t>(byte);
    }
  }
  (*queue)->release(views);
  return sum;
}
// [queue]

class ExampleTest : public ClientTest {
 protected:
  ExampleTest() { connect(); }
};

TEST_F(ExampleTest, GetsWhatIsThereAndPutsTheRest) {
  Blocks blocks(1, 4, 1'000);
  std::vector<std::span<std::byte>> memory;
  for (auto& payload : blocks.payloads)
    memory.emplace_back(payload);
  EXPECT_EQ(fill(*client_, ns_, blocks.digests, memory), 0U);
  daemon_->forget(key(4));
  EXPECT_EQ(fill(*client_, ns_, blocks.digests, memory), 3U);
  EXPECT_TRUE(daemon_->has(key(4)));
}

TEST_F(ExampleTest, ReadsInPlace) {
  Blocks blocks(1, 2, 1'000);
  ASSERT_TRUE(client_->put(blocks.put_request(ns_)).has_value());
  std::uint64_t expected = 0;
  for (const auto& payload : blocks.payloads) {
    for (const std::byte byte : payload)
      expected += std::to_integer<std::uint64_t>(byte);
  }
  EXPECT_EQ(add_up(*client_, clock_, ns_, blocks.digests), expected);
}

std::string read_file(const std::string& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

TEST(Example, StandsInTheDocumentWordForWord) {
  const std::string source = read_file(CAIRN_SOURCE_DIR "/tests/client/example_test.cc");
  const std::string document = read_file(CAIRN_SOURCE_DIR "/docs/sdk.md");
  for (const std::string mark : {"// [blocking]\n", "// [queue]\n"}) {
    const std::size_t begin = source.find(mark) + mark.size();
    const std::size_t end = source.find(mark, begin);
    ASSERT_NE(end, std::string::npos);
    EXPECT_NE(document.find(source.substr(begin, end - begin)), std::string::npos) << mark;
  }
}

}  // namespace
}  // namespace cairn::client
