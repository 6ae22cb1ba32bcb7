// The poller of a real loop: Boost.Asio's reactor under a face that returns events.
//
// Asio reports a descriptor once for each wait that is armed, so what was reported is armed again
// at the start of the next wait(): arming asks the kernel afresh (epoll_ctl), which makes the whole
// level-triggered. A descriptor that nothing happens on costs nothing.
#include "base/check.h"
#include "base/spin_gate.h"
#include "transport/channel.h"
#include "transport/control/owned_fd.h"
#include "transport/control/socket_channel.h"
#include "transport/control/wait.h"

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <unordered_map>
#include <utility>
#include <vector>

namespace cairn::transport {
namespace {

namespace asio = boost::asio;
using asio::posix::descriptor_base;
using StreamDescriptor = asio::posix::stream_descriptor;

// The waits that can be armed on a descriptor, as indices into Watch::is_armed and kWaitTypes.
enum WaitKind : std::size_t { kReadable, kWritable, kBroken, kWaitKinds };
constexpr std::array<descriptor_base::wait_type, kWaitKinds> kWaitTypes = {
    descriptor_base::wait_read, descriptor_base::wait_write, descriptor_base::wait_error};

struct Watch {
  explicit Watch(asio::io_context& context)
      : descriptor(context) {}

  bool wants(WaitKind kind) const noexcept {
    if (kind == kReadable) return wants_readable;
    // One who does not want to read still has to hear of a hang-up; a read would tell him.
    return kind == kWritable ? wants_writable : !wants_readable;
  }
  bool has_unread_frames() const noexcept {
    return wants_readable && channel != nullptr && channel->has_buffered();
  }

  StreamDescriptor descriptor;
  const SocketChannel* channel = nullptr;  // set when frames may lie in its buffer
  Poller::Token token = 0;
  std::uint64_t id = 0;  // never reused, so that a late completion finds nobody
  bool wants_readable = true;
  bool wants_writable = false;
  std::array<bool, kWaitKinds> is_armed{};
  std::array<bool, kWaitKinds> is_ready{};
  bool is_listed = false;    // in ready_ or in to_arm_
  bool is_unusable = false;  // cannot be waited on; was reported once
};

class AsioPoller final : public Poller {
 public:
  AsioPoller(const Clock& clock, OwnedFd wake, Nanoseconds spin)
      : clock_(clock),
        spin_gate_(spin),
        wake_(std::move(wake)),
        wake_descriptor_(context_, wake_.get()) {}
  AsioPoller(const AsioPoller&) = delete;
  AsioPoller& operator=(const AsioPoller&) = delete;
  ~AsioPoller() override {
    // The descriptors are others': they are let go, never closed.
    for (auto& [fd, watch] : watches_)
      static_cast<void>(watch->descriptor.release());
    static_cast<void>(wake_descriptor_.release());
  }

  Status add(Channel& channel, Token token) noexcept override {
    return add_fd(channel.fd(), token, dynamic_cast<const SocketChannel*>(&channel));
  }
  void remove(Channel& channel) noexcept override { remove_descriptor(channel.fd()); }
  Status add(Listener& listener, Token token) noexcept override {
    return add_fd(listener.fd(), token, nullptr);
  }
  void remove(Listener& listener) noexcept override { remove_descriptor(listener.fd()); }
  Status add_descriptor(int fd, Token token) noexcept override {
    return add_fd(fd, token, nullptr);
  }
  void remove_descriptor(int fd) noexcept override;
  void want_writable(Channel& channel, bool wanted) noexcept override;
  void want_readable(Channel& channel, bool wanted) noexcept override;
  std::size_t wait(std::span<Event> out, MonotonicTime until) noexcept override;
  void wake() noexcept override;

 private:
  Status add_fd(int fd, Token token, const SocketChannel* channel) noexcept;
  void arm_wake();
  void arm(Watch& watch);
  void arm_listed();
  Watch& watch_of(const Channel& channel) noexcept;
  void list_ready(Watch& watch);
  void list_to_arm(Watch& watch);
  void completed(std::uint64_t id, WaitKind kind, const boost::system::error_code& error);
  bool run(MonotonicTime until);
  bool spin(MonotonicTime end);
  std::size_t take_ready(std::span<Event> out) noexcept;

  const Clock& clock_;
  SpinGate spin_gate_;
  OwnedFd wake_;
  asio::io_context context_{1};  // one thread runs it
  asio::executor_work_guard<asio::io_context::executor_type> work_{context_.get_executor()};
  StreamDescriptor wake_descriptor_;
  std::unordered_map<int, std::unique_ptr<Watch>> watches_;
  std::unordered_map<std::uint64_t, Watch*> by_id_;
  std::uint64_t next_id_ = 1;
  std::deque<std::uint64_t> ready_;    // in the order in which they became ready
  std::vector<std::uint64_t> to_arm_;  // new, changed, or reported by the last wait()
  bool is_wake_armed_ = false;
  bool is_woken_ = false;
};

Status AsioPoller::add_fd(int fd, Token token, const SocketChannel* channel) noexcept {
  try {
    auto owner = std::make_unique<Watch>(context_);
    Watch& watch = *owner;
    watch.channel = channel;
    watch.token = token;
    watch.id = next_id_++;
    to_arm_.push_back(watch.id);
    by_id_.emplace(watch.id, &watch);
    CAIRN_CHECK(watches_.emplace(fd, std::move(owner)).second);
    watch.is_listed = true;
    // Last, since a watch that is destroyed with its descriptor assigned would close it.
    boost::system::error_code error;
    watch.descriptor.assign(fd, error);
    if (!error) return {};
    by_id_.erase(watch.id);
    watches_.erase(fd);
    return Error{ErrorCode::kIo, error.value(), "poller: add"};
  } catch (...) {
    return Error{ErrorCode::kIo, ENOMEM, "poller: add"};
  }
}

void AsioPoller::remove_descriptor(int fd) noexcept {
  const auto found = watches_.find(fd);
  CAIRN_CHECK(found != watches_.end());
  by_id_.erase(found->second->id);
  static_cast<void>(found->second->descriptor.release());
  watches_.erase(found);
}

Watch& AsioPoller::watch_of(const Channel& channel) noexcept {
  const auto found = watches_.find(channel.fd());
  CAIRN_CHECK(found != watches_.end());
  return *found->second;
}

void AsioPoller::list_to_arm(Watch& watch) {
  if (watch.is_listed) return;
  watch.is_listed = true;
  to_arm_.push_back(watch.id);
}

void AsioPoller::want_writable(Channel& channel, bool wanted) noexcept {
  Watch& watch = watch_of(channel);
  watch.wants_writable = wanted;
  list_to_arm(watch);
}

void AsioPoller::want_readable(Channel& channel, bool wanted) noexcept {
  Watch& watch = watch_of(channel);
  watch.wants_readable = wanted;
  list_to_arm(watch);
}

void AsioPoller::wake() noexcept {
  const int saved = errno;
  const std::uint64_t one = 1;
  // It fails only when the counter is full, and then wait() is about to end anyway.
  static_cast<void>(!::write(wake_.get(), &one, sizeof(one)));
  errno = saved;
}

void AsioPoller::arm_wake() {
  if (is_wake_armed_) return;
  is_wake_armed_ = true;
  wake_descriptor_.async_wait(descriptor_base::wait_read,
                              [this](const boost::system::error_code& error) {
                                is_wake_armed_ = false;
                                std::uint64_t count = 0;
                                if (error || ::read(wake_.get(), &count, sizeof(count)) < 0) return;
                                is_woken_ = true;
                              });
}

void AsioPoller::arm(Watch& watch) {
  if (watch.is_unusable) return;
  for (const WaitKind kind : {kReadable, kWritable, kBroken}) {
    if (!watch.wants(kind) || watch.is_armed[kind]) continue;
    const auto on_ready = [this, id = watch.id, kind](const boost::system::error_code& error) {
      completed(id, kind, error);
    };
    watch.descriptor.async_wait(kWaitTypes[kind], on_ready);
    watch.is_armed[kind] = true;
  }
}

void AsioPoller::list_ready(Watch& watch) {
  if (watch.is_listed) return;
  watch.is_listed = true;
  ready_.push_back(watch.id);
}

void AsioPoller::arm_listed() {
  while (!to_arm_.empty()) {
    const auto found = by_id_.find(to_arm_.back());
    if (found != by_id_.end()) {
      Watch& watch = *found->second;
      arm(watch);
      watch.is_listed = false;
      if (watch.has_unread_frames()) {
        watch.is_ready[kReadable] = true;
        list_ready(watch);
      }
    }
    to_arm_.pop_back();
  }
}

void AsioPoller::completed(std::uint64_t id,
                           WaitKind kind,
                           const boost::system::error_code& error) {
  const auto found = by_id_.find(id);
  if (found == by_id_.end()) return;
  Watch& watch = *found->second;
  watch.is_armed[kind] = false;
  if (error) watch.is_unusable = true;
  watch.is_ready[kind] = watch.wants(kind);
  if (watch.is_ready[kind]) list_ready(watch);
}

// Runs what is ready, waiting for it if nothing is. False when `until` has passed without.
//
// One completion at a time: those that came with it stay queued in Asio, and the next wait() runs
// the next one without a system call. To run all that is queued costs one more epoll_wait(2) in the
// path of every message, since Asio has no other way to tell whether more is queued.
bool AsioPoller::run(MonotonicTime until) {
  const Nanoseconds step = wait_step(until, clock_);
  if (!ready_.empty() || step == Nanoseconds(0)) {
    context_.poll();
    return false;
  }
  const MonotonicTime begin = clock_.now();
  const bool has_come = spin(std::min(until, begin + spin_gate_.budget())) ||
                        context_.run_one_for(wait_step(until, clock_)) > 0;
  spin_gate_.waited(clock_.now() - begin, has_come);
  return has_come || step == kWaitStepMax;
}

bool AsioPoller::spin(MonotonicTime end) {
  while (clock_.now() < end) {
    if (context_.poll_one() > 0) return true;
  }
  return false;
}

std::size_t AsioPoller::take_ready(std::span<Event> out) noexcept {
  std::size_t count = 0;
  while (count < out.size() && !ready_.empty()) {
    const auto found = by_id_.find(ready_.front());
    ready_.pop_front();
    if (found == by_id_.end()) continue;
    Watch& watch = *found->second;
    const auto take = [&watch](WaitKind kind) {
      return std::exchange(watch.is_ready[kind], false) && watch.wants(kind);
    };
    const bool is_broken = take(kBroken);
    Event& event = out[count];
    event = {watch.token, take(kReadable) || is_broken, take(kWritable) || is_broken};
    to_arm_.push_back(watch.id);
    if (event.is_readable || event.is_writable) ++count;
  }
  return count;
}

std::size_t AsioPoller::wait(std::span<Event> out, MonotonicTime until) noexcept {
  CAIRN_CHECK(!out.empty());
  try {
    for (;;) {
      arm_wake();
      arm_listed();
      const bool may_go_on = run(until);
      const std::size_t count = take_ready(out);
      const bool is_woken = std::exchange(is_woken_, false);
      if (count > 0 || is_woken || !may_go_on) return count;
    }
  } catch (...) {
    // Out of memory while arming: what is listed stays listed, and the next wait() tries again.
    return 0;
  }
}

}  // namespace

Result<std::unique_ptr<Poller>> make_asio_poller(const Clock& clock, Nanoseconds spin) noexcept {
  OwnedFd wake(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!wake.is_open()) return Error{ErrorCode::kIo, errno, "eventfd"};
  try {
    return std::unique_ptr<Poller>(std::make_unique<AsioPoller>(clock, std::move(wake), spin));
  } catch (const boost::system::system_error& error) {
    return Error{ErrorCode::kIo, error.code().value(), "poller"};
  } catch (...) {
    return Error{ErrorCode::kIo, ENOMEM, "poller"};
  }
}

}  // namespace cairn::transport
