// A client that says exactly what a test tells it to, over the simulated network.
#pragma once

#include "tests/support/manual_clock.h"
#include "tests/support/sim_host.h"
#include "tests/support/sim_network.h"
#include "transport/channel.h"
#include "transport/wire/messages.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

namespace cairn::server {

inline constexpr Nanoseconds kPatience = std::chrono::seconds(2);

// A frame that came, kept.
struct KeptFrame {
  wire::MessageType type{};
  std::uint64_t request_id = 0;
  std::vector<std::byte> body;
  std::vector<std::byte> tlvs;
  wire::FrameView view() const {
    return {.type = type, .request_id = request_id, .body = body, .tlvs = tlvs};
  }
};

// One socket, with mappings of its own.
class ScriptedClient {
 public:
  ScriptedClient(testing::SimHost& host,
                 testing::ManualClock& clock,
                 testing::SimProcessId process);
  ~ScriptedClient();
  ScriptedClient(const ScriptedClient&) = delete;
  ScriptedClient& operator=(const ScriptedClient&) = delete;

  bool connect(const transport::Address& address);
  void disconnect() { channel_.reset(); }
  transport::Channel& channel() { return *channel_; }
  testing::SimProcessId process() const { return process_; }

  // ---- messages ----
  template <typename Message>
  std::uint64_t send(const Message& message) {
    const std::uint64_t id = next_id_++;
    send_as(message, id);
    return id;
  }
  template <typename Message>
  void send_as(const Message& message, std::uint64_t id, std::span<const int> fds = {}) {
    wire::encode(message, id, writer_);
    send_frame(writer_.finish(), fds);
  }
  // Waits for room in the send queue, within kPatience.
  void send_frame(std::span<const std::byte> frame, std::span<const int> fds = {});
  // The reply to request `id`; a default one, with a failure recorded, when none comes.
  template <typename Reply>
  Reply reply(std::uint64_t id) {
    Reply out{};
    const auto frame = wait_for(id);
    expect_came(frame.has_value());
    if (frame) expect_came(wire::decode(frame->view(), out).has_value());
    return out;
  }
  template <typename Reply, typename Message>
  Reply ask(const Message& message) {
    return reply<Reply>(send(message));
  }
  // The next frame that answers `id`, within kPatience.
  std::optional<KeptFrame> wait_for(std::uint64_t id);
  // Lets the world go on for `time` and keeps what comes.
  void listen_for(Nanoseconds time);
  // Whether the daemon closes the connection within kPatience.
  bool is_closed();
  const std::vector<KeptFrame>& frames() const { return frames_; }

  // ---- the usual beginning ----
  wire::HelloReply hello(bool wants_mapping = true);
  // As hello(), with what the test says and this descriptor (-1: none).
  wire::HelloReply hello(const wire::Hello& hello, int descriptor);
  wire::JoinReply join(const wire::HelloReply& session);
  // Opens a namespace and uses it from now on.
  wire::NamespaceOpenReply open(std::string_view fingerprint = R"({"model":"m"})");
  wire::RequestContext context() const { return context_; }
  wire::RequestContext& context() { return context_; }

  // ---- mapped memory ----
  bool has_slab(std::uint32_t slab) const { return slabs_.contains(slab); }
  std::size_t slab_count() const { return slabs_.size(); }
  std::optional<int> lock() const { return lock_; }
  // The payload behind the header page.
  std::vector<std::span<std::byte>> payload(std::span<const wire::WireExtent> extents,
                                            std::uint32_t length) const;

 private:
  static void expect_came(bool has_come);
  void keep_arrived();
  void keep(const wire::FrameView& frame);
  std::optional<KeptFrame> take(std::uint64_t id);

  testing::SimHost& host_;
  testing::ManualClock& clock_;
  const testing::SimProcessId process_;
  std::unique_ptr<transport::Connector> connector_;
  std::unique_ptr<transport::Channel> channel_;
  bool is_closed_ = false;
  wire::FrameWriter writer_;
  std::uint64_t next_id_ = 1;
  std::vector<KeptFrame> frames_;
  std::map<std::uint32_t, std::span<std::byte>> slabs_;
  std::optional<int> lock_;
  wire::RequestContext context_;
};

}  // namespace cairn::server
