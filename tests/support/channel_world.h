// One face over the worlds in which the contract of the control channel must hold: unix
// sockets (with waits that sleep and that spin), TCP on loopback and the simulated network.
#pragma once

#include "base/random.h"
#include "transport/channel.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace cairn::testing {

// Of the world's own time: far beyond what anything here takes.
inline constexpr Nanoseconds kPatience = std::chrono::seconds(10);

class ChannelWorld {
 public:
  ChannelWorld() = default;
  ChannelWorld(const ChannelWorld&) = delete;
  ChannelWorld& operator=(const ChannelWorld&) = delete;
  virtual ~ChannelWorld() = default;

  virtual const Clock& clock() const = 0;
  virtual std::unique_ptr<transport::Listener> listen() = 0;
  virtual transport::Connector& connector() = 0;
  virtual std::unique_ptr<transport::Poller> make_poller() = 0;
  virtual bool has_descriptors() const = 0;
  // A descriptor that can be sent and told from others by same_object(); close it afterwards.
  virtual int make_descriptor() = 0;
  virtual bool is_same_object(int left, int right) = 0;
  virtual void close_descriptor(int fd) = 0;
  // A descriptor that is readable once make_readable() was called.
  virtual int make_watched_descriptor() = 0;
  virtual void make_readable(int fd) = 0;
  // `bytes` arrive at `to` as they are, as if `from`, its other side, had sent them.
  virtual void send_raw(transport::Channel& from,
                        transport::Channel& to,
                        std::span<const std::byte> bytes) = 0;

  MonotonicTime soon() const { return clock().now() + kPatience; }
};

enum class ChannelWorldKind : std::uint8_t { kUnix, kUnixSpinning, kTcp, kSimulated };
std::unique_ptr<ChannelWorld> make_channel_world(ChannelWorldKind kind);
std::string channel_world_name(ChannelWorldKind kind);

// Two ends of one connection.
struct ChannelPair {
  std::unique_ptr<transport::Listener> listener;
  std::unique_ptr<transport::Channel> client;
  std::unique_ptr<transport::Channel> server;
};
ChannelPair connect_pair(ChannelWorld& world);
// As above, with a listener that is there; the pair has none.
ChannelPair connect_to(ChannelWorld& world, transport::Listener& listener);

// A finished frame with `request_id` and a body of `body_bytes` that follow from it.
std::vector<std::byte> make_frame(std::uint64_t request_id, std::size_t body_bytes);
bool is_frame(const wire::FrameView& frame, std::uint64_t request_id, std::size_t body_bytes);

// What receive() gives within kPatience; nullopt in the Result when nothing comes.
Result<std::optional<transport::Received>> receive_soon(ChannelWorld& world,
                                                        transport::Channel& channel);
// The error that ends `channel`, however many frames come before it.
Error receive_error(ChannelWorld& world, transport::Channel& channel);

}  // namespace cairn::testing
