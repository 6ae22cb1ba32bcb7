// A client process for system tests, driven by its arguments; it says what it does on stdout.
//   churn SERVER SEED      puts and gets for ever, checking every byte; "wrong" and exit 3 if one
//   differs;
//                          a line "ok N" every 64 rounds that ended well
//   stall SERVER           takes views and reservations, prints "lent", stops itself (SIGSTOP) in
//   the
//                          middle of a copy; when continued finishes the copy, checks its views,
//                          commits
//   hold SERVER            takes views of a block, prints "holding" and waits for ever
#include "base/random.h"
#include "client/cli/payload.h"
#include "client/client.h"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

namespace {

using namespace cairn;  // NOLINT(google-build-using-namespace)

constexpr std::size_t kBlockBytes = 300'000;
constexpr std::size_t kChain = 8;

void say(const char* what, unsigned long long n = 0) {
  std::printf("%s %llu\n", what, n);
  std::fflush(stdout);
}

struct Session {
  std::unique_ptr<client::Client> client;
  client::Namespace name_space;
};

std::optional<Session> open(const std::string& server) {
  auto client = client::Client::connect(
      {.server = server, .name = "test-client", .deadline = Milliseconds(2'000)});
  if (!client) return std::nullopt;
  const auto name_space = (*client)->open_namespace(R"({"application":"system-test"})");
  if (!name_space) return std::nullopt;
  return Session{.client = std::move(*client), .name_space = *name_space};
}

std::vector<BlockDigest> chain_of(std::uint64_t number) {
  std::vector<BlockDigest> digests;
  for (std::size_t i = 0; i < kChain; ++i)
    digests.push_back(cli::trace_digest(number * kChain + i));
  return digests;
}

// One request: get the leading run, check it, put the rest. False: a byte was wrong.
bool serve(Session& session, std::uint64_t chain, bool in_place, bool& went_well) {
  const auto digests = chain_of(chain);
  std::vector<std::byte> buffer(kChain * kBlockBytes);
  std::vector<std::span<std::byte>> targets;
  std::vector<std::span<const std::byte>> sources;
  std::vector<std::uint64_t> seeds;
  for (std::size_t i = 0; i < kChain; ++i) {
    targets.push_back(std::span(buffer).subspan(i * kBlockBytes, kBlockBytes));
    sources.emplace_back(targets.back());
    seeds.push_back(cli::payload_seed(session.name_space, digests[i], i));
  }
  std::vector<client::KeyResult> results(kChain);
  std::vector<client::BlockView> views(kChain);
  const Status done = in_place ? session.client->get_views({.name_space = session.name_space,
                                                            .digests = digests,
                                                            .views = views,
                                                            .results = results})
                               : session.client->get({.name_space = session.name_space,
                                                      .digests = digests,
                                                      .targets = targets,
                                                      .results = results});
  went_well = done.has_value();
  for (std::size_t i = 0; i < kChain && done; ++i) {
    if (results[i].status == BlockStatus::kCorrupt) return false;
    if (results[i].status != BlockStatus::kOk) continue;
    std::uint64_t offset = 0;
    if (!in_place && !cli::is_payload(seeds[i], 0, targets[i])) return false;
    for (std::uint32_t piece = 0; in_place && piece < views[i].piece_count; ++piece) {
      if (!cli::is_payload(seeds[i], offset, views[i].pieces[piece])) return false;
      offset += views[i].pieces[piece].size();
    }
  }
  session.client->release(views);
  for (std::size_t i = 0; i < kChain; ++i)
    cli::fill_payload(seeds[i], 0, targets[i]);
  const auto put = session.client->put({.name_space = session.name_space,
                                        .digests = digests,
                                        .sources = sources,
                                        .results = results});
  went_well = went_well && put.has_value() &&
              std::all_of(results.begin(), results.end(), [](const client::KeyResult& result) {
                return result.status == BlockStatus::kOk || result.status == BlockStatus::kExists;
              });
  return true;
}

int churn(const std::string& server, std::uint64_t seed) {
  auto session = open(server);
  if (!session) return 2;
  SeededRandom random(seed);
  unsigned long long good = 0;
  for (;;) {
    bool went_well = false;
    if (!serve(*session, random.below(64), random.below(2) == 0, went_well)) {
      say("wrong");
      return 3;
    }
    if (went_well && ++good % 8 == 0) say("ok", good);
  }
}

bool check_views(const Session& session, std::span<const client::BlockView> views) {
  const auto digests = chain_of(1'000);
  for (std::size_t i = 0; i < views.size(); ++i) {
    const std::uint64_t seed = cli::payload_seed(session.name_space, digests[i], i);
    std::uint64_t offset = 0;
    for (std::uint32_t piece = 0; piece < views[i].piece_count; ++piece) {
      if (!cli::is_payload(seed, offset, views[i].pieces[piece])) return false;
      offset += views[i].pieces[piece].size();
    }
    if (offset != kBlockBytes) return false;
  }
  return true;
}

std::optional<std::vector<client::BlockView>> take_views(Session& session) {
  bool went_well = false;
  if (!serve(session, 1'000, false, went_well) || !went_well) return std::nullopt;
  std::vector<client::BlockView> views(kChain);
  std::vector<client::KeyResult> results(kChain);
  const auto digests = chain_of(1'000);
  if (!session.client->get_views({.name_space = session.name_space,
                                  .digests = digests,
                                  .views = views,
                                  .results = results}) ||
      !check_views(session, views)) {
    return std::nullopt;
  }
  return views;
}

// Fills a reservation, stopping itself half way through the first piece.
void fill_and_stop(const client::BlockReservation& reservation) {
  const auto piece = reservation.pieces[0];
  std::memset(piece.data(), 0xE1, piece.size() / 2);
  raise(SIGSTOP);
  std::memset(piece.data() + piece.size() / 2, 0xE2, piece.size() - piece.size() / 2);
}

int stall(const std::string& server) {
  auto session = open(server);
  if (!session) return 2;
  const auto views = take_views(*session);
  if (!views) return 2;
  const auto digests = chain_of(2'000);
  const std::vector<std::uint32_t> lengths(kChain, kBlockBytes);
  std::vector<client::BlockReservation> reservations(kChain);
  std::vector<client::KeyResult> results(kChain);
  if (!session->client->reserve({.name_space = session->name_space,
                                 .digests = digests,
                                 .lengths = lengths,
                                 .reservations = reservations,
                                 .results = results})) {
    return 2;
  }
  say("lent", reservations[0].lend);
  fill_and_stop(reservations[0]);
  say("continued");
  if (!check_views(*session, *views)) {
    say("wrong");
    return 3;
  }
  session->client->release(*views);
  const auto committed = session->client->commit({.name_space = session->name_space,
                                                  .reservations = std::span(reservations).first(1),
                                                  .results = std::span(results).first(1)});
  session->client->abort(std::span(reservations).subspan(1));
  say("committed", committed ? static_cast<unsigned long long>(results[0].status) : 99);
  return 0;
}

int hold(const std::string& server) {
  auto session = open(server);
  if (!session) return 2;
  const auto views = take_views(*session);
  if (!views) return 2;
  say("holding");
  for (;;)
    pause();
}

}  // namespace

int main(int argc, char** argv) {
  const std::string mode = argc > 2 ? argv[1] : "";
  if (mode == "churn" && argc > 3) return churn(argv[2], std::stoull(argv[3]));
  if (mode == "stall") return stall(argv[2]);
  if (mode == "hold") return hold(argv[2]);
  std::fputs("usage: cairn_test_client churn SERVER SEED | stall SERVER | hold SERVER\n", stderr);
  return 2;
}
