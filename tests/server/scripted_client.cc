#include "tests/server/scripted_client.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace cairn::server {

using testing::SimDescriptorKind;

ScriptedClient::ScriptedClient(testing::SimHost& host,
                               testing::ManualClock& clock,
                               testing::SimProcessId process)
    : host_(host),
      clock_(clock),
      process_(process),
      connector_(host.network().make_connector(process)) {}

ScriptedClient::~ScriptedClient() {
  for (const auto& [slab, bytes] : slabs_)
    testing::SimHost::unmap_slab(bytes);
}

void ScriptedClient::expect_came(bool has_come) {
  EXPECT_TRUE(has_come) << "no reply, or another than the one expected";
}

bool ScriptedClient::connect(const transport::Address& address) {
  auto channel = connector_->connect(address, Milliseconds(100));
  if (!channel) return false;
  channel_ = *std::move(channel);
  is_closed_ = false;
  return true;
}

void ScriptedClient::send_frame(std::span<const std::byte> frame, std::span<const int> fds) {
  const MonotonicTime until = clock_.now() + kPatience;
  for (;;) {
    const Status sent = channel_->send(frame, fds);
    const bool is_full = !sent && sent.error().code == ErrorCode::kBusy;
    if (!is_full || clock_.now() >= until) return;
    keep_arrived();
    static_cast<void>(connector_->wait(*channel_, until));
  }
}

void ScriptedClient::keep(const wire::FrameView& frame) {
  if (frame.type == wire::MessageType::kSlab) {
    wire::SlabNotice notice;
    expect_came(wire::decode(frame, notice).has_value());
    const int fd = channel_->take_descriptor();
    const auto what = host_.network().descriptor(fd);
    ASSERT_TRUE(what && what->kind == SimDescriptorKind::kSlab);
    slabs_[notice.slab] = host_.map_slab(what->subject);
    host_.network().close_descriptor(process_, fd);
    return;
  }
  if (frame.type == wire::MessageType::kHelloReply) {
    const int fd = channel_->take_descriptor();
    if (fd >= 0) lock_ = fd;
  }
  frames_.push_back({.type = frame.type,
                     .request_id = frame.request_id,
                     .body = {frame.body.begin(), frame.body.end()},
                     .tlvs = {frame.tlvs.begin(), frame.tlvs.end()}});
}

void ScriptedClient::keep_arrived() {
  while (!is_closed_) {
    const auto received = channel_->receive();
    if (!received) is_closed_ = true;
    if (!received || !received->has_value()) return;
    keep((*received)->frame);
  }
}

std::optional<KeptFrame> ScriptedClient::take(std::uint64_t id) {
  const auto found = std::find_if(frames_.begin(), frames_.end(), [id](const KeptFrame& frame) {
    return frame.request_id == id && frame.type != wire::MessageType::kInlineData;
  });
  if (found == frames_.end()) return std::nullopt;
  KeptFrame frame = std::move(*found);
  frames_.erase(found);
  return frame;
}

std::optional<KeptFrame> ScriptedClient::wait_for(std::uint64_t id) {
  const MonotonicTime until = clock_.now() + kPatience;
  for (;;) {
    keep_arrived();
    if (auto frame = take(id)) return frame;
    if (is_closed_ || clock_.now() >= until) return std::nullopt;
    static_cast<void>(channel_->flush());
    static_cast<void>(connector_->wait(*channel_, until));
  }
}

void ScriptedClient::listen_for(Nanoseconds time) {
  const MonotonicTime until = clock_.now() + time;
  while (!is_closed_ && clock_.now() < until) {
    keep_arrived();
    static_cast<void>(channel_->flush());
    if (!is_closed_) static_cast<void>(connector_->wait(*channel_, until));
  }
  keep_arrived();
}

bool ScriptedClient::is_closed() {
  listen_for(kPatience);
  return is_closed_;
}

wire::HelloReply ScriptedClient::hello(bool wants_mapping) {
  wire::Hello hello;
  hello.pid = process_.value();
  hello.wants_mapping = wants_mapping;
  hello.client_name = "scripted";
  const bool is_local = channel_->is_local();
  return this->hello(hello, is_local ? host_.network().open_pidfd(process_) : -1);
}

wire::HelloReply ScriptedClient::hello(const wire::Hello& hello, int descriptor) {
  const std::uint64_t id = next_id_++;
  send_as(hello, id, std::span<const int>(&descriptor, descriptor >= 0 ? 1 : 0));
  if (descriptor >= 0) host_.network().close_descriptor(process_, descriptor);
  wire::HelloReply answer = reply<wire::HelloReply>(id);
  // The notices of slabs follow it.
  listen_for(Milliseconds(1));
  return answer;
}

wire::JoinReply ScriptedClient::join(const wire::HelloReply& session) {
  return ask<wire::JoinReply>(wire::Join{.session = session.session, .secret = session.secret});
}

wire::NamespaceOpenReply ScriptedClient::open(std::string_view fingerprint) {
  wire::NamespaceOpen request;
  request.context.remaining_ms = 1'000;
  request.fingerprint = fingerprint;
  auto opened = ask<wire::NamespaceOpenReply>(request);
  EXPECT_EQ(opened.context.status, BlockStatus::kOk) << opened.message;
  context_ = {
      .name_space = opened.digest, .epoch = opened.epoch, .trace_id = 0, .remaining_ms = 1'000};
  return opened;
}

std::vector<std::span<std::byte>> ScriptedClient::payload(std::span<const wire::WireExtent> extents,
                                                          std::uint32_t length) const {
  std::vector<std::span<std::byte>> pieces;
  std::size_t skip = kHeaderBytes.value();
  std::size_t rest = length;
  for (const wire::WireExtent& extent : extents) {
    const std::size_t bytes = std::min<std::size_t>(extent.bytes - skip, rest);
    pieces.push_back(slabs_.at(extent.slab).subspan(extent.offset + skip, bytes));
    rest -= bytes;
    skip = 0;
  }
  EXPECT_EQ(rest, 0U);
  return pieces;
}

}  // namespace cairn::server
