// The cairn command: what an operator types.
#include "base/human.h"
#include "client/cli/bench.h"
#include "client/cli/commands.h"
#include "client/cli/replay.h"
#include "client/cli/trace.h"

#include <CLI/CLI.hpp>

#include <iostream>

namespace {

using namespace cairn::cli;  // NOLINT(google-build-using-namespace): the command's own main

struct Words {
  CommonOptions common;
  KeyOptions key;
  ReplayOptions replay;
  BenchOptions bench;
  TraceGenOptions trace;
  std::string file = "-";
  std::string block_bytes = "256KiB";
  bool no_verify = false;
  int exit_code = kExitOk;
};

CLI::App* add_command(CLI::App& app, const char* name, const char* text, const char* example) {
  CLI::App* command = app.add_subcommand(name, text);
  command->footer(std::string("Example:\n  ") + example);
  return command;
}

void add_common(CLI::App* command, Words& words) {
  command->add_option("--server", words.common.server, "unix:PATH or HOST:PORT of the daemon")
      ->capture_default_str();
  command->add_flag("--json", words.common.json, "print JSON");
}

void add_key(CLI::App* command, Words& words) {
  command
      ->add_option(
          "--namespace", words.key.name_space, "the namespace's fingerprint, a JSON object")
      ->capture_default_str();
  command->add_option("KEY", words.key.key, "32 to 64 hexadecimal digits, or text:NAME")
      ->required();
}

void add_small_commands(CLI::App& app, Words& words) {
  auto* status = add_command(app, "status", "What the daemon is and does", "cairn status");
  add_common(status, words);
  status->callback([&words] { words.exit_code = run_status(words.common); });

  auto* stat = add_command(app, "stat", "Where one block is", "cairn stat text:greeting");
  add_common(stat, words);
  add_key(stat, words);
  stat->callback([&words] { words.exit_code = run_stat(words.common, words.key); });

  auto* put =
      add_command(app, "put", "Store a file under a key", "cairn put text:greeting hello.bin");
  add_common(put, words);
  add_key(put, words);
  put->add_option("FILE", words.file, "what to store; - is standard input")->capture_default_str();
  put->callback([&words] { words.exit_code = run_put(words.common, words.key, words.file); });

  auto* get =
      add_command(app, "get", "Write a stored block to a file", "cairn get text:greeting out.bin");
  add_common(get, words);
  add_key(get, words);
  get->add_option("FILE", words.file, "where to; - is standard output")->capture_default_str();
  get->callback([&words] { words.exit_code = run_get(words.common, words.key, words.file); });

  auto* remove = add_command(app, "rm", "Remove one block", "cairn rm text:greeting");
  add_common(remove, words);
  add_key(remove, words);
  remove->callback([&words] { words.exit_code = run_remove(words.common, words.key); });

  auto* purge = add_command(app,
                            "purge",
                            "Make everything in a namespace a miss, for good",
                            R"(cairn purge --namespace '{"model":"m","revision":"1"}')");
  add_common(purge, words);
  purge
      ->add_option(
          "--namespace", words.key.name_space, "the namespace's fingerprint, a JSON object")
      ->required();
  purge->callback([&words] { words.exit_code = run_purge(words.common, words.key); });
}

// CLI11's form of a check: the empty string is right, another is the error.
std::string check_block_bytes(const std::string& text) {
  const auto bytes = cairn::parse_bytes(text);
  if (bytes && bytes->value() >= 8 && *bytes <= cairn::kBlockBytesMax) return "";
  return text + " is no size from 8 B to 16 MiB";
}

void add_replay(CLI::App& app, Words& words) {
  auto* replay = add_command(app,
                             "replay",
                             "Serve a trace of LLM requests through a daemon and check every byte",
                             "cairn replay trace.jsonl --block-bytes 256KiB --clients 4");
  add_common(replay, words);
  replay->add_option("FILE", words.replay.trace, "JSON lines with \"hash_ids\"")->required();
  replay->add_option("--block-bytes", words.block_bytes, "size of a block, 8 B to 16 MiB")
      ->capture_default_str()
      ->check(check_block_bytes);
  replay->add_option("--limit", words.replay.limit, "requests to serve, 0: all")
      ->capture_default_str();
  replay->add_option("--clients", words.replay.clients, "sessions at once")
      ->capture_default_str()
      ->check(CLI::Range(1, 256));
  replay->add_flag("--no-verify", words.no_verify, "do not check the bytes");
  replay->callback([&words] {
    words.replay.block_bytes = *cairn::parse_bytes(words.block_bytes);
    words.replay.verify = !words.no_verify;
    words.exit_code = run_replay(words.common, words.replay);
  });
}

void add_bench(CLI::App& app, Words& words) {
  auto* bench = add_command(
      app, "bench", "Measure the store beside plain memory", "cairn bench local --json");
  bench->require_subcommand(1);
  auto* local = add_command(
      *bench,
      "local",
      "Get, put and lookup on this host; starts a daemon of its own unless --server is given",
      "cairn bench local --json");
  add_common(local, words);
  local->add_option("--rounds", words.bench.rounds, "rounds a block size")
      ->capture_default_str()
      ->check(CLI::Range(1, 1000));
  local->add_flag("--quick", words.bench.is_quick, "one small round, to see that it runs");
  local->callback([&words, &app, local] {
    words.bench.starts_daemon = app.count("--server") + local->count("--server") == 0;
    words.exit_code = run_bench_local(words.common, words.bench);
  });
}

void add_trace(CLI::App& app, Words& words) {
  auto* trace = add_command(
      app, "trace", "Make request traces", "cairn trace gen --requests 500 > trace.jsonl");
  trace->require_subcommand(1);
  auto* gen = add_command(*trace,
                          "gen",
                          "Write a trace of conversations to standard output",
                          "cairn trace gen --requests 500 --seed 7 > trace.jsonl");
  gen->add_option("--requests", words.trace.requests, "requests in all")->capture_default_str();
  gen->add_option("--seed", words.trace.seed, "the same seed gives the same trace")
      ->capture_default_str();
  gen->add_option("--conversations", words.trace.conversations, "conversations at once")
      ->capture_default_str()
      ->check(CLI::Range(1, 1'000'000));
  gen->callback([&words] { generate_trace(words.trace, std::cout); });
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("cairn: the command of the Cairn KV-cache store");
  app.set_version_flag("--version", std::string("cairn ") + CAIRN_VERSION);
  app.require_subcommand(1);
  app.footer("Example:\n  cairn status --server unix:/run/cairn/cairnd.sock");
  Words words;
  add_common(&app, words);  // before the command as well as behind it
  add_small_commands(app, words);
  add_replay(app, words);
  add_bench(app, words);
  add_trace(app, words);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? kExitOk : kExitUsage;
  }
  return words.exit_code;
}
