#include "client/cli/trace.h"

#include "base/random.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <fstream>
#include <ostream>

namespace cairn::cli {
namespace {

// nullopt: `message` says why the line is no request.
std::optional<TraceRequest> parse_request(const std::string& line, std::string& message) {
  const auto json = nlohmann::json::parse(line, nullptr, false);
  if (json.is_discarded() || !json.is_object()) {
    message = "is not a JSON object";
    return std::nullopt;
  }
  const auto ids = json.find("hash_ids");
  if (ids == json.end() || !ids->is_array()) {
    message = "has no array \"hash_ids\"";
    return std::nullopt;
  }
  TraceRequest request;
  request.chain.reserve(ids->size());
  for (const auto& id : *ids) {
    if (!id.is_number_unsigned()) {
      message = "has a hash id that is no whole number from 0";
      return std::nullopt;
    }
    request.chain.push_back(id.get<std::uint64_t>());
  }
  return request;
}

constexpr std::size_t kTokensPerBlock = 512;

struct Conversation {
  std::vector<std::uint64_t> history;
  std::size_t turns_left = 0;
};

class Generator {
 public:
  explicit Generator(const TraceGenOptions& options)
      : options_(options),
        random_(options.seed),
        conversations_(options.conversations) {
    for (std::size_t i = 0; i < options.system_prompts; ++i) {
      heads_.emplace_back();
      append_new(heads_.back(), 2 + random_.below(8));
    }
    for (Conversation& conversation : conversations_)
      begin(conversation);
  }

  void write_request(std::uint64_t timestamp_ms, std::ostream& out) {
    // The square of a uniform draw prefers low numbers: some users are busy, others rarely return.
    const double draw = random_.unit();
    const auto index =
        static_cast<std::size_t>(draw * draw * static_cast<double>(conversations_.size()));
    Conversation& conversation = conversations_[index];
    append_new(conversation.history, 1 + random_.below(12));
    nlohmann::ordered_json line;
    line["timestamp"] = timestamp_ms;
    line["input_length"] = conversation.history.size() * kTokensPerBlock;
    line["output_length"] = 1 + random_.below(800);
    line["hash_ids"] = conversation.history;
    out << line.dump() << '\n';
    if (--conversation.turns_left == 0) begin(conversation);
  }

 private:
  void begin(Conversation& conversation) {
    conversation.history.clear();
    if (!heads_.empty()) conversation.history = heads_[random_.below(heads_.size())];
    conversation.turns_left = 1 + random_.below(10);
  }
  void append_new(std::vector<std::uint64_t>& chain, std::uint64_t count) {
    for (std::uint64_t i = 0; i < count; ++i)
      chain.push_back(next_id_++);
  }

  TraceGenOptions options_;
  SeededRandom random_;
  std::uint64_t next_id_ = 0;
  std::vector<std::vector<std::uint64_t>> heads_;
  std::vector<Conversation> conversations_;
};

std::string line_message(const std::string& path, std::size_t number, const std::string& why) {
  return path + ":" + std::to_string(number) + ": the line " + why;
}

}  // namespace

std::optional<std::vector<TraceRequest>> read_trace(const std::string& path,
                                                    std::size_t limit,
                                                    std::string& message) {
  std::ifstream file(path);
  if (!file) {
    message = path + ": cannot be read";
    return std::nullopt;
  }
  std::vector<TraceRequest> requests;
  std::string line;
  std::string why;
  for (std::size_t number = 1; std::getline(file, line); ++number) {
    if (limit != 0 && requests.size() == limit) break;
    if (line.empty()) continue;
    auto request = parse_request(line, why);
    if (!request) {
      message = line_message(path, number, why);
      return std::nullopt;
    }
    requests.push_back(std::move(*request));
  }
  if (requests.empty()) {
    message = path + ": holds no request";
    return std::nullopt;
  }
  return requests;
}

void generate_trace(const TraceGenOptions& options, std::ostream& out) {
  Generator generator(options);
  SeededRandom pauses(options.seed ^ 0x7061757365ULL);
  std::uint64_t now_ms = 0;
  for (std::size_t i = 0; i < options.requests; ++i) {
    generator.write_request(now_ms, out);
    now_ms += pauses.below(400);
  }
}

}  // namespace cairn::cli
