#include "tests/support/sim_media.h"

#include <algorithm>
#include <utility>

namespace cairn::testing {

void SimMedia::write(ByteCount offset, std::span<const std::byte> from) {
  if (from.empty()) return;
  Write write{.offset = offset,
              .before = std::vector<std::byte>(from.size()),
              .after = {from.begin(), from.end()}};
  image_.read(offset, write.before);
  previous_.write(offset, write.before);
  image_.write(offset, from);
  cached_ += ByteCount(from.size());
  cache_.push_back(std::move(write));
  while (cached_ > cache_max_) {
    cached_ -= ByteCount(cache_.front().after.size());
    cache_.pop_front();
  }
}

void SimMedia::flip_bit(ByteCount offset, unsigned bit) {
  std::byte byte{};
  image_.read(offset, {&byte, 1});
  byte ^= std::byte{1} << (bit % 8U);
  image_.write(offset, {&byte, 1});
}

void SimMedia::sync() noexcept {
  cache_.clear();
  cached_ = ByteCount(0);
}

void SimMedia::crash(Random& random, SimCrash mode) {
  if (mode != SimCrash::kKeepAll) {
    // Back to what was durable, newest first; then what survives, in order.
    for (auto write = cache_.rbegin(); write != cache_.rend(); ++write)
      image_.write(write->offset, write->before);
  }
  if (mode == SimCrash::kRandom) {
    for (const Write& write : cache_)
      keep_some(random, write);
  }
  sync();
}

void SimMedia::keep_some(Random& random, const Write& write) {
  enum : std::uint64_t { kLost, kWhole, kPrefix, kScattered, kFates };
  const std::span<const std::byte> bytes(write.after);
  const std::uint64_t fate = random.below(kFates);
  if (fate == kLost) return;
  if (fate == kWhole) {
    image_.write(write.offset, bytes);
    return;
  }
  const std::size_t unit = random.below(2) == 0 ? 512 : 4'096;
  const std::uint64_t units = divide_up(bytes.size(), unit);
  const std::uint64_t kept = random.below(units + 1);
  for (std::uint64_t i = 0; i < units; ++i) {
    const bool is_kept = fate == kPrefix ? i < kept : random.below(2) == 0;
    if (!is_kept) continue;
    const std::size_t begin = i * unit;
    image_.write(write.offset + ByteCount(begin),
                 bytes.subspan(begin, std::min(unit, bytes.size() - begin)));
  }
}

}  // namespace cairn::testing
