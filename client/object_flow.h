// Requests with objects of more than kBlockBytesMax, made of ordinary gets and puts of their parts.
// They run one such request after the other; PROTOCOL rules in docs/formats.md, "Objects over
// 16 MiB".
#pragma once

#include "client/flow.h"
#include "client/object_format.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace cairn::client {

struct PutPlan;

// What both have in common: one child at a time, whose end moves the flow on.
class ObjectFlow : public Flow {
 public:
  bool send(QueueCore& core) override;
  Answered receive(QueueCore& core, Exchange& exchange, const wire::FrameView& frame) override;
  void lose(QueueCore& /*core*/) override {}
  void end(QueueCore& core, BlockStatus status) override;

 protected:
  using Flow::Flow;
  virtual void begin(QueueCore& core) = 0;
  void reset() noexcept;
  // `child` is begun with this flow's deadline.
  void run(QueueCore& core, Flow& child);
  // The status that end() came with, if it did.
  const std::optional<BlockStatus>& ended() const noexcept { return ended_; }

 private:
  Flow* child_ = nullptr;
  bool is_begun_ = false;
  std::optional<BlockStatus> ended_;
};

// A get by copy some of whose targets may hold an object.
class ObjectGetFlow final : public ObjectFlow {
 public:
  static constexpr FlowKind kKind = FlowKind::kObjectGet;
  ObjectGetFlow() noexcept
      : ObjectFlow(kKind) {}

  void start(const GetRequest& request, Verify verify);
  void child_done(QueueCore& core, Flow& child) override;

 private:
  enum class Stage : std::uint8_t { kMain, kParts, kRemoving };
  void begin(QueueCore& core) override;
  void get_parts(QueueCore& core);
  void judge_parts();
  void remove_broken(QueueCore& core);
  void conclude(QueueCore& core);

  GetRequest request_;
  Verify verify_ = Verify::kAlways;
  Stage stage_ = Stage::kMain;
  std::vector<ObjectInfo> objects_;  // one a key
  // Parts but the first of all objects, and the key that each belongs to.
  std::vector<BlockDigest> part_digests_;
  std::vector<std::span<std::byte>> part_targets_;
  std::vector<KeyResult> part_results_;
  std::vector<std::size_t> part_keys_;
  std::vector<BlockDigest> broken_;  // keys whose parts are not all there
  std::vector<KeyResult> broken_results_;
};

// A put by copy some of whose sources are objects.
class ObjectPutFlow final : public ObjectFlow {
 public:
  static constexpr FlowKind kKind = FlowKind::kObjectPut;
  ObjectPutFlow() noexcept
      : ObjectFlow(kKind) {}

  void start(const PutRequest& request);
  void child_done(QueueCore& core, Flow& child) override;

 private:
  enum class Stage : std::uint8_t { kLookup, kParts, kMain };
  void begin(QueueCore& core) override;
  void put_parts(QueueCore& core);
  void add_parts(std::size_t key, std::uint64_t body);
  void judge_parts();
  void put_main(QueueCore& core);
  void put(QueueCore& core, const PutPlan& plan);
  void conclude(QueueCore& core);
  bool is_object(std::size_t key) const noexcept {
    return request_.sources[key].size() > kPartBytes.value();
  }

  PutRequest request_;
  Stage stage_ = Stage::kLookup;
  std::vector<BlockDigest> object_digests_;
  std::vector<std::size_t> object_keys_;
  std::vector<std::uint8_t> object_tiers_;
  std::vector<ObjectInfo> objects_;  // one a key, of those that are put anew
  std::vector<BlockDigest> digests_;
  std::vector<std::span<const std::byte>> sources_;
  std::vector<KeyResult> results_;
  std::vector<std::size_t> keys_;  // of each of these
  std::vector<std::array<std::byte, kObjectAttributeBytes>> attribute_bytes_;
  std::vector<std::span<const std::byte>> attributes_;
  std::vector<bool> must_exist_;
  std::vector<BlockStatus> failed_;  // one a key: kOk, or why its parts are not there
};

}  // namespace cairn::client
