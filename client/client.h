// The Cairn client SDK: start here. A Client is a session with the daemon on this host; its
// blocking calls may be made from any thread (one at a time inside), and make_queue() gives the
// asynchronous face. No exception leaves it, no thread is started unless copy_threads asks for it,
// and a handle that is used in a forked child answers kInvalid.
//
//   auto client = cairn::client::Client::connect({.server = "unix:/run/cairn/cairnd.sock"});
//   auto ns = (*client)->open_namespace(R"({"model":"m","dtype":"bf16"})");
//   (*client)->put({.name_space = *ns, .digests = keys, .sources = blocks, .results = results});
//
// A daemon that restarts is reconnected to silently; what was in flight ends as kPeerLost or
// kTimeout, and views that are held stay right.
#pragma once

#include "base/clock.h"
#include "base/random.h"
#include "base/result.h"
#include "client/queue.h"
#include "client/types.h"

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace cairn::transport {
class Connector;
class ProcessWatch;
}  // namespace cairn::transport

namespace cairn::client {

// How a slab's descriptor becomes memory. The real one maps it shared, read and write, kept out of
// forked children; simulated worlds hand out their own memory.
class SlabMapper {
 public:
  SlabMapper() = default;
  SlabMapper(const SlabMapper&) = delete;
  SlabMapper& operator=(const SlabMapper&) = delete;
  virtual ~SlabMapper() = default;
  // Takes ownership of `fd` whatever happens. Errors: kIo, kNoSpace.
  virtual Result<std::span<std::byte>> map(int fd, ByteCount bytes) noexcept = 0;
  virtual void unmap(std::span<std::byte> bytes) noexcept = 0;
  // Advice: `bytes` of a mapping are about to be used for the first time.
  virtual void populate(std::span<std::byte> /*bytes*/) noexcept {}
};

// What the SDK needs of the world; the defaults are the machine's own.
struct Environment {
  const Clock* clock = nullptr;
  Random* random = nullptr;
  transport::Connector* connector = nullptr;
  SlabMapper* mapper = nullptr;
  transport::ProcessWatch* process = nullptr;  // the own one's descriptor, and closing what came
};

struct PurgeAnswer {
  BlockStatus status = BlockStatus::kTimeout;
  std::uint64_t epoch = 0;
  bool is_complete = false;
};
struct ListAnswer {
  BlockStatus status = BlockStatus::kTimeout;
  std::vector<BlockDigest> digests;
  std::uint64_t next_cursor = 0;
};
struct JsonAnswer {
  BlockStatus status = BlockStatus::kTimeout;
  std::string json;
};
struct ServerInfo {
  std::uint64_t session = 0;
  std::uint64_t boot_counter = 0;
  std::uint64_t boot_incarnation = 0;
  ByteCount pool_bytes;
  bool is_mapped = false;
  std::uint64_t reconnects = 0;
};

class Client {
 public:
  // Errors: kInvalid (an option, the address), kPeerGone, kTimeout, kPermission, kVersion, kIo.
  // `message`, if given, receives the daemon's own words when it refuses.
  static Result<std::unique_ptr<Client>> connect(const ClientOptions& options,
                                                 std::string* message = nullptr);
  static Result<std::unique_ptr<Client>> connect(const ClientOptions& options,
                                                 const Environment& environment,
                                                 std::string* message = nullptr);
  ~Client();
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  // `fingerprint`: a JSON object of everything that must match for bytes to be usable (integers and
  // strings). Errors: kInvalid (not such an object; `message` says why), kTimeout, kPeerGone,
  // kPermission, kNoSpace (namespace table full), kBusy (the daemon cannot store it now; `message`
  // says why).
  Result<Namespace> open_namespace(std::string_view fingerprint, std::string* message = nullptr);
  PurgeAnswer purge(const Namespace& name_space);

  // Blocking face: results are written when the call returns, by its deadline. The Error is for
  // misuse alone (see Queue::submit); everything else is a status per key.
  Result<LookupAnswer> lookup(const LookupRequest& request);
  Status get(const GetRequest& request);
  Status get_views(const GetViewsRequest& request);
  // The branch for the next put of the same request.
  Result<std::optional<BlockDigest>> put(const PutRequest& request);
  Result<std::optional<BlockDigest>> reserve(const ReserveRequest& request);
  Status commit(const CommitRequest& request);
  Status remove(const KeysRequest& request);
  Status prefetch(const KeysRequest& request);
  Status retain(const KeysRequest& request, Milliseconds duration);
  void release(std::span<const BlockView> views);
  void abort(std::span<const BlockReservation> reservations);

  ListAnswer list(const Namespace& name_space, std::uint64_t cursor, std::uint32_t limit);
  JsonAnswer stat(const Namespace& name_space, const BlockDigest& digest);
  JsonAnswer usage(const Namespace& name_space);
  JsonAnswer stats();
  // Round trip of an empty request. Errors: kTimeout, kPeerGone.
  Result<Nanoseconds> ping();

  // Another socket of the same session. Errors: kPeerGone, kTimeout, kIo, kInvalid (forked child).
  Result<std::unique_ptr<Queue>> make_queue();
  ServerInfo server_info() const;

 private:
  class Impl;
  explicit Client(std::unique_ptr<Impl> impl) noexcept;
  std::unique_ptr<Impl> impl_;
};

}  // namespace cairn::client
