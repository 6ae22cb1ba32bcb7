#include "tests/support/sim_channel.h"

#include "base/check.h"

#include <algorithm>
#include <cstring>

namespace cairn::testing {
namespace {

// One frame in so many arrives in two pieces.
constexpr std::uint64_t kSplitOneIn = 4;

}  // namespace

SimChannel::SimChannel(SimNetwork& network,
                       std::uint64_t connection,
                       std::size_t side,
                       SimProcessId process)
    : network_(network),
      connection_(connection),
      side_(side),
      process_(process) {}

SimChannel::~SimChannel() {
  network_.drop_owner(connection_, side_, process_);
}

bool SimChannel::is_local() const noexcept {
  return wires().is_unix;
}

transport::Channel::Peer SimChannel::peer() const {
  if (!is_local()) return {.pid = 0, .uid = 0, .name = "tcp"};
  const std::uint32_t pid = other().opener.value();
  return {.pid = pid, .uid = 0, .name = "pid " + std::to_string(pid)};
}

bool SimChannel::has_arrived() const {
  return !own().inbound.empty() && own().inbound.front().at <= network_.clock_.now();
}

bool SimChannel::has_ended() const {
  if (!own().holders.contains(process_)) return true;
  const auto& inbound = own().inbound;
  return !inbound.empty() && inbound.back().is_end && inbound.back().at <= network_.clock_.now();
}

bool SimChannel::is_readable() const {
  return receive_error_ || assembler_.has_next() || has_arrived();
}

bool SimChannel::has_room(std::size_t bytes) const {
  if (wires().is_silent) return false;
  const std::size_t held = other().inbound_bytes;
  return held == 0 || held + bytes <= network_.options_.socket_bytes.value();
}

bool SimChannel::is_writable() const {
  return has_ended() || outbox_.empty() || has_room(outbox_.front().bytes.size());
}

Status SimChannel::send(std::span<const std::byte> frame, std::span<const int> fds) noexcept {
  CAIRN_CHECK(fds.size() <= transport::kDescriptorsPerMessageMax);
  if (!fds.empty() && !is_local()) return Error{ErrorCode::kUnsupported, 0, "sim: descriptors"};
  CAIRN_TRY_STATUS(flush());
  if (queued_ + ByteCount(frame.size()) > transport::kSendQueueMax) {
    return Error{ErrorCode::kBusy, 0, "sim: send queue"};
  }
  SimNetwork::Segment segment{.bytes = {frame.begin(), frame.end()}};
  for (const int fd : fds)
    segment.descriptors.push_back(network_.descriptor(fd).value());
  queued_ += ByteCount(frame.size());
  outbox_.push_back(std::move(segment));
  return flush();
}

Status SimChannel::flush() noexcept {
  if (has_ended()) return Error{ErrorCode::kPeerGone, 0, "sim: closed"};
  while (!outbox_.empty() && has_room(outbox_.front().bytes.size())) {
    queued_ -= ByteCount(outbox_.front().bytes.size());
    transmit(std::move(outbox_.front()));
    outbox_.pop_front();
  }
  return {};
}

void SimChannel::transmit(SimNetwork::Segment segment) {
  SimNetwork::Segment rest;
  if (network_.random_.below(kSplitOneIn) == 0) {
    const auto at =
        segment.bytes.begin() +
        static_cast<std::ptrdiff_t>(1 + network_.random_.below(segment.bytes.size() - 1));
    rest.bytes.assign(at, segment.bytes.end());
    segment.bytes.erase(at, segment.bytes.end());
  }
  network_.push(wires(), other(), std::move(segment));
  if (!rest.bytes.empty()) network_.push(wires(), other(), std::move(rest));
}

Result<std::optional<transport::Received>> SimChannel::receive() noexcept {
  given_.clear();
  if (receive_error_) return *receive_error_;
  if (!own().holders.contains(process_)) return fail({ErrorCode::kPeerGone, 0, "sim: dead"});
  for (;;) {
    const auto frame = assembler_.next();
    if (!frame) return fail(frame.error());
    if (frame->has_value()) {
      while (!waiting_.empty() && waiting_.front().first < assembler_.frame_end()) {
        given_.push_back(waiting_.front().second);
        waiting_.pop_front();
      }
      return transport::Received{**frame};
    }
    if (!has_arrived()) return std::nullopt;
    if (own().inbound.front().is_end) return fail({ErrorCode::kPeerGone, 0, "sim: closed"});
    take_arrived();
  }
}

void SimChannel::take_arrived() {
  SimNetwork::Segment& segment = own().inbound.front();
  for (const SimDescriptor what : segment.descriptors) {
    waiting_.emplace_back(assembler_.stream_end(), what);
  }
  segment.descriptors.clear();
  const std::span<std::byte> room = assembler_.room();
  const std::size_t bytes = std::min(room.size(), segment.bytes.size());
  std::memcpy(room.data(), segment.bytes.data(), bytes);
  assembler_.added(bytes);
  own().inbound_bytes -= bytes;
  segment.bytes.erase(segment.bytes.begin(),
                      segment.bytes.begin() + static_cast<std::ptrdiff_t>(bytes));
  if (segment.bytes.empty()) own().inbound.pop_front();
}

int SimChannel::take_descriptor() noexcept {
  if (given_.empty()) return -1;
  const SimDescriptor what = given_.front();
  given_.pop_front();
  return network_.open_descriptor(process_, what);
}

Error SimChannel::fail(Error error) {
  given_.clear();
  waiting_.clear();
  receive_error_ = error;
  return error;
}

}  // namespace cairn::testing
