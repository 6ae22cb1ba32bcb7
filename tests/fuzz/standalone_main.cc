// main() of a fuzz target where there is no libFuzzer: runs the inputs of the corpus, then changed
// ones, and leaves the input that crashed in a file.
//
// usage: NAME [--runs=N] [--seconds=N] [--seed=N] [FILE-OR-FOLDER]...
//
// The changed inputs follow from the seed (CAIRN_SEED, or --seed=N), so a run repeats itself.

#include "base/block_key.h"
#include "base/clock.h"
#include "base/random.h"
#include "tests/fuzz/mutator.h"
#include "tests/support/seed.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/common_interface_defs.h>
#endif

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace cairn::fuzz {
namespace {

constexpr const char* kCrashFile = "crash-input";

struct Options {
  std::uint64_t runs = 10'000;
  std::uint64_t seconds = 10;
  std::uint64_t seed = testing::test_seed();
  std::vector<std::string> paths;
};

// What a crash handler may reach: the input in hand.
const Input* current = nullptr;

// Only calls that a signal handler may make.
void save_current() {
  if (current == nullptr) return;
  const int file = ::open(kCrashFile, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (file < 0) return;
  constexpr std::string_view kSaved = "the input is in ./crash-input; give it as an argument\n";
  if (::write(file, current->data(), current->size()) >= 0)
    static_cast<void>(::write(STDERR_FILENO, kSaved.data(), kSaved.size()) < 0);
  ::close(file);
  current = nullptr;
}

void on_crash(int signal_number) {
  save_current();
  static_cast<void>(std::signal(signal_number, SIG_DFL));
  static_cast<void>(std::raise(signal_number));
}

void install_crash_handlers() {
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_set_death_callback(&save_current);
#endif
  // Under a sanitizer SIGSEGV is its own; SIGABRT comes from CAIRN_CHECK.
  static_cast<void>(std::signal(SIGABRT, &on_crash));
#if !defined(__SANITIZE_ADDRESS__)
  static_cast<void>(std::signal(SIGSEGV, &on_crash));
#endif
}

std::optional<std::uint64_t> number_in(std::string_view text) {
  std::uint64_t value = 0;
  const char* const end = text.data() + text.size();
  const auto [rest, failure] = std::from_chars(text.data(), end, value);
  if (failure != std::errc() || rest != end) return std::nullopt;
  return value;
}

// Takes "--name=N"; false if that is no option of ours.
bool take_option(std::string_view word, Options& options) {
  const std::size_t equals = word.find('=');
  if (equals == std::string_view::npos) return false;
  const std::string_view name = word.substr(0, equals);
  const auto value = number_in(word.substr(equals + 1));
  if (!value) return false;
  if (name == "--runs") {
    options.runs = *value;
  } else if (name == "--seconds") {
    options.seconds = *value;
  } else if (name == "--seed") {
    options.seed = *value;
  } else {
    return false;
  }
  return true;
}

std::optional<Options> parse(std::span<char* const> arguments) {
  Options options;
  for (const std::string_view word : arguments.subspan(1)) {
    if (!word.starts_with("--")) {
      options.paths.emplace_back(word);
    } else if (!take_option(word, options)) {
      return std::nullopt;
    }
  }
  return options;
}

std::optional<Input> input_from_hex(std::istream& file) {
  std::string digits;
  for (std::string line; std::getline(file, line);) {
    line.resize(std::min(line.find('#'), line.size()));
    std::erase_if(line, [](char c) { return c == ' ' || c == '\r'; });
    digits += line;
  }
  const auto bytes = bytes_from_hex(digits);
  if (!bytes) return std::nullopt;
  return Input(bytes->begin(), bytes->end());
}

// A file ending in .hex holds hexadecimal digits with blanks and # comments, as the golden ones do.
std::optional<Input> read_file(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  if (path.extension() == ".hex") return input_from_hex(file);
  return Input(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
}

// In the order of their names, so that the order in a folder does not matter.
std::optional<std::vector<Input>> read_corpus(const std::vector<std::string>& paths) {
  std::vector<std::filesystem::path> files;
  for (const std::string& path : paths) {
    std::error_code failure;
    if (std::filesystem::is_directory(path, failure)) {
      for (const auto& entry : std::filesystem::recursive_directory_iterator(path)) {
        if (entry.is_regular_file()) files.push_back(entry.path());
      }
    } else if (std::filesystem::is_regular_file(path, failure)) {
      files.emplace_back(path);
    } else {
      std::fprintf(stderr, "no such file or folder: %s\n", path.c_str());
      return std::nullopt;
    }
  }
  std::sort(files.begin(), files.end());
  std::vector<Input> corpus;
  for (const auto& file : files) {
    auto input = read_file(file);
    if (!input) {
      std::fprintf(stderr, "not hexadecimal: %s\n", file.c_str());
      return std::nullopt;
    }
    corpus.push_back(std::move(*input));
  }
  return corpus;
}

void run_one(const Input& input) {
  // A copy of the exact size on the heap, so that a sanitizer sees the first byte beyond it.
  const Input exact(input.begin(), input.end());
  current = &input;
  LLVMFuzzerTestOneInput(exact.data(), exact.size());
  current = nullptr;
}

int run(const Options& options) {
  const auto corpus = read_corpus(options.paths);
  if (!corpus) return 2;
  install_crash_handlers();
  for (const Input& input : *corpus)
    run_one(input);

  const SystemClock clock;
  const Deadline deadline =
      Deadline::after(clock, std::chrono::seconds(static_cast<std::int64_t>(options.seconds)));
  SeededRandom random(options.seed);
  Mutator mutator(random);
  std::uint64_t done = 0;
  for (; done < options.runs && !deadline.has_passed(clock.now()); ++done)
    run_one(mutator.next(*corpus));
  std::printf("%zu inputs of the corpus, %llu changed ones, seed %llu: no crash\n",
              corpus->size(),
              static_cast<unsigned long long>(done),
              static_cast<unsigned long long>(options.seed));
  return 0;
}

}  // namespace
}  // namespace cairn::fuzz

int main(int argc, char** argv) {
  const auto options = cairn::fuzz::parse({argv, static_cast<std::size_t>(argc)});
  if (!options) {
    std::fprintf(
        stderr, "usage: %s [--runs=N] [--seconds=N] [--seed=N] [FILE-OR-FOLDER]...\n", argv[0]);
    return 2;
  }
  return cairn::fuzz::run(*options);
}
