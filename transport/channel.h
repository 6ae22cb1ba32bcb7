// The seam of the control channel: ordered messages with descriptors, a listener, a connector and a
// poller. Real: unix sockets and TCP, waited on by Asio. Simulated: tests/support/sim_network.h.
// Both pass tests/contract/channel_contract_test.cc.
//
// Work is data: send() queues, receive() takes what has come, Poller::wait() says which descriptors
// or timers are due. Nothing here calls back.
#pragma once

#include "base/clock.h"
#include "base/result.h"
#include "base/units.h"
#include "transport/wire/frame.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace cairn::transport {

// "unix:/run/cairn.sock" or "host:port" (IPv4, [IPv6] or localhost).
struct Address {
  bool is_unix = false;
  std::string path;  // unix
  std::string host;  // tcp
  std::uint16_t port = 0;
  // Errors: kInvalid.
  static Result<Address> parse(std::string_view text);
  std::string to_string() const;
  // 127.0.0.0/8 or ::1, by its text alone.
  bool is_loopback() const noexcept;
};

// A frame that has arrived whole and with a right checksum. `frame` and its spans are valid until
// the next receive() on that channel.
struct Received {
  wire::FrameView frame;
};

// Bytes queued in one channel at most; send() answers kBusy beyond it.
inline constexpr ByteCount kSendQueueMax = 8_MiB;
inline constexpr std::size_t kDescriptorsPerMessageMax = 4;

// One connection. One thread's; moves between threads only while nobody uses it.
class Channel {
 public:
  Channel() = default;
  Channel(const Channel&) = delete;
  Channel& operator=(const Channel&) = delete;
  // Closes at once; what was queued and not yet sent is lost.
  virtual ~Channel() = default;

  // Queues one finished frame (wire::FrameWriter::finish()) and sends what the socket takes now.
  // `fds` are duplicated by the kernel when the frame's first byte is sent and until then owned by
  // the channel as duplicates, so the caller may close its own. Errors: kBusy (queue full; nothing
  // was queued), kPeerGone, kUnsupported (fds on TCP).
  virtual Status send(std::span<const std::byte> frame, std::span<const int> fds) noexcept = 0;
  Status send(std::span<const std::byte> frame) noexcept { return send(frame, {}); }
  // Sends more of what is queued. Errors: kPeerGone.
  virtual Status flush() noexcept = 0;
  virtual ByteCount queued() const noexcept = 0;

  // The next whole frame, nullopt if none has come yet. Never blocks. Errors: kPeerGone (closed,
  // all frames before it were given), kCorrupt, kTooLarge, kVersion (what came is no frame of ours;
  // the channel is of no further use).
  virtual Result<std::optional<Received>> receive() noexcept = 0;
  // A descriptor that came with the frame last received, in order; -1 when none is left. The caller
  // owns it. Descriptors not taken are closed by the next receive().
  virtual int take_descriptor() noexcept = 0;

  // For Poller::add or poll(2); level-triggered, may wake for nothing. -1 in a simulated channel.
  virtual int fd() const noexcept = 0;
  virtual bool is_local() const noexcept = 0;  // a unix socket: descriptors can pass
  // The other side as the kernel says (unix: pid and uid of connect time; TCP: zeros).
  struct Peer {
    std::uint32_t pid = 0;
    std::uint32_t uid = 0;
    std::string name;  // for the log
  };
  virtual Peer peer() const = 0;
};

class Listener {
 public:
  Listener() = default;
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;
  virtual ~Listener() = default;
  // A connection that is waiting, or nullptr. Never blocks. Errors: kIo (with EMFILE and the like:
  // the listener stays good), kPeerGone (the listener is closed).
  virtual Result<std::unique_ptr<Channel>> accept() noexcept = 0;
  virtual int fd() const noexcept = 0;
  virtual Address address() const = 0;  // with the port that was chosen when it was 0
};

class Connector {
 public:
  Connector() = default;
  Connector(const Connector&) = delete;
  Connector& operator=(const Connector&) = delete;
  virtual ~Connector() = default;
  // Connects within `timeout`. Blocks no longer than that (a simulated one never). Errors:
  // kPeerGone (refused, no such socket), kTimeout, kPermission, kInvalid (a name instead of an IP
  // address), kIo.
  virtual Result<std::unique_ptr<Channel>> connect(const Address& address,
                                                   Milliseconds timeout) noexcept = 0;
  // Waits until `channel` is readable (or writable, when it has bytes queued) or `until` passes.
  // True: something may be there. A simulated one lets the simulated world take a step.
  virtual bool wait(Channel& channel, MonotonicTime until) noexcept = 0;
  // Waits until `until`: for who has no channel and will try again then.
  virtual void pause(MonotonicTime until) noexcept = 0;
};

// What a loop waits on. Not thread-safe but for wake().
class Poller {
 public:
  Poller() = default;
  Poller(const Poller&) = delete;
  Poller& operator=(const Poller&) = delete;
  virtual ~Poller() = default;

  using Token = std::uint64_t;  // chosen by the caller, given back by wait()
  struct Event {
    Token token = 0;
    bool is_readable = false;
    bool is_writable = false;
  };

  // Each object is added once and removed before it is destroyed.
  virtual Status add(Channel& channel, Token token) noexcept = 0;
  virtual void remove(Channel& channel) noexcept = 0;
  virtual Status add(Listener& listener, Token token) noexcept = 0;
  virtual void remove(Listener& listener) noexcept = 0;
  // A raw descriptor (a pidfd) that becomes readable once. In a simulated poller the descriptor is
  // a handle of the simulated world.
  virtual Status add_descriptor(int fd, Token token) noexcept = 0;
  virtual void remove_descriptor(int fd) noexcept = 0;
  // Whether wait() reports the channel as writable: wanted while it has bytes queued.
  virtual void want_writable(Channel& channel, bool wanted) noexcept = 0;
  // Whether wait() reports the channel as readable; wanted from add() on. Not wanted while the
  // other side does not read its replies: the channel is then reported when it is writable or
  // broken only.
  virtual void want_readable(Channel& channel, bool wanted) noexcept = 0;

  // Fills `out` with what is ready, waiting until something is, wake() is called or `until` passes.
  // A channel that stays readable is reported again. The number of events; 0 after a wake or at
  // `until`.
  virtual std::size_t wait(std::span<Event> out, MonotonicTime until) noexcept = 0;
  // Ends a wait() that is under way or the next one. Any thread, signal-safe.
  virtual void wake() noexcept = 0;
};

// ---- the real ones: transport/control/ ----
// Unix: creates the socket 0600 (an old socket file that nobody listens on is replaced). Errors:
// kExists (somebody listens), kPermission, kIo, kInvalid.
Result<std::unique_ptr<Listener>> listen(const Address& address) noexcept;
// `spin` of both: base/spin_gate.h, the longest spin of a wait that seems worth one.
std::unique_ptr<Connector> make_connector(const Clock& clock, Nanoseconds spin = Nanoseconds(0));
// Errors: kIo.
Result<std::unique_ptr<Poller>> make_asio_poller(const Clock& clock,
                                                 Nanoseconds spin = Nanoseconds(0)) noexcept;

}  // namespace cairn::transport
