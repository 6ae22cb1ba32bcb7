#include "tests/client/scripted_daemon.h"

#include "base/check.h"
#include "base/checksum.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <utility>

namespace cairn::client {

using wire::MessageType;

std::span<std::byte> SimSlabs::make(std::uint64_t subject, std::size_t bytes) {
  return slabs_.try_emplace(subject, bytes).first->second;
}

Result<std::span<std::byte>> SimSlabs::map(int fd, ByteCount bytes) noexcept {
  const auto what = network_.descriptor(fd);
  network_.close_descriptor(client_, fd);
  if (refuses || !what) return Error{ErrorCode::kIo, 0, "sim: map"};
  ++mapped;
  return std::span(slabs_.at(what->subject)).first(bytes.value());
}

void SimSlabs::unmap(std::span<std::byte> /*bytes*/) noexcept {
  --mapped;
}

ScriptedDaemon::ScriptedDaemon(testing::SimNetwork& network, SimSlabs& slabs, std::uint64_t boot)
    : network_(network),
      process_(network.spawn()),
      boot_(boot),
      slab_(slabs.make(boot, kSlabBytes)),
      next_session_(boot * 100 + 1),
      next_lend_(boot * 1'000'000 + 1) {
  unix_ = std::move(*network.listen(process_, *transport::Address::parse("unix:/sim/d.sock")));
  tcp_ = std::move(*network.listen(process_, *transport::Address::parse("127.0.0.1:7000")));
}

ScriptedDaemon::~ScriptedDaemon() = default;

void ScriptedDaemon::kill() {
  sockets_.clear();
  unix_.reset();
  tcp_.reset();
}

void ScriptedDaemon::break_sockets() {
  sockets_.clear();
}

int ScriptedDaemon::count(MessageType type) const {
  return static_cast<int>(std::ranges::count(order, type));
}

void ScriptedDaemon::turn() {
  for (auto* const listener : {&unix_, &tcp_}) {
    if (!*listener) continue;
    auto accepted = (*listener)->accept();
    if (accepted && *accepted) {
      sockets_.push_back(std::make_unique<Socket>());
      sockets_.back()->channel = std::move(*accepted);
    }
  }
  if (is_silent) return;
  for (std::size_t i = 0; i < sockets_.size(); ++i) {
    Socket& socket = *sockets_[i];
    static_cast<void>(socket.channel->flush());
    send_backlog(socket);
    for (;;) {
      auto received = socket.channel->receive();
      if (!received || !received->has_value()) break;
      order.push_back((*received)->frame.type);
      if (intercept && intercept(socket, (*received)->frame)) continue;
      answer(socket, (*received)->frame);
      if (i >= sockets_.size()) return;  // the test broke them
    }
  }
}

void ScriptedDaemon::send(Socket& socket) {
  const auto frame = writer_.finish();
  socket.backlog.emplace_back(frame.begin(), frame.end());
  send_backlog(socket);
}

void ScriptedDaemon::send_backlog(Socket& socket) {
  while (!socket.backlog.empty()) {
    const Status sent = socket.channel->send(socket.backlog.front());
    if (!sent && sent.error().code == ErrorCode::kBusy) return;
    socket.backlog.pop_front();
  }
}

template <typename Message>
Message ScriptedDaemon::decoded(const wire::FrameView& frame) {
  Message message;
  EXPECT_TRUE(wire::decode(frame, message).has_value());
  return message;
}

void ScriptedDaemon::statuses(Socket& socket,
                              MessageType type,
                              std::uint64_t id,
                              std::size_t keys) {
  wire::StatusesReply out;
  out.statuses.assign(keys, BlockStatus::kOk);
  wire::encode(out, type, id, writer_);
  send(socket);
}

void ScriptedDaemon::answer(Socket& socket, const wire::FrameView& frame) {
  switch (frame.type) {
    case MessageType::kGet:
      return get(socket, frame);
    case MessageType::kReserve:
      return reserve(socket, frame);
    case MessageType::kCommit:
      return commit(socket, frame);
    case MessageType::kPutInline:
      return put_inline(socket, frame);
    case MessageType::kInlineData:
      return take_data(socket, frame);
    case MessageType::kRelease:
      for (const auto& entry : decoded<wire::Release>(frame).entries) {
        releases.push_back(entry);
        lent_.erase(entry.lend);
      }
      return;
    case MessageType::kAbort:
      for (const std::uint64_t lend : decoded<wire::Abort>(frame).lends) {
        aborts.push_back(lend);
        lent_.erase(lend);
      }
      return;
    case MessageType::kCancel:
      cancels.push_back(decoded<wire::Cancel>(frame));
      return;
    case MessageType::kRemove:
    case MessageType::kPrefetch:
    case MessageType::kRetain:
    case MessageType::kLookup:
      return answer_keys(socket, frame);
    default:
      return answer_session(socket, frame);
  }
}

void ScriptedDaemon::answer_keys(Socket& socket, const wire::FrameView& frame) {
  const std::uint64_t id = frame.request_id;
  if (frame.type == MessageType::kLookup) {
    lookups.push_back(decoded<wire::Lookup>(frame));
    wire::LookupReply out;
    for (const BlockDigest& digest : lookups.back().digests) {
      const bool is_there = blocks_.contains(digest);
      if (lookups.back().kind == wire::LookupKind::kSet) out.tiers.push_back(is_there ? 2 : 0);
      if (lookups.back().kind == wire::LookupKind::kRun && !is_there) break;
      if (lookups.back().kind == wire::LookupKind::kRun) out.tiers.push_back(2);
      out.run += is_there ? 1 : 0;
    }
    return reply(socket, out, id);
  }
  if (frame.type == MessageType::kRemove) {
    const auto request = decoded<wire::Remove>(frame);
    for (const BlockDigest& digest : request.digests) {
      removed.push_back(digest);
      blocks_.erase(digest);
    }
    return statuses(socket, MessageType::kRemoveReply, id, request.digests.size());
  }
  if (frame.type == MessageType::kPrefetch) {
    const auto request = decoded<wire::Prefetch>(frame);
    return statuses(socket, MessageType::kPrefetchReply, id, request.digests.size());
  }
  const auto request = decoded<wire::Retain>(frame);
  statuses(socket, MessageType::kRetainReply, id, request.digests.size());
}

// ---- sessions ----

void ScriptedDaemon::answer_session(Socket& socket, const wire::FrameView& frame) {
  const std::uint64_t id = frame.request_id;
  switch (frame.type) {
    case MessageType::kHello:
      return hello(socket, frame);
    case MessageType::kResume:
      return resume(socket, frame);
    case MessageType::kJoin: {
      joins.push_back(decoded<wire::Join>(frame));
      socket.session = joins.back().session;
      wire::JoinReply out;
      if (forgets_sessions) out.context.status = BlockStatus::kForbidden;
      return reply(socket, out, id);
    }
    case MessageType::kPing:
      return reply(socket, wire::Pong{}, id);
    case MessageType::kNamespaceOpen: {
      wire::NamespaceOpenReply out;
      const auto request = decoded<wire::NamespaceOpen>(frame);
      if (request.fingerprint.empty()) {
        out.context.status = BlockStatus::kInvalid;
        out.message = "not a JSON object";
      }
      out.digest.bytes[0] = std::byte{7};
      out.epoch = 5;
      return reply(socket, out, id);
    }
    case MessageType::kBind:
      binds.push_back(decoded<wire::Bind>(frame));
      return reply(socket, wire::BindReply{}, id);
    case MessageType::kPurge:
      return reply(socket, wire::PurgeReply{.context = {}, .epoch = 6, .is_complete = true}, id);
    case MessageType::kStats:
      wire::encode(
          wire::JsonReply{.context = {}, .json = "{}"}, MessageType::kStatsReply, id, writer_);
      send(socket);
      return;
    default:
      return;
  }
}

void ScriptedDaemon::hello(Socket& socket, const wire::FrameView& frame) {
  hellos.push_back(decoded<wire::Hello>(frame));
  const std::uint64_t id = frame.request_id;
  wire::HelloReply out;
  if (refuses_hello) {
    out.context.status = BlockStatus::kForbidden;
    out.message = "not today";
    return reply(socket, out, id);
  }
  const bool is_mapped =
      allows_mapping && hellos.back().wants_mapping && socket.channel->is_local();
  socket.session = next_session_++;
  out.version = wire::kProtocolVersion;
  out.session = socket.session;
  out.secret.bytes[0] = static_cast<std::byte>(socket.session);
  out.boot = {.counter = boot_, .incarnation = boot_ * 3};
  out.limits = limits;
  out.pool_bytes = kSlabBytes;
  out.is_mapping_allowed = is_mapped;
  wire::encode(out, id, writer_);
  if (!is_mapped) {
    send(socket);
    return;
  }
  const int lock = network_.open_descriptor(
      process_, {.kind = testing::SimDescriptorKind::kSessionLock, .subject = socket.session});
  static_cast<void>(socket.channel->send(writer_.finish(), std::span(&lock, 1)));
  network_.close_descriptor(process_, lock);
  announce(socket, 0);
  if (has_second_slab) announce(socket, 1);
}

void ScriptedDaemon::announce(Socket& socket, std::uint32_t slab) {
  const int file = network_.open_descriptor(
      process_, {.kind = testing::SimDescriptorKind::kSlab, .subject = boot_});
  wire::encode(wire::SlabNotice{.slab = slab, .generation = 1, .bytes = kSlabBytes}, 0, writer_);
  static_cast<void>(socket.channel->send(writer_.finish(), std::span(&file, 1)));
  network_.close_descriptor(process_, file);
}

void ScriptedDaemon::resume(Socket& socket, const wire::FrameView& frame) {
  resumes.push_back(decoded<wire::Resume>(frame));
  const wire::Resume& request = resumes.back();
  wire::ResumeReply out;
  std::map<std::uint64_t, Lent> kept;
  for (const wire::HeldLend& held : request.held) {
    const auto lent = lent_.find(held.lend);
    out.kept.push_back(lent != lent_.end() && !forgets_sessions ? 1 : 0);
    if (out.kept.back() != 0) kept.insert(*lent);
  }
  std::erase_if(lent_, [&](const auto& entry) { return entry.second.session == request.session; });
  for (auto& [lend, lent] : kept) {
    lent.session = socket.session;
    lent_.insert_or_assign(lend, lent);
  }
  reply(socket, out, frame.request_id);
}

// ---- blocks ----

DaemonFrame ScriptedDaemon::allocate(std::uint32_t length) {
  DaemonFrame frame{.extents = {}, .length = length, .checksums = {}, .attributes = {}};
  std::uint64_t left = length;
  const std::uint64_t piece_max =
      fragment_chunks > 0 ? fragment_chunks * kChunkBytes.value() : left;
  while (left > 0) {
    const bool is_last = frame.extents.size() + 1 == kExtentsMax;
    const std::uint64_t piece = is_last ? left : std::min(left, piece_max);
    const std::uint64_t header = frame.extents.empty() ? kHeaderBytes.value() : 0;
    const std::uint64_t bytes = round_up(piece + header, kHeaderBytes.value());
    if (used_ + bytes > slab_.size()) used_ = 0;  // tests keep less than a slab at a time
    frame.extents.push_back({.slab = 0, .generation = 1, .offset = used_, .bytes = bytes});
    used_ += bytes;
    left -= piece;
  }
  return frame;
}

std::byte& ScriptedDaemon::byte_of(const BlockDigest& digest, std::uint64_t offset) {
  const DaemonFrame& frame = blocks_.at(digest);
  std::uint64_t skip = kHeaderBytes.value();
  for (const wire::WireExtent& extent : frame.extents) {
    const std::uint64_t bytes = extent.bytes - skip;
    if (offset < bytes) return slab_[extent.offset + skip + offset];
    offset -= bytes;
    skip = 0;
  }
  CAIRN_CHECK(false);
  return slab_[0];
}

std::vector<std::byte> ScriptedDaemon::payload(const DaemonFrame& frame) const {
  std::vector<std::byte> bytes;
  std::uint64_t skip = kHeaderBytes.value();
  for (const wire::WireExtent& extent : frame.extents) {
    const auto piece = slab_.subspan(extent.offset + skip, extent.bytes - skip);
    bytes.insert(bytes.end(), piece.begin(), piece.end());
    skip = 0;
  }
  bytes.resize(frame.length);
  return bytes;
}

void ScriptedDaemon::fill(const DaemonFrame& frame, std::span<const std::byte> bytes) {
  std::uint64_t skip = kHeaderBytes.value();
  for (const wire::WireExtent& extent : frame.extents) {
    const auto piece = bytes.first(std::min<std::size_t>(bytes.size(), extent.bytes - skip));
    std::ranges::copy(piece, slab_.subspan(extent.offset + skip).begin());
    bytes = bytes.subspan(piece.size());
    skip = 0;
  }
}

void ScriptedDaemon::get(Socket& socket, const wire::FrameView& frame) {
  gets.push_back(decoded<wire::Get>(frame));
  const wire::Get request = gets.back();
  wire::GetReply out;
  bool is_cut = false;
  for (const BlockDigest& digest : request.digests) {
    wire::Grant grant;
    grant.status = is_cut ? BlockStatus::kCut : BlockStatus::kMiss;
    const auto found = blocks_.find(digest);
    if (!is_cut && found != blocks_.end()) {
      const DaemonFrame& block = found->second;
      grant.status = BlockStatus::kOk;
      grant.length = block.length;
      grant.checksum_first = static_cast<std::uint32_t>(out.checksums.size());
      grant.checksum_count = static_cast<std::uint8_t>(block.checksums.size());
      out.checksums.insert(out.checksums.end(), block.checksums.begin(), block.checksums.end());
      if (request.wants_attributes) {
        grant.attribute_first = static_cast<std::uint32_t>(out.attributes.size());
        grant.attribute_bytes = static_cast<std::uint32_t>(block.attributes.size());
        out.attributes.insert(
            out.attributes.end(), block.attributes.begin(), block.attributes.end());
      }
      if (request.mode == wire::GetMode::kLend) {
        grant.extent_first = static_cast<std::uint32_t>(out.extents.size());
        grant.extent_count = static_cast<std::uint8_t>(block.extents.size());
        out.extents.insert(out.extents.end(), block.extents.begin(), block.extents.end());
        grant.lend = next_lend_++;
        lent_[grant.lend] = {block, digest, false, socket.session};
      }
    }
    is_cut = is_cut || (request.is_chain && grant.status != BlockStatus::kOk);
    out.grants.push_back(grant);
  }
  if (change_get) change_get(out);
  reply(socket, out, frame.request_id);
  if (request.mode == wire::GetMode::kInline) get_inline(socket, frame.request_id, request);
}

void ScriptedDaemon::get_inline(Socket& socket, std::uint64_t id, const wire::Get& request) {
  for (std::uint32_t item = 0; item < request.digests.size(); ++item) {
    const auto found = blocks_.find(request.digests[item]);
    if (found == blocks_.end()) {
      if (request.is_chain) return;
      continue;
    }
    const auto bytes = payload(found->second);
    std::span<const std::byte> left(bytes);
    std::uint32_t offset = 0;
    while (!left.empty()) {
      const auto piece = left.first(std::min<std::size_t>(left.size(), 100'000));
      reply(socket, wire::InlineData{.item = item, .offset = offset, .bytes = piece}, id);
      offset += static_cast<std::uint32_t>(piece.size());
      left = left.subspan(piece.size());
    }
  }
}

wire::ReserveReply ScriptedDaemon::reserve_keys(Socket& socket,
                                                const wire::Placement& placement,
                                                const std::vector<BlockDigest>& digests,
                                                const std::vector<std::uint32_t>& lengths) {
  wire::ReserveReply out;
  out.branch = placement.branch;
  for (std::size_t i = 0; i < digests.size(); ++i) {
    wire::Grant grant;
    grant.status = BlockStatus::kExists;
    if (lengths[i] == 0) grant.status = BlockStatus::kInvalid;
    if (lengths[i] > 0 && !blocks_.contains(digests[i])) {
      if (!out.branch) out.branch = digests[i];
      const DaemonFrame frame = allocate(lengths[i]);
      grant.status = BlockStatus::kOk;
      grant.length = lengths[i];
      grant.lend = next_lend_++;
      grant.extent_first = static_cast<std::uint32_t>(out.extents.size());
      grant.extent_count = static_cast<std::uint8_t>(frame.extents.size());
      out.extents.insert(out.extents.end(), frame.extents.begin(), frame.extents.end());
      lent_[grant.lend] = {frame, digests[i], true, socket.session};
    }
    out.grants.push_back(grant);
  }
  if (change_reserve) change_reserve(out);
  return out;
}

void ScriptedDaemon::reserve(Socket& socket, const wire::FrameView& frame) {
  reserves.push_back(decoded<wire::Reserve>(frame));
  reply(socket,
        reserve_keys(
            socket, reserves.back().placement, reserves.back().digests, reserves.back().lengths),
        frame.request_id);
}

BlockStatus ScriptedDaemon::commit_one(const wire::Commit& request,
                                       const wire::CommitEntry& entry) {
  const auto lent = lent_.find(entry.lend);
  if (lent == lent_.end() || !lent->second.is_reserved) return BlockStatus::kCancelled;
  DaemonFrame frame = lent->second.frame;
  const BlockDigest digest = lent->second.digest;
  lent_.erase(lent);
  const auto checksums =
      std::span(request.checksums).subspan(entry.checksum_first, entry.checksum_count);
  const auto attributes =
      std::span(request.attributes).subspan(entry.attribute_first, entry.attribute_bytes);
  frame.checksums.assign(checksums.begin(), checksums.end());
  frame.attributes.assign(attributes.begin(), attributes.end());
  published.push_back(digest);
  return blocks_.emplace(digest, frame).second ? BlockStatus::kOk : BlockStatus::kExists;
}

void ScriptedDaemon::commit(Socket& socket, const wire::FrameView& frame) {
  commits.push_back(decoded<wire::Commit>(frame));
  const wire::Commit request = commits.back();
  wire::CommitReply out;
  for (const wire::CommitEntry& entry : request.entries) {
    out.statuses.push_back(commit_one(request, entry));
  }
  if (request.next_placement) {
    out.next =
        reserve_keys(socket, *request.next_placement, request.next_digests, request.next_lengths);
  }
  if (change_commit) change_commit(out);
  reply(socket, out, frame.request_id);
}

// ---- inline puts ----

void ScriptedDaemon::put_inline(Socket& socket, const wire::FrameView& frame) {
  const auto request = decoded<wire::PutInline>(frame);
  socket.puts[frame.request_id] = request;
  socket.bodies[frame.request_id].resize(request.digests.size());
}

void ScriptedDaemon::take_data(Socket& socket, const wire::FrameView& frame) {
  const auto data = decoded<wire::InlineData>(frame);
  const auto put = socket.puts.find(frame.request_id);
  if (put == socket.puts.end()) return;
  const wire::PutInline& request = put->second;
  auto& bodies = socket.bodies[frame.request_id];
  auto& body = bodies.at(data.item);
  EXPECT_EQ(data.offset, body.size());
  body.insert(body.end(), data.bytes.begin(), data.bytes.end());
  for (std::size_t i = 0; i < bodies.size(); ++i) {
    if (bodies[i].size() < request.lengths[i]) return;
  }
  std::size_t checksum = 0;
  std::size_t attribute = 0;
  for (std::size_t i = 0; i < bodies.size(); ++i) {
    DaemonFrame block = allocate(request.lengths[i]);
    for (std::uint32_t chunk = 0; chunk < chunk_count(request.lengths[i]); ++chunk) {
      block.checksums.push_back(request.checksums.at(checksum++));
    }
    if (!request.attribute_bytes.empty()) {
      const auto first = request.attributes.begin() + static_cast<std::ptrdiff_t>(attribute);
      block.attributes.assign(first, first + request.attribute_bytes[i]);
      attribute += request.attribute_bytes[i];
    }
    blocks_[request.digests[i]] = block;
    published.push_back(request.digests[i]);
    fill(block, bodies[i]);
  }
  statuses(socket, MessageType::kPutInlineReply, frame.request_id, bodies.size());
  socket.puts.erase(frame.request_id);
}

}  // namespace cairn::client
