#include "tests/support/process_runner.h"

#include <fcntl.h>
#include <grp.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <system_error>

namespace cairn::testing {
namespace {

constexpr Milliseconds kLookAgain{2};
constexpr int kStartFailed = 127;

std::vector<char*> pointers_to(std::vector<std::string>& strings) {
  std::vector<char*> result;
  result.reserve(strings.size() + 1);
  for (std::string& text : strings)
    result.push_back(text.data());
  result.push_back(nullptr);
  return result;
}

std::vector<std::string> merged_environment(const ProcessOptions& options) {
  std::vector<std::string> result;
  for (char** entry = environ; *entry != nullptr; ++entry)
    result.emplace_back(*entry);
  for (const auto& [name, value] : options.environment) {
    const std::string prefix = name + "=";
    std::erase_if(result, [&](const std::string& line) { return line.starts_with(prefix); });
    result.push_back(prefix + value);
  }
  return result;
}

// strerror() keeps one text for all threads.
std::string error_text(int number) {
  return std::generic_category().message(number);
}

// Only calls that are safe between fork() and exec() in a process with threads.
[[noreturn]] void become(const ProcessOptions& options,
                         char* const* arguments,
                         char* const* environment,
                         std::pair<int, int> files) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  sigset_t none;
  ::sigemptyset(&none);
  ::pthread_sigmask(SIG_SETMASK, &none, nullptr);
  const int null = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  if (null < 0 || ::dup2(null, STDIN_FILENO) < 0) ::_exit(kStartFailed);
  if (::dup2(files.first, STDOUT_FILENO) < 0) ::_exit(kStartFailed);
  if (::dup2(files.second, STDERR_FILENO) < 0) ::_exit(kStartFailed);
  if (options.address_space_max) {
    const rlimit limit{*options.address_space_max, *options.address_space_max};
    if (::setrlimit(RLIMIT_AS, &limit) != 0) ::_exit(kStartFailed);
  }
  if (options.user) {
    const uid_t user = *options.user;
    if (::setgroups(0, nullptr) != 0 || ::setresgid(user, user, user) != 0) ::_exit(kStartFailed);
    if (::setresuid(user, user, user) != 0) ::_exit(kStartFailed);
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);  // a change of user clears it
  }
  ::execve(arguments[0], arguments, environment);
  ::_exit(kStartFailed);
}

std::string read_all(int file) {
  std::string text;
  std::array<char, 4096> buffer{};
  for (;;) {
    const ssize_t got =
        ::pread(file, buffer.data(), buffer.size(), static_cast<off_t>(text.size()));
    if (got <= 0) return text;
    text.append(buffer.data(), static_cast<std::size_t>(got));
  }
}

std::optional<std::string> whole_line_with(const std::string& text, std::string_view part) {
  std::size_t start = 0;
  for (;;) {
    const std::size_t end = text.find('\n', start);
    if (end == std::string::npos) return std::nullopt;
    const std::string_view line = std::string_view{text}.substr(start, end - start);
    if (line.find(part) != std::string_view::npos) return std::string(line);
    start = end + 1;
  }
}

Deadline deadline_after(Milliseconds timeout) {
  return Deadline::after(SystemClock(), timeout);
}

bool has_passed(const Deadline& deadline) {
  return deadline.has_passed(SystemClock().now());
}

}  // namespace

TempDir::TempDir(std::string_view parent)
    : path_(std::string(parent) + "/cairn-test.XXXXXX") {
  if (::mkdtemp(path_.data()) == nullptr) {
    ADD_FAILURE() << "mkdtemp " << path_ << ": " << error_text(errno);
  }
}

TempDir::~TempDir() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

std::unique_ptr<Process> Process::start(const ProcessOptions& options) {
  std::vector<std::string> command = options.command;
  std::vector<std::string> environment = merged_environment(options);
  const std::vector<char*> arguments = pointers_to(command);
  const std::vector<char*> variables = pointers_to(environment);
  const int output = ::memfd_create("stdout", MFD_CLOEXEC);
  const int errors = ::memfd_create("stderr", MFD_CLOEXEC);
  const pid_t pid = ::fork();
  if (pid == 0) become(options, arguments.data(), variables.data(), {output, errors});
  if (pid < 0) {
    ADD_FAILURE() << "fork: " << error_text(errno);
    ::close(output);
    ::close(errors);
    return nullptr;
  }
  const int pidfd = static_cast<int>(::syscall(SYS_pidfd_open, pid, 0));
  return std::unique_ptr<Process>(new Process(pid, pidfd, output, errors));
}

Process::~Process() {
  kill_now();
  ::close(pidfd_);
  ::close(output_);
  ::close(errors_);
}

bool Process::is_running() {
  return !wait_exit(Milliseconds(0)).has_value();
}

void Process::signal(int number) {
  if (!exit_code_) ::kill(pid_, number);
}

void Process::kill_now() {
  if (exit_code_) return;
  ::kill(pid_, SIGKILL);
  EXPECT_TRUE(wait_exit(Milliseconds(60'000))) << "process " << pid_ << " survives SIGKILL";
}

std::optional<int> Process::wait_exit(Milliseconds timeout) {
  if (exit_code_) return exit_code_;
  const Deadline deadline = deadline_after(timeout);
  for (;;) {
    int state = 0;
    const pid_t got = ::waitpid(pid_, &state, WNOHANG);
    if (got == pid_) {
      exit_code_ = WIFEXITED(state) ? WEXITSTATUS(state) : 128 + WTERMSIG(state);
      return exit_code_;
    }
    const Nanoseconds left = deadline.remaining(SystemClock().now());
    if (left.count() == 0) return std::nullopt;
    pollfd ended{pidfd_, POLLIN, 0};
    ::poll(&ended, 1, static_cast<int>(left.count() / 1'000'000) + 1);
  }
}

std::optional<std::string> Process::wait_for_line(std::string_view text, Milliseconds timeout) {
  return wait_line_in(errors_, text, timeout);
}

std::optional<std::string> Process::wait_for_output_line(std::string_view text,
                                                         Milliseconds timeout) {
  return wait_line_in(output_, text, timeout);
}

std::optional<std::string> Process::wait_line_in(int file,
                                                 std::string_view text,
                                                 Milliseconds timeout) {
  const Deadline deadline = deadline_after(timeout);
  for (;;) {
    const bool had_ended = wait_exit(kLookAgain).has_value();
    std::optional<std::string> line = whole_line_with(read_all(file), text);
    if (line || had_ended || has_passed(deadline)) return line;
  }
}

std::string Process::output() const {
  return read_all(output_);
}

std::string Process::errors() const {
  return read_all(errors_);
}

std::string sibling_program(std::string_view name) {
  std::error_code error;
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", error);
  return (self.parent_path() / name).string();
}

Finished run_to_end(const ProcessOptions& options, Milliseconds timeout) {
  Finished result;
  const std::unique_ptr<Process> process = Process::start(options);
  if (process == nullptr) return result;
  const std::optional<int> code = process->wait_exit(timeout);
  EXPECT_TRUE(code.has_value()) << options.command[0] << " still runs after " << timeout.count()
                                << " ms; its stderr:\n"
                                << process->errors();
  result.code = code.value_or(-1);
  result.output = process->output();
  result.errors = process->errors();
  return result;
}

}  // namespace cairn::testing
