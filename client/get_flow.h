// Gets: by copy into the caller's memory, in place as views, or inline where the pool is not
// mapped. Batch after batch, the next one asked for while this one is copied.
#pragma once

#include "client/copy_batch.h"
#include "client/flow.h"
#include "client/object_format.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace cairn::client {

// What the forms of a get have in common. Exactly one of targets and views is used.
struct GetPlan {
  std::span<const BlockDigest> digests;
  std::span<const std::span<std::byte>> targets;
  std::span<BlockView> views;
  std::span<KeyResult> results;
  // One a digest, or empty: what a key's attributes say of an object; then the target takes the
  // bytes of part 0 alone.
  std::span<ObjectInfo> objects;
  bool is_chain = true;
  Verify verify = Verify::kAlways;
};

class GetFlow final : public Flow {
 public:
  static constexpr FlowKind kKind = FlowKind::kGet;
  GetFlow() noexcept
      : Flow(kKind) {}

  void start(const Namespace& in, const CallOptions& options, const GetPlan& plan);
  bool send(QueueCore& core) override;
  Answered receive(QueueCore& core, Exchange& exchange, const wire::FrameView& frame) override;
  void copied(QueueCore& core, CopyBatch& copies) override;
  void lose(QueueCore& core) override;
  void end(QueueCore& core, BlockStatus status) override;
  bool is_idle() const noexcept override;

 private:
  enum class Stage : std::uint8_t { kFree, kUnsent, kAsked, kCopying };
  static constexpr std::uint32_t kNoTask = ~std::uint32_t{0};
  struct Item {
    KeyResult result;
    std::uint64_t lend = 0;
    std::uint32_t task = kNoTask;
    FramePieces frame;
    // Inline alone.
    std::uint32_t checksum_first = 0;
    std::uint32_t received = 0;
    std::uint32_t crc = 0;  // of the chunk that is being received
    bool is_taken = false;  // its bytes go into the target
    bool is_wrong = false;
  };
  struct Batch {
    Stage stage = Stage::kFree;
    KeyRange keys;
    bool is_inline = false;
    bool wants_attributes = false;
    std::vector<Item> items;
    CopyBatch copies;
  };

  bool is_views() const noexcept { return !plan_.views.empty(); }
  bool begin_batches(QueueCore& core);
  KeyRange next_range(const QueueCore& core) const;
  bool ask(QueueCore& core, Batch& batch);
  bool is_over() const noexcept;
  Answered lend(QueueCore& core, Batch& batch);
  bool may_ask_again(Batch& batch);
  bool has_hidden_object(const Batch& batch, std::span<const wire::Grant> grants) const;
  void prepare(QueueCore& core, Batch& batch);
  void prepare_item(QueueCore& core, Batch& batch, std::size_t i);
  void complete(QueueCore& core, Batch& batch);
  void complete_item(QueueCore& core, Batch& batch, std::size_t i);
  void fail_batch(QueueCore& core, Batch& batch, const wire::ReplyContext& context);
  void drop_lends(QueueCore& core, Batch& batch);
  void free(QueueCore& core, Batch& batch);
  void fill_unended(BlockStatus status);
  void cut_chain(QueueCore& core);
  Answered begin_inline(QueueCore& core, Exchange& exchange, Batch& batch);
  Answered take_inline(QueueCore& core, Exchange& exchange, const wire::FrameView& frame);
  void take_bytes(Batch& batch, std::size_t i, std::span<const std::byte> bytes);

  GetPlan plan_;
  std::size_t next_ = 0;  // first key that is in no batch yet
  std::size_t cut_ = 0;   // first key of a chain that failed; digests.size() for none
  bool was_lost_ = false;
  std::array<Batch, 2> batches_;
};

}  // namespace cairn::client
