#include "client/client.h"

#include "client/client_impl.h"
#include "client/queue_impl.h"

#include <chrono>
#include <utility>

namespace cairn::client {
namespace {

// Turns of a queue that is getting its session, between two looks at the clock.
constexpr Milliseconds kSettleStep(10);

ErrorCode code_of(BlockStatus status) {
  switch (status) {
    case BlockStatus::kTimeout:
      return ErrorCode::kTimeout;
    case BlockStatus::kForbidden:
      return ErrorCode::kPermission;
    case BlockStatus::kQuota:
      return ErrorCode::kNoSpace;
    case BlockStatus::kBusy:
      return ErrorCode::kBusy;
    case BlockStatus::kInvalid:
    case BlockStatus::kTooLarge:
      return ErrorCode::kInvalid;
    default:
      return ErrorCode::kPeerGone;
  }
}

void say(std::string* message, std::string text) {
  if (message != nullptr) *message = std::move(text);
}

}  // namespace

// ---- inside ----

Client::Impl::~Impl() {
  if (!session->is_child()) return;
  // The gate may be held by a thread that is not here, and the session's memory is the parent's:
  // the queue closes its descriptors and leaves the rest.
  core.reset();
}

void Client::Impl::give_back(const GivenBack& back) {
  if (session->give_back(back.lend) == LendEnd::kRemote) session->defer(back);
}

void Client::Impl::send_returns() {
  const Turn turn(gate, Deadline(core->now()));
  if (turn.is_in()) core->send_returns();
}

Completion Client::Impl::wait_for(Ticket ticket) {
  Completion result;
  bool is_returned = false;
  while (!is_returned) {
    core->wait(core->next_due().value_or(core->now() + kSettleStep));
    Completion completion;
    while (core->poll(std::span(&completion, 1)) > 0) {
      if (completion.ticket != ticket) continue;
      if (completion.is_done) result = completion;
      is_returned = completion.is_returned;
    }
  }
  return result;
}

Status Client::Impl::settle(QueueCore& queue, Deadline deadline) {
  Connection& connection = queue.connection();
  while (!connection.is_ready()) {
    static_cast<void>(queue.poll({}));
    if (connection.is_ready()) break;
    if (connection.last_error()) return *connection.last_error();
    const MonotonicTime now = queue.now();
    if (deadline.has_passed(now)) return Error{ErrorCode::kTimeout, 0, "hello"};
    queue.wait(std::min(deadline.at(), now + kSettleStep));
  }
  return {};
}

// ---- making ----

Client::Client(std::unique_ptr<Impl> impl) noexcept
    : impl_(std::move(impl)) {}
Client::~Client() = default;

Result<std::unique_ptr<Client>> Client::connect(const ClientOptions& options,
                                                std::string* message) {
  return connect(options, Environment{}, message);
}

Result<std::unique_ptr<Client>> Client::connect(const ClientOptions& options,
                                                const Environment& environment,
                                                std::string* message) {
  if (const auto wrong = options.validate()) {
    say(message, *wrong);
    return Error{ErrorCode::kInvalid, 0, *wrong};
  }
  auto impl = std::make_unique<Impl>(std::make_shared<Session>(options, environment));
  if (!impl->session->has_copy_threads()) return Error{ErrorCode::kIo, 0, "copy_threads"};
  const Deadline deadline =
      Deadline::after(impl->session->world().clock(), options.connect_timeout);
  const Status settled = Impl::settle(*impl->core, deadline);
  if (!settled) {
    say(message, impl->core->connection().refusal());
    return settled.error();
  }
  return std::unique_ptr<Client>(new Client(std::move(impl)));
}

Result<std::unique_ptr<Queue>> Client::make_queue() {
  if (impl_->core->is_child()) return Error{ErrorCode::kInvalid, 0, "a handle of the parent"};
  const Deadline deadline =
      Deadline::after(impl_->session->world().clock(), impl_->session->options().connect_timeout);
  auto queue = std::make_unique<Queue::Impl>(impl_->session);
  CAIRN_TRY_STATUS(Impl::settle(queue->core, deadline));
  return std::unique_ptr<Queue>(new Queue(std::move(queue)));
}

ServerInfo Client::server_info() const {
  return impl_->session->info();
}

// ---- namespaces and questions ----

Result<Namespace> Client::open_namespace(std::string_view fingerprint, std::string* message) {
  if (fingerprint.size() > wire::kFingerprintBytesMax) {
    say(message, "the fingerprint is longer than 64 KiB");
    return Error{ErrorCode::kInvalid, 0, "fingerprint"};
  }
  wire::NamespaceOpenReply reply;
  const BlockStatus status = impl_->ask(
      {}, wire::NamespaceOpen{.context = {}, .fingerprint = std::string(fingerprint)}, reply);
  say(message, std::move(reply.message));
  if (status != BlockStatus::kOk) return Error{code_of(status), 0, "namespace open"};
  const Namespace opened{.digest = reply.digest, .epoch = reply.epoch};
  impl_->session->remember(opened);
  return opened;
}

PurgeAnswer Client::purge(const Namespace& name_space) {
  wire::PurgeReply reply;
  const BlockStatus status = impl_->ask(name_space, wire::Purge{}, reply);
  return {.status = status, .epoch = reply.epoch, .is_complete = reply.is_complete};
}

ListAnswer Client::list(const Namespace& name_space, std::uint64_t cursor, std::uint32_t limit) {
  wire::ListReply reply;
  const BlockStatus status =
      impl_->ask(name_space, wire::List{.context = {}, .cursor = cursor, .limit = limit}, reply);
  return {.status = status, .digests = std::move(reply.digests), .next_cursor = reply.next_cursor};
}

JsonAnswer Client::stat(const Namespace& name_space, const BlockDigest& digest) {
  if (digest.size() == 0) return {.status = BlockStatus::kInvalid, .json = {}};
  wire::JsonReply reply;
  const BlockStatus status =
      impl_->ask(name_space, wire::Stat{.context = {}, .digest = digest}, reply);
  return {.status = status, .json = std::move(reply.json)};
}

JsonAnswer Client::usage(const Namespace& name_space) {
  wire::JsonReply reply;
  const BlockStatus status = impl_->ask(name_space, wire::Usage{}, reply);
  return {.status = status, .json = std::move(reply.json)};
}

JsonAnswer Client::stats() {
  wire::JsonReply reply;
  const BlockStatus status = impl_->ask({}, wire::Stats{}, reply);
  return {.status = status, .json = std::move(reply.json)};
}

Result<Nanoseconds> Client::ping() {
  const MonotonicTime begin = impl_->core->now();
  wire::Pong pong;
  const BlockStatus status = impl_->ask({}, wire::Ping{}, pong);
  if (status != BlockStatus::kOk) return Error{code_of(status), 0, "ping"};
  return impl_->core->now() - begin;
}

// ---- blocks ----

Result<LookupAnswer> Client::lookup(const LookupRequest& request) {
  auto done = impl_->call(request.call, request);
  if (!done && done.error().code == ErrorCode::kTimeout) return LookupAnswer{};
  if (!done) return done.error();
  return done->lookup;
}

Status Client::get(const GetRequest& request) {
  CAIRN_TRY(const Completion done, impl_->call_keys(request.call, request, request.results));
  static_cast<void>(done);
  return {};
}

Status Client::get_views(const GetViewsRequest& request) {
  CAIRN_TRY(const Completion done, impl_->call_keys(request.call, request, request.results));
  static_cast<void>(done);
  return {};
}

Result<std::optional<BlockDigest>> Client::put(const PutRequest& request) {
  CAIRN_TRY(const Completion done, impl_->call_keys(request.call, request, request.results));
  return done.branch;
}

Result<std::optional<BlockDigest>> Client::reserve(const ReserveRequest& request) {
  CAIRN_TRY(const Completion done, impl_->call_keys(request.call, request, request.results));
  return done.branch;
}

Status Client::commit(const CommitRequest& request) {
  CAIRN_TRY(const Completion done, impl_->call_keys(request.call, request, request.results));
  static_cast<void>(done);
  return {};
}

Status Client::remove(const KeysRequest& request) {
  CAIRN_TRY(const Completion done,
            impl_->call_keys(request.call,
                             KeysCall{.request = request, .type = wire::MessageType::kRemove},
                             request.results));
  static_cast<void>(done);
  return {};
}

Status Client::prefetch(const KeysRequest& request) {
  CAIRN_TRY(const Completion done,
            impl_->call_keys(request.call,
                             KeysCall{.request = request, .type = wire::MessageType::kPrefetch},
                             request.results));
  static_cast<void>(done);
  return {};
}

Status Client::retain(const KeysRequest& request, Milliseconds duration) {
  const KeysCall call{.request = request, .type = wire::MessageType::kRetain, .duration = duration};
  CAIRN_TRY(const Completion done, impl_->call_keys(request.call, call, request.results));
  static_cast<void>(done);
  return {};
}

// Neither waits for a call that another thread makes: whoever sends next tells the daemon.
void Client::release(std::span<const BlockView> views) {
  if (impl_->core->is_child()) return;
  for (const BlockView& view : views)
    impl_->give_back({.lend = view.lend, .is_reserved = false});
  impl_->send_returns();
}

void Client::abort(std::span<const BlockReservation> reservations) {
  if (impl_->core->is_child()) return;
  for (const BlockReservation& reservation : reservations) {
    impl_->give_back({.lend = reservation.lend, .is_reserved = true});
  }
  impl_->send_returns();
}

}  // namespace cairn::client
