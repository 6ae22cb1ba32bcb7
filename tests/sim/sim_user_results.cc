// What a SimUser makes of its tickets' ends.
#include "tests/sim/sim_operation.h"

#include <algorithm>
#include <utility>

namespace cairn::testing {

std::unique_ptr<SimUser::Operation> SimUser::new_operation(Kind kind, std::size_t keys) {
  auto operation = std::make_unique<Operation>();
  operation->kind = kind;
  operation->queue = static_cast<std::uint32_t>(world_.random().below(queues_.size()));
  draw_keys(*operation, keys);
  operation->results.resize(operation->digests.size());
  return operation;
}

void SimUser::draw_keys(Operation& operation, std::size_t count) {
  const auto name_space = static_cast<std::uint32_t>(world_.random().below(names_.size()));
  operation.name_space = names_[name_space].handle;
  const auto first = static_cast<std::uint32_t>(world_.random().below(kKeyNumbers));
  for (std::uint32_t i = 0; i < count; ++i) {
    const ModelKey key{.name_space = name_space,
                       .epoch = operation.name_space.epoch,
                       .number = (first + i) % kKeyNumbers};
    operation.keys.push_back(key);
    operation.digests.push_back(model_digest(key.number));
  }
}

std::size_t SimUser::draw_length(std::uint32_t number) {
  constexpr std::size_t kChunk = kChunkBytes.value();
  SeededRandom& random = world_.random();
  if (!is_large(number))
    return BlockModel::kBodyBytesMin + random.below(kSmallBytesMax - BlockModel::kBodyBytesMin);
  // Often at the edge of a chunk.
  const std::size_t chunks = 1 + random.below(kLargeBytesMax / kChunk - 1);
  const std::size_t edge = chunks * kChunk;
  return random.below(3) == 0 ? edge + random.below(3) - 1 : edge + random.below(kChunk);
}

client::CallOptions SimUser::draw_call(Operation& operation) {
  client::CallOptions call;
  const std::uint64_t drawn = world_.random().below(10);
  call.deadline = drawn == 0 ? Milliseconds(1) : Milliseconds(20 + world_.random().below(400));
  operation.deadline = world_.clock().now() + call.deadline;
  return call;
}

template <typename Request>
void SimUser::submit(std::unique_ptr<Operation> operation, const Request& request) {
  const std::uint32_t queue = operation->queue;
  auto ticket = queues_[queue]->submit(request);
  submitted(std::move(operation), ticket);
}

template void SimUser::submit(std::unique_ptr<Operation>, const client::PutRequest&);
template void SimUser::submit(std::unique_ptr<Operation>, const client::GetRequest&);
template void SimUser::submit(std::unique_ptr<Operation>, const client::GetViewsRequest&);
template void SimUser::submit(std::unique_ptr<Operation>, const client::ReserveRequest&);
template void SimUser::submit(std::unique_ptr<Operation>, const client::CommitRequest&);
template void SimUser::submit(std::unique_ptr<Operation>, const client::LookupRequest&);

void SimUser::submitted(std::unique_ptr<Operation> operation, Result<client::Ticket> ticket) {
  if (ticket) {
    operation->ticket = *ticket;
    operations_.push_back(std::move(operation));
    return;
  }
  if (ticket.error().code != ErrorCode::kBusy) fail(std::string("refused: ") + ticket.error().what);
  // Nothing was taken: a reservation that was to be committed is still there.
  if (operation->kind == Kind::kCommit) queues_[operation->queue]->abort(operation->reservations);
  for (std::size_t i = 0; i < operation->bodies.size(); ++i)
    model_.put_ended(operation->keys[i], operation->bodies[i], BlockStatus::kDeclined);
}

void SimUser::completed(std::uint32_t queue, const client::Completion& completion) {
  const auto found = std::ranges::find_if(operations_, [&](const auto& operation) {
    return operation->queue == queue && operation->ticket == completion.ticket;
  });
  if (found == operations_.end()) return fail("a completion of no ticket");
  Operation& operation = **found;
  if (completion.is_done) {
    if (operation.is_done) fail("a ticket is done twice");
    operation.is_done = true;
    done(operation, completion);
  }
  if (completion.is_returned) {
    if (operation.is_returned) fail("a ticket is returned twice");
    operation.is_returned = true;
  }
  if (!operation.is_done || !operation.is_returned) return;
  // The buffers are the caller's again: what the SDK still did with them would be seen.
  for (auto& buffer : operation.buffers)
    std::ranges::fill(buffer, std::byte{0xDD});
  operations_.erase(found);
}

void SimUser::note(const Operation& operation, BlockStatus status) {
  if (status != BlockStatus::kWrongNamespace) return;
  for (Name& name : names_) {
    if (name.handle == operation.name_space) name.is_stale = true;
  }
}

void SimUser::done(Operation& operation, const client::Completion& completion) {
  for (const client::KeyResult& result : operation.results) {
    note(operation, result.status);
    traits_.tally->count(result.status);
    if (result.status == BlockStatus::kForbidden || result.status == BlockStatus::kCorrupt)
      fail("status " + std::string(block_status_name(result.status)));
  }
  switch (operation.kind) {
    case Kind::kPut:
    case Kind::kCommit:
      return put_done(operation);
    case Kind::kGet:
      return got(operation);
    case Kind::kViews:
      return got_views(operation);
    case Kind::kReserve:
      return reserved(operation);
    case Kind::kLookup:
      note(operation, completion.lookup.status);
      if (completion.lookup.run > operation.digests.size()) fail("a run beyond its keys");
      return;
    case Kind::kKeys:
      return;
  }
}

void SimUser::put_done(Operation& operation) {
  for (std::size_t i = 0; i < operation.keys.size(); ++i) {
    const BlockStatus status = operation.results[i].status;
    model_.put_ended(operation.keys[i], operation.bodies[i], status);
    const bool is_commit = operation.kind == Kind::kCommit && status == BlockStatus::kOk;
    if (is_commit) ++traits_.tally->commits;
  }
}

void SimUser::got(Operation& operation) {
  for (std::size_t i = 0; i < operation.keys.size(); ++i) {
    if (operation.results[i].status != BlockStatus::kOk) continue;
    const std::span<const std::byte> bytes =
        std::span(operation.buffers[i]).first(operation.results[i].length);
    check_bytes(operation.keys[i], std::span(&bytes, 1));
    ++traits_.tally->blocks_read;
  }
}

void SimUser::got_views(Operation& operation) {
  for (std::size_t i = 0; i < operation.keys.size(); ++i) {
    if (operation.results[i].status != BlockStatus::kOk) continue;
    const client::BlockView& view = operation.views[i];
    check_bytes(operation.keys[i], std::span(view.pieces).first(view.piece_count));
    views_.push_back({operation.keys[i], view});
  }
}

void SimUser::reserved(Operation& operation) {
  for (std::size_t i = 0; i < operation.keys.size(); ++i) {
    if (operation.results[i].status != BlockStatus::kOk) {
      model_.put_ended(operation.keys[i], operation.bodies[i], BlockStatus::kDeclined);
      continue;
    }
    reservations_.push_back({.key = operation.keys[i],
                             .body = operation.bodies[i],
                             .bytes = operation.buffers[i],
                             .reservation = operation.reservations[i],
                             .queue = operation.queue});
  }
}

}  // namespace cairn::testing
