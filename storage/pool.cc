#include "storage/pool.h"

#include "base/check.h"
#include "storage/populate_crew.h"

#include <algorithm>
#include <bit>
#include <utility>

namespace cairn::storage {
namespace {

constexpr ByteCount kPoolMin = 64_MiB;
constexpr ByteCount kPoolMax = 16_GiB * 1024;
constexpr ByteCount kSlabMin = 64_MiB;
constexpr ByteCount kSlabMax = 1_GiB;
constexpr ByteCount kSlabUnit = 2_MiB;  // a huge page; a slab is a multiple
constexpr std::uint32_t kThreadsMax = 64;
// Slabs that may be smaller than the plan says, because a predecessor held memory at that time.
constexpr std::uint64_t kPartialSlabsMax = 16;

}  // namespace

std::optional<const char*> PoolOptions::validate() const noexcept {
  if (size < kPoolMin || size > kPoolMax) return "size";
  if (slab_bytes < kSlabMin || slab_bytes > kSlabMax) return "slab_bytes";
  if (!std::has_single_bit(slab_bytes.value())) return "slab_bytes";
  if (populate_threads > kThreadsMax) return "populate_threads";
  return std::nullopt;
}

std::uint32_t slabs_max(const PoolOptions& options) noexcept {
  const std::uint64_t planned = divide_up(options.size.value(), options.slab_bytes.value());
  return static_cast<std::uint32_t>(
      std::min(planned + kPartialSlabsMax, kPoolMax / options.slab_bytes));
}

class Pool::Impl {
 public:
  Impl(const PoolOptions& options, PoolMemory& memory, std::uint32_t generation) noexcept
      : options_(options),
        size_(ByteCount(options.size.value() / kSlabUnit.value() * kSlabUnit.value())),
        generation_(generation),
        memory_(memory),
        crew_(memory) {}

  Status open() noexcept;
  Result<std::vector<Slab>> step() noexcept;
  bool is_complete() const noexcept { return ready_bytes_ == size_; }
  const PredecessorSlabs& predecessors() const noexcept { return predecessors_; }
  std::span<const Slab> ready_slabs() const noexcept { return ready_; }

 private:
  Status reclaim() noexcept;
  // Bytes of the next slab to make; 0: there is no room, or nothing is missing.
  ByteCount next_slab_bytes() const noexcept;
  Status start_slabs() noexcept;
  Status collect(std::vector<Slab>& ready) noexcept;
  void note_failure(const Status& status) noexcept {
    if (failure_.has_value()) failure_ = status;
  }

  PoolOptions options_;
  ByteCount size_;
  std::uint32_t generation_;
  PoolMemory& memory_;
  PredecessorSlabs predecessors_;
  std::vector<Slab> slabs_;  // by number; discarded ones have no bytes
  ByteCount started_bytes_;  // of slabs that are ready or being populated
  ByteCount ready_bytes_;
  std::vector<Slab> ready_;
  bool is_refused_ = false;  // the machine said no; asked again when a predecessor has gone
  Status failure_;           // not told yet
  PopulateCrew crew_;        // last: its threads end before what they use
};

Status Pool::Impl::open() noexcept {
  CAIRN_TRY(predecessors_, memory_.reclaim_predecessors());
  CAIRN_TRY_STATUS(start_slabs());
  return crew_.start(options_.populate_threads);
}

Status Pool::Impl::reclaim() noexcept {
  if (predecessors_.bytes == 0_B) return {};
  const ByteCount before = predecessors_.bytes;
  CAIRN_TRY(predecessors_, memory_.reclaim_predecessors());
  if (predecessors_.bytes < before) is_refused_ = false;
  return {};
}

ByteCount Pool::Impl::next_slab_bytes() const noexcept {
  const ByteCount taken = started_bytes_ + predecessors_.bytes;
  if (is_refused_ || taken >= size_ || slabs_.size() == slabs_max(options_)) return 0_B;
  const ByteCount room = size_ - taken;
  const ByteCount planned = std::min(options_.slab_bytes, size_ - started_bytes_);
  if (room >= planned) return planned;
  // A smaller slab than planned, unless the numbers that are left are needed for what is missing.
  const ByteCount part = ByteCount(room.value() / kSlabUnit.value() * kSlabUnit.value());
  const std::uint64_t needed =
      divide_up((size_ - started_bytes_).value(), options_.slab_bytes.value());
  const bool has_spare_number = slabs_.size() + needed < slabs_max(options_);
  return part >= kSlabMin && has_spare_number ? part : 0_B;
}

Status Pool::Impl::start_slabs() noexcept {
  for (ByteCount bytes = next_slab_bytes(); bytes > 0_B; bytes = next_slab_bytes()) {
    const auto number = static_cast<std::uint32_t>(slabs_.size());
    const auto made = memory_.create_slab(number, bytes);
    if (!made) {
      is_refused_ = true;
      return made.error();
    }
    slabs_.push_back(
        {.number = number, .generation = generation_, .bytes = made->bytes, .fd = made->fd});
    started_bytes_ += bytes;
    crew_.add(number, bytes);
  }
  return {};
}

// Moves finished slabs to `ready`; the first failure is the answer, its slab given back.
Status Pool::Impl::collect(std::vector<Slab>& ready) noexcept {
  Status status;
  for (const PopulateCrew::Finished& finished : crew_.take_finished()) {
    Slab& slab = slabs_[finished.slab];
    const ByteCount bytes(slab.bytes.size());
    if (finished.status.has_value()) {
      ready.push_back(slab);
      ready_.push_back(slab);
      ready_bytes_ += bytes;
      continue;
    }
    if (status.has_value()) status = finished.status;
    is_refused_ = true;
    started_bytes_ -= bytes;
    slab.bytes = {};
    slab.fd = -1;
    memory_.discard_slab(finished.slab);
  }
  return status;
}

Result<std::vector<Slab>> Pool::Impl::step() noexcept {
  if (options_.populate_threads == 0) crew_.do_one_step();
  std::vector<Slab> ready;
  note_failure(collect(ready));
  Status grown = reclaim();
  if (grown.has_value()) grown = start_slabs();
  note_failure(grown);
  // Slabs are told of first: an answer is either slabs or a failure.
  if (!ready.empty() || failure_.has_value()) return ready;
  return std::exchange(failure_, Status()).error();
}

Result<std::unique_ptr<Pool>> Pool::open(const PoolOptions& options,
                                         PoolMemory& memory,
                                         std::uint32_t generation) noexcept {
  if (const auto wrong = options.validate()) return Error{ErrorCode::kInvalid, 0, *wrong};
  auto impl = std::make_unique<Impl>(options, memory, generation);
  CAIRN_TRY_STATUS(impl->open());
  return std::unique_ptr<Pool>(new Pool(std::move(impl)));
}

Pool::Pool(std::unique_ptr<Impl> impl) noexcept
    : impl_(std::move(impl)) {}

Pool::~Pool() = default;

Result<std::vector<Slab>> Pool::step() noexcept {
  return impl_->step();
}

bool Pool::is_complete() const noexcept {
  return impl_->is_complete();
}

const PredecessorSlabs& Pool::predecessors() const noexcept {
  return impl_->predecessors();
}

std::span<const Slab> Pool::ready_slabs() const noexcept {
  return impl_->ready_slabs();
}

}  // namespace cairn::storage
