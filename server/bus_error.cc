#include "server/bus_error.h"

#include "server/start_failure.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace cairn::server {
namespace {

// Everything here runs inside a signal handler: system calls and arithmetic, no allocation, no
// lock.

constexpr std::size_t kLineMax = 4'608;  // a path of PATH_MAX and the numbers before it

void say(const char* text, std::size_t bytes) {
  while (bytes > 0) {
    const ssize_t written = ::write(STDERR_FILENO, text, bytes);
    if (written <= 0) return;
    text += written;
    bytes -= static_cast<std::size_t>(written);
  }
}

void say(const char* text) {
  say(text, std::strlen(text));
}

struct Cursor {
  const char* at;
  const char* end;

  bool skip(char c) {
    if (at == end || *at != c) return false;
    ++at;
    return true;
  }
  std::uintptr_t hex() {
    std::uintptr_t value = 0;
    for (; at != end; ++at) {
      const char c = *at;
      if (c >= '0' && c <= '9') {
        value = value * 16 + static_cast<std::uintptr_t>(c - '0');
      } else if (c >= 'a' && c <= 'f') {
        value = value * 16 + static_cast<std::uintptr_t>(c - 'a' + 10);
      } else {
        break;
      }
    }
    return value;
  }
};

// The path in a line of /proc/self/maps ("start-end perms offset device inode path") if `address`
// lies in its range; empty if not.
Cursor path_in(Cursor line, std::uintptr_t address) {
  const Cursor none{line.end, line.end};
  const std::uintptr_t start = line.hex();
  if (!line.skip('-')) return none;
  const std::uintptr_t end = line.hex();
  if (address < start || address >= end) return none;
  while (line.at != line.end && *line.at != '/')
    ++line.at;
  return line;
}

// Reads /proc/self/maps line by line; lines that do not fit are skipped.
class MapsReader {
 public:
  MapsReader()
      : file_(::open("/proc/self/maps", O_RDONLY | O_CLOEXEC)) {}
  MapsReader(const MapsReader&) = delete;
  MapsReader& operator=(const MapsReader&) = delete;
  ~MapsReader() {
    if (file_ >= 0) ::close(file_);
  }

  bool next(Cursor& line) {
    size_ = 0;
    for (;;) {
      char c = 0;
      if (!take(c)) return false;
      if (c == '\n') break;
      if (size_ < line_.size()) line_[size_++] = c;
    }
    line = {line_.data(), line_.data() + size_};
    return true;
  }

 private:
  bool take(char& c) {
    if (at_ == filled_) {
      const ssize_t got = ::read(file_, buffer_.data(), buffer_.size());
      if (got <= 0) return false;
      at_ = 0;
      filled_ = static_cast<std::size_t>(got);
    }
    c = buffer_[at_++];
    return true;
  }

  int file_;
  std::array<char, 4'096> buffer_{};
  std::size_t at_ = 0;
  std::size_t filled_ = 0;
  std::array<char, kLineMax> line_{};
  std::size_t size_ = 0;
};

void on_bus_error(int /*signal*/, siginfo_t* info, void* /*context*/) {
  std::uintptr_t address = 0;
  std::memcpy(&address, &info->si_addr, sizeof address);
  MapsReader maps;
  Cursor line{nullptr, nullptr};
  while (maps.next(line)) {
    const Cursor path = path_in(line, address);
    if (path.at == path.end) continue;
    say("cairnd: a mapped file was truncated by somebody, its bytes are gone: ");
    say(path.at, static_cast<std::size_t>(path.end - path.at));
    say("\n");
    ::_exit(kExitFailed);
  }
  say("cairnd: bus error outside of any mapped file\n");
  ::_exit(kExitFailed);
}

}  // namespace

void install_bus_error_handler() noexcept {
  struct sigaction action {};
  action.sa_sigaction = on_bus_error;
  action.sa_flags = SA_SIGINFO | SA_RESETHAND;
  ::sigemptyset(&action.sa_mask);
  ::sigaction(SIGBUS, &action, nullptr);
}

}  // namespace cairn::server
