#include "client/cli/commands.h"

#include "base/human.h"
#include "client/client.h"

#include <nlohmann/json.hpp>
#include <openssl/evp.h>

#include <array>
#include <cstdio>
#include <fstream>
#include <iostream>
#include <iterator>

namespace cairn::cli {
namespace {

using nlohmann::ordered_json;

// Of one object read or written by hand; larger ones are for programs.
constexpr std::uint64_t kObjectBytesMax = std::uint64_t{1} << 30U;

struct Opened {
  std::unique_ptr<client::Client> client;
  client::Namespace name_space;
  BlockDigest digest;
};

std::optional<BlockDigest> parse_key(const std::string& text) {
  constexpr std::string_view kText = "text:";
  if (!text.starts_with(kText)) {
    const auto digest = block_digest_from_hex(text);
    return digest && !digest->is_weak() ? digest : std::nullopt;
  }
  std::array<unsigned char, 32> hash{};
  const std::string name = text.substr(kText.size());
  if (EVP_Digest(name.data(), name.size(), hash.data(), nullptr, EVP_sha256(), nullptr) != 1) {
    return std::nullopt;
  }
  return BlockDigest::from(std::as_bytes(std::span(hash)));
}

std::unique_ptr<client::Client> connect(const CommonOptions& common) {
  std::string message;
  auto client = client::Client::connect({.server = common.server, .name = "cairn-cli"}, &message);
  if (client) return std::move(*client);
  print_error(explain(client.error(), common.server, message));
  return nullptr;
}

// nullopt: an error is printed and `exit_code` set.
std::optional<Opened> open(const CommonOptions& common, const KeyOptions& options, int& exit_code) {
  exit_code = kExitUsage;
  Opened opened;
  if (!options.key.empty()) {
    const auto digest = parse_key(options.key);
    if (!digest) {
      print_error("\"" + options.key +
                  "\" is no key: give 32 to 64 hexadecimal digits, or text:NAME");
      return std::nullopt;
    }
    opened.digest = *digest;
  }
  exit_code = kExitFailed;
  opened.client = connect(common);
  if (!opened.client) return std::nullopt;
  std::string message;
  const auto name_space = opened.client->open_namespace(options.name_space, &message);
  if (!name_space) {
    print_error(explain(name_space.error(), common.server, message));
    return std::nullopt;
  }
  opened.name_space = *name_space;
  return opened;
}

// Prints the status of one key and gives the exit code.
int report(const CommonOptions& common,
           const std::string& key,
           const client::KeyResult& result,
           bool is_good) {
  const std::string status(block_status_name(result.status));
  const std::string reason =
      result.reason == BusyReason::kNone ? "" : std::string(busy_reason_name(result.reason));
  if (common.json) {
    ordered_json json = {{"key", key}, {"status", status}, {"bytes", result.length}};
    if (!reason.empty()) json["reason"] = reason;
    std::printf("%s\n", json.dump().c_str());
  } else if (is_good) {
    std::fprintf(stderr, "%s %s\n", key.c_str(), status.c_str());
  } else {
    print_error(key + ": " + status + (reason.empty() ? "" : " (" + reason + ")"));
  }
  return is_good ? kExitOk : kExitFailed;
}

int print_json(const CommonOptions& common, const client::JsonAnswer& answer) {
  if (answer.status != BlockStatus::kOk) {
    print_error(common.server + ": " + std::string(block_status_name(answer.status)));
    return kExitFailed;
  }
  const auto json = ordered_json::parse(answer.json, nullptr, false);
  if (json.is_discarded()) {
    print_error(common.server + ": the answer is no JSON");
    return kExitFailed;
  }
  std::printf("%s\n", json.dump(common.json ? -1 : 2).c_str());
  return kExitOk;
}

std::optional<std::string> read_all(const std::string& path) {
  if (path == "-") {
    return std::string(std::istreambuf_iterator<char>(std::cin), std::istreambuf_iterator<char>());
  }
  std::ifstream file(path, std::ios::binary);
  if (!file) return std::nullopt;
  return std::string(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
}

bool write_all(const std::string& path, std::span<const std::byte> bytes) {
  const auto* text = reinterpret_cast<const char*>(bytes.data());
  const auto size = static_cast<std::streamsize>(bytes.size());
  if (path == "-") return static_cast<bool>(std::cout.write(text, size).flush());
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  return static_cast<bool>(file.write(text, size).flush());
}

}  // namespace

int run_status(const CommonOptions& common) {
  const auto client = connect(common);
  if (!client) return kExitFailed;
  return print_json(common, client->stats());
}

int run_stat(const CommonOptions& common, const KeyOptions& options) {
  int exit_code = kExitOk;
  const auto opened = open(common, options, exit_code);
  if (!opened) return exit_code;
  const auto answer = opened->client->stat(opened->name_space, opened->digest);
  if (answer.status == BlockStatus::kMiss)
    return report(common, options.key, {.status = answer.status}, false);
  return print_json(common, answer);
}

int run_put(const CommonOptions& common, const KeyOptions& options, const std::string& path) {
  const auto bytes = read_all(path);
  if (!bytes || bytes->empty() || bytes->size() > kObjectBytesMax) {
    print_error(path + (!bytes ? ": cannot be read"
                               : (bytes->empty() ? ": is empty; a block has at least one byte"
                                                 : ": is over 1 GiB")));
    return kExitUsage;
  }
  int exit_code = kExitOk;
  const auto opened = open(common, options, exit_code);
  if (!opened) return exit_code;
  client::KeyResult result;
  const std::span<const std::byte> source = std::as_bytes(std::span(*bytes));
  const auto done = opened->client->put({.name_space = opened->name_space,
                                         .digests = std::span(&opened->digest, 1),
                                         .sources = std::span(&source, 1),
                                         .results = std::span(&result, 1)});
  if (!done) {
    print_error(explain(done.error(), common.server, ""));
    return kExitFailed;
  }
  const bool is_good = result.status == BlockStatus::kOk || result.status == BlockStatus::kExists;
  return report(common, options.key, result, is_good);
}

int run_get(const CommonOptions& common, const KeyOptions& options, const std::string& path) {
  int exit_code = kExitOk;
  const auto opened = open(common, options, exit_code);
  if (!opened) return exit_code;
  // The size is not known before the first try; a target that is too small says it.
  std::vector<std::byte> bytes(kBlockBytesMax.value());
  client::KeyResult result;
  for (int tries = 0; tries < 2; ++tries) {
    const std::span<std::byte> target(bytes);
    const Status done = opened->client->get({.name_space = opened->name_space,
                                             .digests = std::span(&opened->digest, 1),
                                             .targets = std::span(&target, 1),
                                             .results = std::span(&result, 1)});
    if (!done) {
      print_error(explain(done.error(), common.server, ""));
      return kExitFailed;
    }
    if (result.status != BlockStatus::kTooLarge || result.length > kObjectBytesMax) break;
    bytes.resize(result.length);
  }
  if (result.status != BlockStatus::kOk) return report(common, options.key, result, false);
  if (!write_all(path, std::span(bytes).first(result.length))) {
    print_error(path + ": cannot be written");
    return kExitFailed;
  }
  return kExitOk;
}

int run_remove(const CommonOptions& common, const KeyOptions& options) {
  int exit_code = kExitOk;
  const auto opened = open(common, options, exit_code);
  if (!opened) return exit_code;
  client::KeyResult result;
  const Status done = opened->client->remove({.name_space = opened->name_space,
                                              .digests = std::span(&opened->digest, 1),
                                              .results = std::span(&result, 1)});
  if (!done) {
    print_error(explain(done.error(), common.server, ""));
    return kExitFailed;
  }
  return report(common, options.key, result, result.status == BlockStatus::kOk);
}

int run_purge(const CommonOptions& common, const KeyOptions& options) {
  int exit_code = kExitOk;
  const auto opened = open(common, options, exit_code);
  if (!opened) return exit_code;
  const auto answer = opened->client->purge(opened->name_space);
  if (answer.status != BlockStatus::kOk) {
    return report(common, options.name_space, {.status = answer.status}, false);
  }
  if (common.json) {
    const ordered_json json = {
        {"status", "ok"}, {"epoch", answer.epoch}, {"complete", answer.is_complete}};
    std::printf("%s\n", json.dump().c_str());
  } else {
    std::printf("purged: the namespace is at epoch %llu now%s\n",
                static_cast<unsigned long long>(answer.epoch),
                answer.is_complete ? "" : "; not yet confirmed everywhere");
  }
  return kExitOk;
}

}  // namespace cairn::cli
