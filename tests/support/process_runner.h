// Real processes for tests: started, watched, signalled and always cleaned up. What a child writes
// goes to memory files, so that it never blocks on a reader.
#pragma once

#include "base/clock.h"

#include <sys/types.h>

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace cairn::testing {

// A directory that is removed with everything in it.
class TempDir {
 public:
  // Under `parent`: "/tmp", or "/dev/shm" for what must be tmpfs.
  explicit TempDir(std::string_view parent = "/tmp");
  ~TempDir();
  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;
  const std::string& path() const noexcept { return path_; }
  std::string operator/(std::string_view name) const { return path_ + "/" + std::string(name); }

 private:
  std::string path_;
};

struct ProcessOptions {
  std::vector<std::string> command;                              // command[0] is a path
  std::vector<std::pair<std::string, std::string>> environment;  // added to this process's own
  std::optional<uid_t> user;                       // needs root: runs as this user and group
  std::optional<std::uint64_t> address_space_max;  // RLIMIT_AS in bytes
};

// A child; killed and reaped by the destructor, and killed by the kernel when the thread that
// started it ends. One thread's.
class Process {
 public:
  // A test failure and nullptr when it cannot be started.
  static std::unique_ptr<Process> start(const ProcessOptions& options);
  static std::unique_ptr<Process> start(std::vector<std::string> command) {
    return start(ProcessOptions{
        .command = std::move(command), .environment = {}, .user = {}, .address_space_max = {}});
  }
  ~Process();
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  pid_t pid() const noexcept { return pid_; }
  bool is_running();
  // SIGTERM, SIGKILL, SIGSTOP, SIGCONT ...; nothing once it has ended.
  void signal(int number);
  // SIGKILL, then waits until it is gone.
  void kill_now();
  // The exit code, 128 + N after signal N; nullopt when it still runs after `timeout`.
  std::optional<int> wait_exit(Milliseconds timeout);
  // The first whole line of stderr (or stdout) that contains `text`; nullopt when it has not come
  // within `timeout` or the process ended without it.
  std::optional<std::string> wait_for_line(std::string_view text, Milliseconds timeout);
  std::optional<std::string> wait_for_output_line(std::string_view text, Milliseconds timeout);
  std::string output() const;  // stdout so far
  std::string errors() const;  // stderr so far

 private:
  Process(pid_t pid, int pidfd, int output, int errors) noexcept
      : pid_(pid),
        pidfd_(pidfd),
        output_(output),
        errors_(errors) {}
  std::optional<std::string> wait_line_in(int file, std::string_view text, Milliseconds timeout);

  pid_t pid_;
  int pidfd_;
  int output_;
  int errors_;
  std::optional<int> exit_code_;
};

// The path of a program that is built beside the running test.
std::string sibling_program(std::string_view name);

// Runs to the end: exit code, stdout, stderr. A test failure (and code -1) after `timeout`.
struct Finished {
  int code = -1;
  std::string output;
  std::string errors;
};
Finished run_to_end(const ProcessOptions& options, Milliseconds timeout = Milliseconds(30'000));

}  // namespace cairn::testing
