#include "client/get_flow.h"
#include "client/keys_flow.h"
#include "client/object_flow.h"
#include "client/queue_core.h"

#include <algorithm>

namespace cairn::client {

void ObjectGetFlow::start(const GetRequest& request, Verify verify) {
  reset();
  request_ = request;
  verify_ = verify;
  name_space = request.name_space;
  call = request.call;
  lookup = {};
  branch.reset();
  stage_ = Stage::kMain;
  objects_.assign(request.digests.size(), ObjectInfo{});
  part_digests_.clear();
  part_targets_.clear();
  part_keys_.clear();
  broken_.clear();
}

void ObjectGetFlow::begin(QueueCore& core) {
  auto& main = core.make<GetFlow>();
  main.start(name_space,
             call,
             {.digests = request_.digests,
              .targets = request_.targets,
              .views = {},
              .results = request_.results,
              .objects = objects_,
              .is_chain = request_.is_chain,
              .verify = verify_});
  run(core, main);
}

void ObjectGetFlow::child_done(QueueCore& core, Flow& /*child*/) {
  if (stage_ == Stage::kMain) {
    get_parts(core);
  } else if (stage_ == Stage::kParts) {
    judge_parts();
    remove_broken(core);
  } else {
    conclude(core);
  }
}

void ObjectGetFlow::get_parts(QueueCore& core) {
  for (std::size_t key = 0; key < objects_.size(); ++key) {
    const ObjectInfo& object = objects_[key];
    KeyResult& result = request_.results[key];
    if (object.length == 0 || result.status != BlockStatus::kOk) continue;
    if (ended()) result.status = *ended();
    for (std::uint32_t part = 1; part < object.parts; ++part) {
      const PartRange range = part_range(object, part);
      part_digests_.push_back(part_digest(request_.digests[key], object.body, part));
      part_targets_.push_back(request_.targets[key].subspan(range.offset, range.length));
      part_keys_.push_back(key);
    }
  }
  if (part_digests_.empty() || ended()) return conclude(core);
  part_results_.assign(part_digests_.size(), KeyResult{});
  stage_ = Stage::kParts;
  auto& parts = core.make<GetFlow>();
  parts.start(name_space,
              call,
              {.digests = part_digests_,
               .targets = part_targets_,
               .views = {},
               .results = part_results_,
               .objects = {},
               .is_chain = false,
               .verify = verify_});
  run(core, parts);
}

// An object is there only if all of its parts are, whole.
void ObjectGetFlow::judge_parts() {
  for (std::size_t i = 0; i < part_keys_.size(); ++i) {
    const std::size_t key = part_keys_[i];
    KeyResult part = part_results_[i];
    KeyResult& result = request_.results[key];
    const bool is_whole = part.status == BlockStatus::kOk && part.length == part_targets_[i].size();
    if (is_whole || result.status != BlockStatus::kOk) continue;
    // A part that is too long or too short is another object's.
    const bool is_missing = part.status == BlockStatus::kOk || part.status == BlockStatus::kMiss ||
                            part.status == BlockStatus::kTooLarge;
    if (is_missing) part = {.status = BlockStatus::kMiss};
    result.status = part.status;
    result.reason = part.reason;
    if (is_missing) broken_.push_back(request_.digests[key]);
  }
}

// Part 0 alone would make every later put of the object answer kExists.
void ObjectGetFlow::remove_broken(QueueCore& core) {
  if (broken_.empty() || ended()) return conclude(core);
  broken_results_.assign(broken_.size(), KeyResult{});
  stage_ = Stage::kRemoving;
  auto& removal = core.make<KeysFlow>();
  removal.start(
      {.name_space = name_space, .digests = broken_, .results = broken_results_, .call = call},
      wire::MessageType::kRemove,
      Milliseconds(0));
  run(core, removal);
}

void ObjectGetFlow::conclude(QueueCore& core) {
  if (request_.is_chain) {
    const auto failed = std::ranges::find_if(request_.results, [](const KeyResult& result) {
      return result.status != BlockStatus::kOk;
    });
    // What ended with the request keeps the request's status.
    const bool is_cut = failed != request_.results.end() && !ended();
    if (is_cut)
      std::fill(failed + 1, request_.results.end(), KeyResult{.status = BlockStatus::kCut});
  }
  core.finish(*this);
}

}  // namespace cairn::client
