#include "client/cli/local_daemon.h"

#include "base/clock.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <vector>

extern char** environ;

namespace cairn::cli {
namespace {

namespace fs = std::filesystem;

constexpr Milliseconds kReadyTimeout = Milliseconds(60'000);
constexpr Milliseconds kStopTimeout = Milliseconds(10'000);

std::string make_directory(const std::string& prefix) {
  std::string path = prefix + "XXXXXX";
  return mkdtemp(path.data()) == nullptr ? std::string() : path;
}

// True once the process behind `pidfd` has ended, within `timeout`.
bool ends_within(int pidfd, Milliseconds timeout) {
  pollfd waiting{.fd = pidfd, .events = POLLIN, .revents = 0};
  return poll(&waiting, 1, static_cast<int>(timeout.count())) == 1;
}

// Waits until a line of the file `log_path` begins with "ready"; false when the daemon has ended or
// time is up.
bool wait_until_ready(const std::string& log_path, int pidfd) {
  const SystemClock clock;
  const Deadline deadline = Deadline::after(clock, kReadyTimeout);
  while (!deadline.has_passed(clock.now())) {
    std::ifstream log(log_path);
    for (std::string line; std::getline(log, line);) {
      if (line.starts_with("ready")) return true;
    }
    if (ends_within(pidfd, Milliseconds(2))) return false;
  }
  return false;
}

std::string tail(const std::string& log_path) {
  constexpr std::size_t kTailBytes = 2'000;
  std::ifstream file(log_path);
  const std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  return text.size() > kTailBytes ? text.substr(text.size() - kTailBytes) : text;
}

pid_t spawn(const std::vector<std::string>& words, const std::string& log_path) {
  std::vector<char*> arguments;
  arguments.reserve(words.size() + 1);
  for (const std::string& word : words)
    arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(
      &actions, STDERR_FILENO, log_path.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600);
  posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
  pid_t pid = -1;
  const int failure =
      posix_spawn(&pid, words[0].c_str(), &actions, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  return failure == 0 ? pid : -1;
}

}  // namespace

std::unique_ptr<LocalDaemon> LocalDaemon::start(ByteCount pool, std::string& message) {
  std::error_code failure;
  const fs::path program = fs::read_symlink("/proc/self/exe", failure).parent_path() / "cairnd";
  if (!fs::exists(program, failure)) {
    message = program.string() + " is not there; build it, or name a running daemon with --server";
    return nullptr;
  }
  std::unique_ptr<LocalDaemon> daemon(new LocalDaemon());
  daemon->directory_ = make_directory((fs::temp_directory_path(failure) / "cairn-bench-").string());
  daemon->pool_directory_ = make_directory("/dev/shm/cairn-bench-");
  if (daemon->directory_.empty() || daemon->pool_directory_.empty()) {
    message = "a temporary directory could not be made";
    return nullptr;
  }
  daemon->server_ = "unix:" + daemon->directory_ + "/cairnd.sock";
  const std::vector<std::string> words = {program.string(),
                                          "--set",
                                          "data_dir=" + daemon->directory_ + "/data",
                                          "--set",
                                          "listen.unix=" + daemon->directory_ + "/cairnd.sock",
                                          "--set",
                                          "listen.tcp=",
                                          "--set",
                                          "admin.listen=",
                                          "--set",
                                          "pool.dir=" + daemon->pool_directory_,
                                          "--set",
                                          "tiers.dram.size=" + std::to_string(pool.value())};
  const std::string log_path = daemon->directory_ + "/cairnd.log";
  daemon->pid_ = spawn(words, log_path);
  if (daemon->pid_ > 0) {
    daemon->pidfd_ = static_cast<int>(syscall(SYS_pidfd_open, daemon->pid_, 0));
  }
  if (daemon->pid_ > 0 && wait_until_ready(log_path, daemon->pidfd_)) return daemon;
  message = "cairnd did not get ready; its log ends:\n" + tail(log_path);
  return nullptr;
}

LocalDaemon::~LocalDaemon() {
  if (pid_ > 0) {
    kill(pid_, SIGTERM);
    if (!ends_within(pidfd_, kStopTimeout)) kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
    close(pidfd_);
  }
  std::error_code failure;
  if (!directory_.empty()) fs::remove_all(directory_, failure);
  if (!pool_directory_.empty()) fs::remove_all(pool_directory_, failure);
}

}  // namespace cairn::cli
