// Reserve and commit in place: frames that the caller fills itself.
#pragma once

#include "client/copy_batch.h"
#include "client/flow.h"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace cairn::client {

// Batch after batch, since each needs the branch that the one before it gave.
class ReserveFlow final : public Flow {
 public:
  static constexpr FlowKind kKind = FlowKind::kReserve;
  ReserveFlow() noexcept
      : Flow(kKind) {}

  void start(const ReserveRequest& request);
  bool send(QueueCore& core) override;
  Answered receive(QueueCore& core, Exchange& exchange, const wire::FrameView& frame) override;
  void lose(QueueCore& core) override;
  void end(QueueCore& core, BlockStatus status) override;

 private:
  bool ask(QueueCore& core);
  void take(std::span<const wire::Grant> grants, std::span<const FramePieces> pieces);
  void fail(const wire::ReplyContext& context);

  ReserveRequest request_;
  std::size_t next_ = 0;   // first key that has not ended
  std::size_t asked_ = 0;  // keys from there on that are asked for
  std::size_t cut_ = 0;
};

class CommitFlow final : public Flow {
 public:
  static constexpr FlowKind kKind = FlowKind::kCommit;
  CommitFlow() noexcept
      : Flow(kKind) {}

  void start(const CommitRequest& request);
  bool send(QueueCore& core) override;
  Answered receive(QueueCore& core, Exchange& exchange, const wire::FrameView& frame) override;
  void copied(QueueCore& core, CopyBatch& copies) override;
  void lose(QueueCore& core) override;
  void end(QueueCore& core, BlockStatus status) override;
  bool is_idle() const noexcept override { return stage_ != Stage::kSumming; }

 private:
  enum class Stage : std::uint8_t { kIdle, kSumming, kSummed, kCommitting };
  static constexpr std::uint32_t kNoTask = ~std::uint32_t{0};
  struct Item {
    BlockStatus status = BlockStatus::kOk;  // kOk: goes into the commit
    std::uint32_t checksum_first = 0;       // in the copies' checksums
    std::uint32_t task = kNoTask;
    bool is_sent = false;
  };

  void begin(QueueCore& core);
  void add_item(QueueCore& core, std::size_t i, std::uint32_t checksum_first);
  void summed();
  bool ask(QueueCore& core);
  void close_batch(QueueCore& core);
  void return_items(QueueCore& core);
  static void drop(QueueCore& core, std::uint64_t lend);

  CommitRequest request_;
  Stage stage_ = Stage::kIdle;
  KeyRange keys_;                  // of the batch under way
  std::size_t checksum_next_ = 0;  // in the request's checksums
  std::vector<Item> items_;
  CopyBatch sums_;
};

}  // namespace cairn::client
