// Encoding and checked decoding of the messages on the data path, frame and checksum included.
#include "transport/wire/messages.h"

#include <benchmark/benchmark.h>

#include <array>
#include <cstdint>
#include <vector>

namespace cairn::wire {
namespace {

std::vector<BlockDigest> digests(std::int64_t count) {
  std::vector<BlockDigest> digests;
  std::array<std::byte, kBlockDigestBytesMax> bytes{};
  for (std::int64_t i = 0; i < count; ++i) {
    bytes[0] = static_cast<std::byte>(i);
    bytes[1] = static_cast<std::byte>(i >> 8);
    digests.push_back(BlockDigest::from(bytes).value_or(BlockDigest{}));
  }
  return digests;
}

Lookup lookup(std::int64_t keys) {
  Lookup message;
  message.digests = digests(keys);
  return message;
}

Get get(std::int64_t keys) {
  Get message;
  message.digests = digests(keys);
  return message;
}

// Blocks of 1 MiB in one extent each.
GetReply get_reply(std::int64_t keys) {
  constexpr std::uint8_t kChunks = 4;
  GetReply reply;
  for (std::int64_t i = 0; i < keys; ++i) {
    reply.grants.push_back({.status = BlockStatus::kOk,
                            .extent_count = 1,
                            .checksum_count = kChunks,
                            .length = 1U << 20U,
                            .lend = static_cast<std::uint64_t>(i + 1),
                            .extent_first = static_cast<std::uint32_t>(i),
                            .checksum_first = static_cast<std::uint32_t>(i) * kChunks});
    reply.extents.push_back({.slab = 1, .generation = 1, .offset = 4'096, .bytes = 1U << 20U});
    reply.checksums.insert(reply.checksums.end(), kChunks, 0xC0FFEE);
  }
  return reply;
}

Release release(std::int64_t keys) {
  Release message;
  for (std::int64_t i = 0; i < keys; ++i) {
    message.entries.push_back({.lend = static_cast<std::uint64_t>(i + 1)});
  }
  return message;
}

template <auto kMake>
void encode_message(benchmark::State& state) {
  const auto message = kMake(state.range(0));
  FrameWriter frame;
  for (auto _ : state) {
    encode(message, 1, frame);
    benchmark::DoNotOptimize(frame.finish().data());
  }
  state.SetItemsProcessed(state.iterations() * state.range(0));
}

template <auto kMake>
void decode_message(benchmark::State& state) {
  auto message = kMake(state.range(0));
  FrameWriter frame;
  encode(message, 1, frame);
  const auto bytes = frame.finish();
  for (auto _ : state) {
    const auto view = decode_frame(bytes);
    if (!view || !decode(*view, message)) {
      state.SkipWithError("decode failed");
      break;
    }
    benchmark::DoNotOptimize(message);
  }
  state.SetItemsProcessed(state.iterations() * state.range(0));
}

BENCHMARK(encode_message<lookup>)->Name("encode/lookup")->Arg(64)->Arg(512)->Arg(16'384);
BENCHMARK(decode_message<lookup>)->Name("decode/lookup")->Arg(64)->Arg(512)->Arg(16'384);
BENCHMARK(encode_message<get>)->Name("encode/get")->Arg(1)->Arg(64);
BENCHMARK(decode_message<get>)->Name("decode/get")->Arg(1)->Arg(64);
BENCHMARK(encode_message<get_reply>)->Name("encode/get_reply")->Arg(1)->Arg(64)->Arg(1'024);
BENCHMARK(decode_message<get_reply>)->Name("decode/get_reply")->Arg(1)->Arg(64)->Arg(1'024);
BENCHMARK(encode_message<release>)->Name("encode/release")->Arg(64);
BENCHMARK(decode_message<release>)->Name("decode/release")->Arg(64);

}  // namespace
}  // namespace cairn::wire

BENCHMARK_MAIN();
