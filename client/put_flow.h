// Puts by copy: reserve, copy into the lent frames, commit; the commit carries the reserve of a
// later batch, so that in steady state a batch costs one round trip and the daemon works on one
// while another is copied.
#pragma once

#include "client/copy_batch.h"
#include "client/flow.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace cairn::client {

struct PutPlan {
  std::span<const BlockDigest> digests;
  std::span<const std::span<const std::byte>> sources;  // at most kBlockBytesMax each
  // One a digest, or empty: TLVs of the block.
  std::span<const std::span<const std::byte>> attributes;
  // One a digest, or empty: true where only kExists will do; room for a new block is given back and
  // answered kBusy.
  const std::vector<bool>* must_exist = nullptr;
  std::span<KeyResult> results;
  PutPlacement placement;
};

// Of digests[first, ...) in a request with `placement`.
wire::Placement placement_from(const PutPlacement& placement,
                               std::span<const BlockDigest> digests,
                               std::size_t first,
                               const std::optional<BlockDigest>& branch);

class PutFlow final : public Flow {
 public:
  static constexpr FlowKind kKind = FlowKind::kPut;
  PutFlow() noexcept
      : Flow(kKind) {}

  void start(const Namespace& in, const CallOptions& options, const PutPlan& plan);
  bool send(QueueCore& core) override;
  Answered receive(QueueCore& core, Exchange& exchange, const wire::FrameView& frame) override;
  void copied(QueueCore& core, CopyBatch& copies) override;
  void lose(QueueCore& core) override;
  void end(QueueCore& core, BlockStatus status) override;
  bool is_idle() const noexcept override;

 private:
  enum class Stage : std::uint8_t { kFree, kUnsent, kReserving, kCopying, kCopied, kCommitting };
  static constexpr std::uint32_t kNoBatch = ~std::uint32_t{0};
  static constexpr std::uint32_t kNoTask = ~std::uint32_t{0};
  struct Item {
    KeyResult result;
    std::uint64_t lend = 0;
    std::uint32_t task = kNoTask;
    std::uint32_t checksum_first = 0;
    std::uint32_t checksum_count = 0;
  };
  struct Batch {
    Stage stage = Stage::kFree;
    KeyRange keys;
    std::size_t lent = 0;              // of the queue's share
    std::uint32_t carried = kNoBatch;  // kCommitting: the batch that its commit reserves
    std::vector<Item> items;
    CopyBatch copies;
  };

  Batch* free_batch() noexcept;
  bool is_stopped() const noexcept;
  bool may_begin() const noexcept;
  bool is_next_to_commit(const Batch& batch) const noexcept;
  KeyRange next_range(const QueueCore& core) const;
  std::size_t tail_keys(const KeyRange& keys) const;
  bool begin_reserve(QueueCore& core);
  bool ask_reserve(QueueCore& core, Batch& batch);
  bool ask_commit(QueueCore& core, Batch& batch);
  void fill_commit(QueueCore& core, const Batch& batch);
  Batch* carry_next(QueueCore& core, Batch& batch);
  void undo_carry(QueueCore& core, Batch& batch, Batch& next);
  Answered granted(QueueCore& core, Batch& batch, const wire::ReserveReply& reply);
  bool is_usable(const Batch& batch, const wire::Grant& grant, std::size_t i) const;
  void prepare(QueueCore& core, Batch& batch, const wire::ReserveReply& reply);
  void after_copies(QueueCore& core, Batch& batch);
  Answered committed(QueueCore& core, Batch& batch, const wire::FrameView& frame);
  void settle_items(QueueCore& core, Batch& batch, const wire::CommitReply& reply);
  void fail_batch(QueueCore& core, Batch& batch, const wire::ReplyContext& context);
  void record(std::size_t key, const KeyResult& result);
  void abort_lends(QueueCore& core, Batch& batch);
  void free(QueueCore& core, Batch& batch);
  bool is_over() const noexcept;
  void cut_chain();

  PutPlan plan_;
  std::size_t next_ = 0;  // first key that is in no batch yet
  std::size_t cut_ = 0;   // first key of a chain that failed; digests.size() for none
  bool is_branch_known_ = false;
  std::vector<std::uint32_t> lengths_;
  // Two that are reserved or copied, and those whose commits are under way.
  std::array<Batch, 4> batches_;
};

}  // namespace cairn::client
