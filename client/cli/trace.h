// Request traces, one JSON object a line: {"timestamp": ms, "input_length": tokens,
// "output_length": tokens, "hash_ids": [chain of block ids, root first]}; other fields are ignored.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <optional>
#include <string>
#include <vector>

namespace cairn::cli {

struct TraceRequest {
  std::vector<std::uint64_t> chain;
};

// The first `limit` requests of `path` (all if 0). nullopt: `message` says what is wrong, in which
// line.
std::optional<std::vector<TraceRequest>> read_trace(const std::string& path,
                                                    std::size_t limit,
                                                    std::string& message);

struct TraceGenOptions {
  std::size_t requests = 1'000;
  std::uint64_t seed = 1;
  // Conversations at once; each of a turn's prompts repeats the conversation so far.
  std::size_t conversations = 40;
  // Share of conversations that begin with one of a few system prompts, which are common to all.
  std::size_t system_prompts = 4;
};

// Conversations of several turns: heads shared by many, histories that grow, users that come back
// after a pause or never. The same options give the same bytes on every machine.
void generate_trace(const TraceGenOptions& options, std::ostream& out);

}  // namespace cairn::cli
