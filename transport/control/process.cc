#include "transport/process.h"

#include "transport/control/owned_fd.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace cairn::transport {
namespace {

constexpr std::string_view kPidfdLink = "anon_inode:[pidfd]";
constexpr std::string_view kPidLine = "\nPid:\t";
constexpr std::size_t kFdInfoBytesMax = 4096;
// PIDFD_THREAD of newer kernels: such a descriptor ends with one thread, while the others go on.
constexpr int kThreadFlag = O_EXCL;

bool is_pidfd(int fd) {
  const std::string link = "/proc/self/fd/" + std::to_string(fd);
  std::array<char, 64> target{};
  const ssize_t bytes = ::readlink(link.c_str(), target.data(), target.size());
  if (bytes < 0) return false;
  return std::string_view(target.data(), static_cast<std::size_t>(bytes)) == kPidfdLink;
}

// The pid as this process's /proc shows it: 0 when it has none there, -1 when it has been reaped.
Result<std::int64_t> pid_of(int pidfd) {
  const std::string path = "/proc/self/fdinfo/" + std::to_string(pidfd);
  const OwnedFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file.is_open()) return Error{ErrorCode::kIo, errno, "open fdinfo"};
  std::array<char, kFdInfoBytesMax> text{};
  const ssize_t bytes = ::read(file.get(), text.data(), text.size());
  if (bytes < 0) return Error{ErrorCode::kIo, errno, "read fdinfo"};
  const std::string_view info(text.data(), static_cast<std::size_t>(bytes));
  const std::size_t line = info.find(kPidLine);
  if (line == std::string_view::npos) return Error{ErrorCode::kInvalid, 0, "fdinfo has no Pid"};
  const std::string_view number = info.substr(line + kPidLine.size());
  std::int64_t pid = 0;
  const auto parsed = std::from_chars(number.data(), number.data() + number.size(), pid);
  if (parsed.ec != std::errc{}) return Error{ErrorCode::kInvalid, 0, "fdinfo has no Pid"};
  return pid;
}

class PidfdWatch final : public ProcessWatch {
 public:
  Status verify(int fd, const Channel::Peer& peer) noexcept override {
    return verify_pidfd(fd, peer);
  }
  bool has_exited(int fd) noexcept override { return transport::has_exited(fd); }
  void close(int fd) noexcept override { OwnedFd(fd).reset(); }
  Result<int> open_own() noexcept override { return open_own_pidfd(); }
};

}  // namespace

Result<int> open_own_pidfd() noexcept {
  // By number, since older C libraries have no name for it. Close-on-exec is always set.
  const long fd = ::syscall(SYS_pidfd_open, ::getpid(), 0);
  if (fd >= 0) return static_cast<int>(fd);
  if (errno == ENOSYS) return Error{ErrorCode::kUnsupported, errno, "pidfd_open"};
  return Error{ErrorCode::kIo, errno, "pidfd_open"};
}

bool has_exited(int pidfd) noexcept {
  pollfd entry{pidfd, POLLIN, 0};
  for (;;) {
    const int ready = ::poll(&entry, 1, 0);
    if (ready < 0 && errno == EINTR) continue;
    return ready > 0 && (entry.revents & POLLIN) != 0;
  }
}

Status verify_pidfd(int fd, const Channel::Peer& peer) noexcept {
  if (!is_pidfd(fd)) return Error{ErrorCode::kInvalid, 0, "no pidfd"};
  const int flags = ::fcntl(fd, F_GETFL);
  if (flags < 0 || (flags & kThreadFlag) != 0) {
    return Error{ErrorCode::kInvalid, 0, "the pidfd of a thread"};
  }
  CAIRN_TRY(const std::int64_t pid, pid_of(fd));
  if (pid == -1) return Error{ErrorCode::kPeerGone, 0, "the process has been reaped"};
  if (pid != static_cast<std::int64_t>(peer.pid)) {
    return Error{ErrorCode::kPermission, 0, "the pidfd of another process"};
  }
  return {};
}

std::unique_ptr<ProcessWatch> make_process_watch() {
  return std::make_unique<PidfdWatch>();
}

}  // namespace cairn::transport
