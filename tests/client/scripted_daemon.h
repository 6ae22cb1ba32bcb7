// A daemon of a few hundred lines that keeps blocks in plain memory and does exactly what a test
// tells it to: be silent, lie, forget, restart.
#pragma once

#include "client/client.h"
#include "tests/support/manual_clock.h"
#include "tests/support/sim_network.h"
#include "transport/channel.h"
#include "transport/wire/messages.h"

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <vector>

namespace cairn::client {

// The slabs of every daemon of a test by the subject of their descriptor: what a mapping finds.
// They stay when a daemon goes.
class SimSlabs final : public SlabMapper {
 public:
  SimSlabs(testing::SimNetwork& network, testing::SimProcessId client)
      : network_(network),
        client_(client) {}
  std::span<std::byte> make(std::uint64_t subject, std::size_t bytes);
  Result<std::span<std::byte>> map(int fd, ByteCount bytes) noexcept override;
  void unmap(std::span<std::byte> bytes) noexcept override;

  int mapped = 0;  // now
  bool refuses = false;

 private:
  testing::SimNetwork& network_;
  testing::SimProcessId client_;
  std::map<std::uint64_t, std::vector<std::byte>> slabs_;
};

struct DaemonFrame {
  std::vector<wire::WireExtent> extents;
  std::uint32_t length = 0;
  std::vector<std::uint32_t> checksums;
  std::vector<std::byte> attributes;
};

class ScriptedDaemon {
 public:
  static constexpr std::size_t kSlabBytes = std::size_t{48} << 20U;

  ScriptedDaemon(testing::SimNetwork& network, SimSlabs& slabs, std::uint64_t boot);
  ~ScriptedDaemon();
  ScriptedDaemon(const ScriptedDaemon&) = delete;
  ScriptedDaemon& operator=(const ScriptedDaemon&) = delete;
  void turn();
  // Its sockets break; what it had lent stays as memory.
  void kill();
  void break_sockets();

  struct Socket {
    std::unique_ptr<transport::Channel> channel;
    std::uint64_t session = 0;
    std::deque<std::vector<std::byte>> backlog;  // frames that the channel had no room for
    std::map<std::uint64_t, wire::PutInline> puts;
    std::map<std::uint64_t, std::vector<std::vector<std::byte>>> bodies;
  };
  // Called before a frame is answered; true: it is dealt with.
  std::function<bool(Socket&, const wire::FrameView&)> intercept;
  // Called with a reply before it is sent.
  std::function<void(wire::GetReply&)> change_get;
  std::function<void(wire::ReserveReply&)> change_reserve;
  std::function<void(wire::CommitReply&)> change_commit;
  bool is_silent = false;  // reads nothing
  bool allows_mapping = true;
  bool refuses_hello = false;
  bool forgets_sessions = false;      // joins and resumes are refused
  bool has_second_slab = false;       // announced with later hellos, the same memory
  std::uint32_t fragment_chunks = 0;  // extents of so many chunks each; 0: one extent
  wire::Limits limits;

  template <typename Message>
  void reply(Socket& socket, const Message& message, std::uint64_t id) {
    wire::encode(message, id, writer_);
    send(socket);
  }
  void statuses(Socket& socket, wire::MessageType type, std::uint64_t id, std::size_t keys);
  bool has(const BlockDigest& digest) const { return blocks_.contains(digest); }
  void forget(const BlockDigest& digest) { blocks_.erase(digest); }
  DaemonFrame& block(const BlockDigest& digest) { return blocks_.at(digest); }
  std::byte& byte_of(const BlockDigest& digest, std::uint64_t offset);
  std::size_t lent_count() const { return lent_.size(); }
  bool is_lent(std::uint64_t lend) const { return lent_.contains(lend); }
  std::vector<std::unique_ptr<Socket>>& sockets() { return sockets_; }
  int count(wire::MessageType type) const;

  // What came, newest last.
  std::vector<wire::Hello> hellos;
  std::vector<wire::Join> joins;
  std::vector<wire::Resume> resumes;
  std::vector<wire::Bind> binds;
  std::vector<wire::Lookup> lookups;
  std::vector<wire::Get> gets;
  std::vector<wire::Reserve> reserves;
  std::vector<wire::Commit> commits;
  std::vector<wire::ReleaseEntry> releases;
  std::vector<std::uint64_t> aborts;
  std::vector<wire::Cancel> cancels;
  std::vector<BlockDigest> removed;
  std::vector<wire::MessageType> order;
  std::vector<BlockDigest> published;  // in the order of their commits

 private:
  struct Lent {
    DaemonFrame frame;
    BlockDigest digest;
    bool is_reserved = false;
    std::uint64_t session = 0;
  };

  // What lies in writer_, now or when there is room.
  void send(Socket& socket);
  static void send_backlog(Socket& socket);
  void answer(Socket& socket, const wire::FrameView& frame);
  void answer_session(Socket& socket, const wire::FrameView& frame);
  void answer_keys(Socket& socket, const wire::FrameView& frame);
  void hello(Socket& socket, const wire::FrameView& frame);
  void announce(Socket& socket, std::uint32_t slab);
  void resume(Socket& socket, const wire::FrameView& frame);
  void get(Socket& socket, const wire::FrameView& frame);
  void get_inline(Socket& socket, std::uint64_t id, const wire::Get& request);
  void reserve(Socket& socket, const wire::FrameView& frame);
  void commit(Socket& socket, const wire::FrameView& frame);
  void put_inline(Socket& socket, const wire::FrameView& frame);
  void take_data(Socket& socket, const wire::FrameView& frame);
  wire::ReserveReply reserve_keys(Socket& socket,
                                  const wire::Placement& placement,
                                  const std::vector<BlockDigest>& digests,
                                  const std::vector<std::uint32_t>& lengths);
  BlockStatus commit_one(const wire::Commit& request, const wire::CommitEntry& entry);
  DaemonFrame allocate(std::uint32_t length);
  std::vector<std::byte> payload(const DaemonFrame& frame) const;
  void fill(const DaemonFrame& frame, std::span<const std::byte> bytes);
  template <typename Message>
  Message decoded(const wire::FrameView& frame);

  testing::SimNetwork& network_;
  testing::SimProcessId process_;
  std::uint64_t boot_;
  std::unique_ptr<transport::Listener> unix_;
  std::unique_ptr<transport::Listener> tcp_;
  std::vector<std::unique_ptr<Socket>> sockets_;
  wire::FrameWriter writer_;
  std::span<std::byte> slab_;
  std::size_t used_ = 0;
  std::uint64_t next_session_;
  std::uint64_t next_lend_;
  std::map<BlockDigest, DaemonFrame> blocks_;
  std::map<std::uint64_t, Lent> lent_;
};

}  // namespace cairn::client
