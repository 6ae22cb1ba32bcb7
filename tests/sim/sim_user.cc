#include "tests/sim/sim_user.h"

#include "tests/sim/sim_operation.h"

#include <algorithm>
#include <array>
#include <utility>

namespace cairn::testing {
namespace {

constexpr std::uint32_t kNamespaces = 2;
constexpr std::size_t kViewsMax = 24;
constexpr std::size_t kReservationsMax = 8;
constexpr std::size_t kOperationsMax = 24;

}  // namespace

SimUser::SimUser(SimWorld& world, BlockModel& model, Traits traits, Report report)
    : world_(world),
      model_(model),
      traits_(std::move(traits)),
      report_(std::move(report)),
      process_(world.host(), world.clock(), world.random().next_u64()) {}

SimUser::~SimUser() {
  if (client_ != nullptr) traits_.tally->reconnects += client_->server_info().reconnects;
  if (process_.state() != SimProcessState::kDead) let_go();
  queues_.clear();
  client_.reset();
}

void SimUser::fail(const std::string& what) {
  report_(traits_.name + ": " + what);
}

bool SimUser::begin() {
  client::ClientOptions options;
  options.server = world_.address().to_string();
  options.name = traits_.name;
  options.deadline = Milliseconds(500);
  options.connect_timeout = Milliseconds(200);
  options.map_pool = traits_.maps_pool;
  auto client = client::Client::connect(options, process_.environment());
  if (!client) return false;
  std::vector<Name> names;
  for (std::uint32_t i = 0; i < kNamespaces; ++i) {
    const auto opened = (*client)->open_namespace(R"({"n":)" + std::to_string(i) + "}");
    if (!opened) return false;
    names.push_back({.handle = *opened});
  }
  std::vector<std::unique_ptr<client::Queue>> queues;
  for (std::uint32_t i = 0; i < traits_.queues; ++i) {
    auto queue = (*client)->make_queue();
    if (!queue) return false;
    queues.push_back(*std::move(queue));
  }
  client_ = *std::move(client);
  names_ = std::move(names);
  queues_ = std::move(queues);
  return true;
}

void SimUser::kill() {
  world_.network().kill(process_.id());
  // What it held is the daemon's again, and nobody looks at it any more.
  views_.clear();
  reservations_.clear();
  queues_.clear();
  client_.reset();
  operations_.clear();
}

void SimUser::turn() {
  if (!is_running() || !has_begun()) return;
  std::array<client::Completion, 16> completions;
  for (std::uint32_t queue = 0; queue < queues_.size(); ++queue) {
    std::size_t count = 0;
    do {
      count = queues_[queue]->poll(completions);
      for (std::size_t i = 0; i < count; ++i)
        completed(queue, completions[i]);
    } while (count == completions.size());
  }
}

std::optional<MonotonicTime> SimUser::next_due() {
  std::optional<MonotonicTime> next;
  if (!is_running()) return next;
  for (const auto& queue : queues_) {
    const auto due = queue->next_due();
    if (due && (!next || *due < *next)) next = due;
  }
  return next;
}

void SimUser::check() {
  for (const HeldView& held : views_) {
    const std::span pieces = std::span(held.view.pieces).first(held.view.piece_count);
    check_bytes(held.key, pieces);
    ++traits_.tally->views_checked;
  }
  if (!is_running() || !has_begun()) return;
  turn();
  const MonotonicTime now = world_.clock().now();
  for (const auto& operation : operations_) {
    if (operation->is_done || now < operation->deadline) continue;
    fail("a ticket of kind " + std::to_string(static_cast<int>(operation->kind)) +
         " is not done at its deadline");
  }
}

void SimUser::let_go() {
  if (!has_begun()) return;
  for (const HeldView& held : std::exchange(views_, {}))
    queues_.front()->release(std::span(&held.view, 1));
  for (const HeldReservation& held : std::exchange(reservations_, {})) {
    queues_.front()->abort(std::span(&held.reservation, 1));
    model_.put_ended(held.key, held.body, BlockStatus::kDeclined);
  }
}

void SimUser::check_bytes(const ModelKey& key, std::span<const std::span<const std::byte>> pieces) {
  const std::string wrong = model_.check(key, pieces);
  if (!wrong.empty()) fail(wrong);
}

void SimUser::act() {
  if (operations_.size() >= kOperationsMax) return release_view();
  struct Choice {
    std::uint32_t weight;
    void (SimUser::*act)();
  };
  static constexpr std::array kChoices = {Choice{30, &SimUser::put},
                                          Choice{25, &SimUser::get},
                                          Choice{12, &SimUser::get_views},
                                          Choice{8, &SimUser::reserve},
                                          Choice{10, &SimUser::go_on_with_reservation},
                                          Choice{15, &SimUser::release_view},
                                          Choice{6, &SimUser::look_up},
                                          Choice{4, &SimUser::touch_keys},
                                          Choice{5, &SimUser::cancel},
                                          Choice{1, &SimUser::purge},
                                          Choice{6, &SimUser::reopen}};
  std::uint32_t total = 0;
  for (const Choice& choice : kChoices)
    total += choice.weight;
  std::uint64_t drawn = world_.random().below(total);
  for (const Choice& choice : kChoices) {
    if (drawn < choice.weight) return (this->*choice.act)();
    drawn -= choice.weight;
  }
}

// ---- what it may do ----

void SimUser::put() {
  auto operation = new_operation(Kind::kPut, 1 + world_.random().below(4));
  operation->make_bodies(model_, [this](std::uint32_t number) { return draw_length(number); });
  client::PutRequest request;
  request.name_space = operation->name_space;
  request.digests = operation->digests;
  request.sources = operation->sources;
  request.placement.is_chain = world_.random().below(4) != 0;
  request.results = operation->results;
  request.call = draw_call(*operation);
  submit(std::move(operation), request);
}

void SimUser::get() {
  auto operation = new_operation(Kind::kGet, 1 + world_.random().below(4));
  operation->make_targets();
  client::GetRequest request;
  request.name_space = operation->name_space;
  request.digests = operation->digests;
  request.targets = operation->targets;
  request.is_chain = world_.random().below(2) == 0;
  request.results = operation->results;
  request.call = draw_call(*operation);
  submit(std::move(operation), request);
}

void SimUser::get_views() {
  if (!traits_.maps_pool || views_.size() >= kViewsMax) return get();
  auto operation = new_operation(Kind::kViews, 1 + world_.random().below(3));
  operation->views.resize(operation->digests.size());
  client::GetViewsRequest request;
  request.name_space = operation->name_space;
  request.digests = operation->digests;
  request.is_chain = world_.random().below(2) == 0;
  request.views = operation->views;
  request.results = operation->results;
  request.call = draw_call(*operation);
  submit(std::move(operation), request);
}

void SimUser::reserve() {
  if (!traits_.maps_pool || reservations_.size() >= kReservationsMax) return put();
  auto operation = new_operation(Kind::kReserve, 1 + world_.random().below(2));
  operation->make_bodies(model_, [this](std::uint32_t number) { return draw_length(number); });
  operation->reservations.resize(operation->digests.size());
  client::ReserveRequest request;
  request.name_space = operation->name_space;
  request.digests = operation->digests;
  request.lengths = operation->lengths;
  request.reservations = operation->reservations;
  request.results = operation->results;
  request.call = draw_call(*operation);
  submit(std::move(operation), request);
}

// Fills a frame that was reserved some time ago, and commits it; or gives it back.
void SimUser::go_on_with_reservation() {
  if (reservations_.empty()) return;
  const std::size_t at = world_.random().below(reservations_.size());
  HeldReservation held = std::move(reservations_[at]);
  reservations_.erase(reservations_.begin() + static_cast<std::ptrdiff_t>(at));
  fill(held.reservation, held.bytes);
  client::Queue& queue = *queues_[held.queue];
  if (world_.random().below(5) == 0) {
    queue.abort(std::span(&held.reservation, 1));
    model_.put_ended(held.key, held.body, BlockStatus::kDeclined);
    return;
  }
  auto operation = std::make_unique<Operation>();
  operation->kind = Kind::kCommit;
  operation->queue = held.queue;
  operation->name_space = names_[held.key.name_space].handle;
  operation->keys = {held.key};
  operation->bodies = {held.body};
  operation->results.resize(1);
  operation->reservations = {held.reservation};
  client::CommitRequest request;
  request.name_space = {operation->name_space.digest, held.key.epoch};
  request.reservations = operation->reservations;
  request.results = operation->results;
  request.call = draw_call(*operation);
  submit(std::move(operation), request);
}

void SimUser::release_view() {
  if (views_.empty()) return;
  const std::size_t at = world_.random().below(views_.size());
  const HeldView held = views_[at];
  check_bytes(held.key, std::span(held.view.pieces).first(held.view.piece_count));
  views_.erase(views_.begin() + static_cast<std::ptrdiff_t>(at));
  client::Queue& queue = *queues_[world_.random().below(queues_.size())];
  queue.release(std::span(&held.view, 1));
  // Releasing twice is harmless.
  if (world_.random().below(16) == 0) queue.release(std::span(&held.view, 1));
}

void SimUser::look_up() {
  auto operation = new_operation(Kind::kLookup, 1 + world_.random().below(8));
  client::LookupRequest request;
  request.name_space = operation->name_space;
  request.digests = operation->digests;
  request.hold = Milliseconds(world_.random().below(2) * 200);
  request.call = draw_call(*operation);
  submit(std::move(operation), request);
}

void SimUser::touch_keys() {
  auto operation = new_operation(Kind::kKeys, 1 + world_.random().below(3));
  client::KeysRequest request;
  request.name_space = operation->name_space;
  request.digests = operation->digests;
  request.results = operation->results;
  request.call = draw_call(*operation);
  client::Queue& queue = *queues_[operation->queue];
  const std::uint64_t what = world_.random().below(3);
  auto ticket = what == 0   ? queue.submit_remove(request)
                : what == 1 ? queue.submit_prefetch(request)
                            : queue.submit_retain(request, Milliseconds(300));
  submitted(std::move(operation), ticket);
}

void SimUser::cancel() {
  if (operations_.empty()) return;
  const Operation& operation = *operations_[world_.random().below(operations_.size())];
  queues_[operation.queue]->cancel(operation.ticket);
}

void SimUser::purge() {
  if (world_.random().below(3) != 0) return get();
  Name& name = names_[world_.random().below(names_.size())];
  const client::PurgeAnswer answer = client_->purge(name.handle);
  if (answer.status != BlockStatus::kOk) return;
  name.is_stale = true;
  ++traits_.tally->purges;
}

void SimUser::reopen() {
  for (std::uint32_t i = 0; i < names_.size(); ++i) {
    if (!names_[i].is_stale) continue;
    const auto opened = client_->open_namespace(R"({"n":)" + std::to_string(i) + "}");
    if (opened) names_[i] = {.handle = *opened};
  }
}

}  // namespace cairn::testing
