#include "server/process_setup.h"

#include <signal.h>
#include <sys/resource.h>

#include <array>
#include <cerrno>

namespace cairn::server {
namespace {

constexpr std::array<int, 3> kStopSignals = {SIGTERM, SIGINT, SIGHUP};

sigset_t stop_signals() noexcept {
  sigset_t set;
  ::sigemptyset(&set);
  for (const int signal : kStopSignals)
    ::sigaddset(&set, signal);
  return set;
}

}  // namespace

void hold_stop_signals() noexcept {
  const sigset_t set = stop_signals();
  ::pthread_sigmask(SIG_BLOCK, &set, nullptr);
  ::signal(SIGPIPE, SIG_IGN);
}

void wait_for_stop_signal() noexcept {
  const sigset_t set = stop_signals();
  while (::sigwaitinfo(&set, nullptr) < 0 && errno == EINTR) {
  }
  for (const int signal : kStopSignals)
    ::signal(signal, SIG_DFL);
  ::pthread_sigmask(SIG_UNBLOCK, &set, nullptr);
}

void raise_descriptor_limit() noexcept {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
}

}  // namespace cairn::server
