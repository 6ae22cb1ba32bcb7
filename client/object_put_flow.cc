#include "client/lookup_flow.h"
#include "client/object_flow.h"
#include "client/put_flow.h"
#include "client/put_inline_flow.h"
#include "client/queue_core.h"

#include <algorithm>

namespace cairn::client {
namespace {

bool is_there(BlockStatus status) noexcept {
  return status == BlockStatus::kOk || status == BlockStatus::kExists;
}

}  // namespace

void ObjectPutFlow::start(const PutRequest& request) {
  reset();
  request_ = request;
  name_space = request.name_space;
  call = request.call;
  lookup = {};
  branch = request.placement.branch;
  stage_ = Stage::kLookup;
  object_digests_.clear();
  object_keys_.clear();
  for (std::size_t key = 0; key < request.digests.size(); ++key) {
    if (!is_object(key)) continue;
    object_digests_.push_back(request.digests[key]);
    object_keys_.push_back(key);
  }
  object_tiers_.assign(object_keys_.size(), 0);
  objects_.assign(request.digests.size(), ObjectInfo{});
  must_exist_.assign(request.digests.size(), false);
  failed_.assign(request.digests.size(), BlockStatus::kOk);
}

// An object that is there already is not worth sending its parts.
void ObjectPutFlow::begin(QueueCore& core) {
  auto& question = core.make<LookupFlow>();
  LookupRequest request;
  request.name_space = name_space;
  request.digests = object_digests_;
  request.is_run = false;
  request.tiers = object_tiers_;
  request.call = call;
  question.start(request);
  run(core, question);
}

void ObjectPutFlow::child_done(QueueCore& core, Flow& child) {
  if (stage_ == Stage::kLookup) {
    const bool is_known = child.lookup.status == BlockStatus::kOk && !ended();
    if (is_known) return put_parts(core);
    const KeyResult result{.status = child.lookup.status, .reason = child.lookup.reason};
    std::ranges::fill(request_.results, result);
    core.finish(*this);
  } else if (stage_ == Stage::kParts) {
    judge_parts();
    put_main(core);
  } else {
    conclude(core);
  }
}

void ObjectPutFlow::put_parts(QueueCore& core) {
  digests_.clear();
  sources_.clear();
  keys_.clear();
  for (std::size_t i = 0; i < object_keys_.size(); ++i) {
    const std::size_t key = object_keys_[i];
    must_exist_[key] = object_tiers_[i] != 0;
    if (!must_exist_[key]) add_parts(key, core.session().random_u64());
  }
  stage_ = Stage::kParts;
  results_.assign(digests_.size(), KeyResult{});
  PutPlan plan{.digests = digests_, .sources = sources_, .results = results_};
  plan.placement.is_chain = false;
  plan.placement.retain = request_.placement.retain;
  plan.placement.is_durable = request_.placement.is_durable;
  put(core, plan);
}

// Last to first, part 0 comes with the main request.
void ObjectPutFlow::add_parts(std::size_t key, std::uint64_t body) {
  const ObjectInfo object = make_object(request_.sources[key].size(), body);
  objects_[key] = object;
  for (std::uint32_t part = object.parts - 1; part > 0; --part) {
    const PartRange range = part_range(object, part);
    digests_.push_back(part_digest(request_.digests[key], object.body, part));
    sources_.push_back(request_.sources[key].subspan(range.offset, range.length));
    keys_.push_back(key);
  }
}

void ObjectPutFlow::judge_parts() {
  for (std::size_t i = 0; i < keys_.size(); ++i) {
    BlockStatus& failed = failed_[keys_[i]];
    const bool has_failed = !is_there(results_[i].status) && failed == BlockStatus::kOk;
    if (!has_failed) continue;
    failed = results_[i].status;
    request_.results[keys_[i]] = {.status = failed,
                                  .reason = results_[i].reason,
                                  .length = request_.sources[keys_[i]].size()};
  }
}

void ObjectPutFlow::put_main(QueueCore& core) {
  stage_ = Stage::kMain;
  digests_.clear();
  sources_.clear();
  keys_.clear();
  attribute_bytes_.clear();
  attributes_.clear();
  std::vector<bool> must_exist;
  bool is_cut = false;
  for (std::size_t key = 0; key < request_.digests.size(); ++key) {
    if (failed_[key] != BlockStatus::kOk || is_cut) {
      if (is_cut) request_.results[key] = {.status = ended().value_or(BlockStatus::kCut)};
      is_cut = is_cut || request_.placement.is_chain;
      continue;
    }
    const auto source = request_.sources[key];
    digests_.push_back(request_.digests[key]);
    sources_.push_back(source.first(std::min<std::size_t>(source.size(), kPartBytes.value())));
    keys_.push_back(key);
    must_exist.push_back(must_exist_[key]);
    attribute_bytes_.push_back(encode_object(objects_[key]));
  }
  for (std::size_t i = 0; i < keys_.size(); ++i) {
    const std::span<const std::byte> bytes(attribute_bytes_[i]);
    attributes_.push_back(objects_[keys_[i]].length > 0 ? bytes : bytes.first(0));
  }
  must_exist_ = std::move(must_exist);
  results_.assign(digests_.size(), KeyResult{});
  put(core,
      {.digests = digests_,
       .sources = sources_,
       .attributes = attributes_,
       .must_exist = &must_exist_,
       .results = results_,
       .placement = request_.placement});
}

void ObjectPutFlow::put(QueueCore& core, const PutPlan& plan) {
  if (core.is_mapped()) {
    auto& child = core.make<PutFlow>();
    child.start(name_space, call, plan);
    run(core, child);
  } else {
    auto& child = core.make<PutInlineFlow>();
    child.start(name_space, call, plan);
    run(core, child);
  }
  if (ended()) end(core, *ended());
}

void ObjectPutFlow::conclude(QueueCore& core) {
  for (std::size_t i = 0; i < keys_.size(); ++i) {
    KeyResult& result = request_.results[keys_[i]];
    result = results_[i];
    if (is_there(result.status)) result.length = request_.sources[keys_[i]].size();
  }
  core.finish(*this);
}

}  // namespace cairn::client
