// The channel of the simulated network; see tests/support/sim_network.h.
#pragma once

#include "tests/support/sim_network.h"
#include "transport/control/frame_assembler.h"

#include <cstdint>
#include <deque>
#include <optional>
#include <utility>
#include <vector>

namespace cairn::testing {

class SimChannel final : public transport::Channel {
 public:
  SimChannel(SimNetwork& network, std::uint64_t connection, std::size_t side, SimProcessId process);
  ~SimChannel() override;
  SimChannel(const SimChannel&) = delete;
  SimChannel& operator=(const SimChannel&) = delete;
  // Every channel given to the simulated network is one of its own.
  static SimChannel& of(transport::Channel& channel) { return static_cast<SimChannel&>(channel); }

  using Channel::send;
  Status send(std::span<const std::byte> frame, std::span<const int> fds) noexcept override;
  Status flush() noexcept override;
  ByteCount queued() const noexcept override { return queued_; }
  Result<std::optional<transport::Received>> receive() noexcept override;
  int take_descriptor() noexcept override;
  int fd() const noexcept override { return -1; }
  bool is_local() const noexcept override;
  Peer peer() const override;

  std::uint64_t connection() const noexcept { return connection_; }
  std::size_t side() const noexcept { return side_; }
  bool is_readable() const;
  bool is_writable() const;
  bool has_ended() const;  // the other side's end has arrived, or this process is dead

 private:
  SimNetwork::Connection& wires() const { return network_.connections_.at(connection_); }
  SimNetwork::Side& own() const { return wires().sides.at(side_); }
  SimNetwork::Side& other() const { return wires().sides.at(1 - side_); }
  bool has_room(std::size_t bytes) const;
  bool has_arrived() const;
  void transmit(SimNetwork::Segment segment);
  void take_arrived();
  void drop_given();
  Error fail(Error error);

  SimNetwork& network_;
  std::uint64_t connection_;
  std::size_t side_;
  SimProcessId process_;
  transport::FrameAssembler assembler_;
  std::deque<SimNetwork::Segment> outbox_;  // one frame each
  ByteCount queued_;
  std::deque<std::pair<std::uint64_t, SimDescriptor>> waiting_;  // position of their first byte
  std::deque<SimDescriptor> given_;
  std::optional<Error> receive_error_;
};

}  // namespace cairn::testing
