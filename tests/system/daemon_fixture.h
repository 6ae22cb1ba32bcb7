// A real cairnd with its own directories, for system tests: started, killed, restarted, and nothing
// left behind.
#pragma once

#include "client/client.h"
#include "tests/support/process_runner.h"

#include <memory>
#include <string>
#include <vector>

namespace cairn::testing {

struct DaemonOptions {
  std::string pool = "64MiB";
  std::vector<std::string> settings;  // "key=value", as --set takes them
};

class DaemonFixture {
 public:
  explicit DaemonFixture(DaemonOptions options = {});
  ~DaemonFixture();
  DaemonFixture(const DaemonFixture&) = delete;
  DaemonFixture& operator=(const DaemonFixture&) = delete;

  // Starts it and waits until it serves. A test failure and false when it does not.
  bool start();
  void kill_now();
  // SIGTERM; its exit code, -1 if it did not end in 10 s.
  int stop();
  Process& process() { return *process_; }
  bool is_started() const { return process_ != nullptr; }

  std::string server() const { return "unix:" + socket_path_; }
  const std::string& pool_directory() const { return pool_.path(); }
  // A test failure and nullptr when it cannot connect.
  std::unique_ptr<client::Client> connect(client::ClientOptions options = {}) const;
  // A number of the daemon's statistics by JSON pointer ("/pool/capacity_bytes"); -1 if there is
  // none.
  double statistic(client::Client& client, const std::string& pointer) const;

 private:
  DaemonOptions options_;
  TempDir directory_;
  TempDir pool_;
  std::string socket_path_;
  std::unique_ptr<Process> process_;
};

// The namespace that system tests use.
client::Namespace open_test_namespace(client::Client& client);

// Asks every 5 ms until it says true or `timeout` has passed.
template <typename Condition>
bool eventually(Milliseconds timeout, Condition&& condition) {
  const SystemClock clock;
  const Deadline deadline = Deadline::after(clock, timeout);
  while (!condition()) {
    if (deadline.has_passed(clock.now())) return false;
    const timespec pause{.tv_sec = 0, .tv_nsec = 5'000'000};
    nanosleep(&pause, nullptr);
  }
  return true;
}

}  // namespace cairn::testing
