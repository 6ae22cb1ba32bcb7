#include "base/check.h"
#include "storage/header_page.h"
#include "storage/store_impl.h"

#include <algorithm>
#include <cstring>

namespace cairn::storage {
namespace {

// The CRC-32C of the next `bytes` of a payload, from where `at` stands on.
class PayloadReader {
 public:
  explicit PayloadReader(const PayloadSpans& payload) noexcept
      : payload_(payload) {}

  std::uint32_t next_crc(std::uint64_t bytes) noexcept {
    std::uint32_t crc = 0;
    while (bytes > 0) {
      CAIRN_CHECK(span_ < payload_.size);
      const MemorySpan& span = payload_.items[span_];
      CAIRN_CHECK(span.kind == MemoryKind::kHost);
      const std::uint64_t step = std::min<std::uint64_t>(bytes, span.bytes - offset_);
      crc = extend_crc32c(crc, span.host().subspan(offset_, step));
      bytes -= step;
      offset_ += step;
      if (offset_ < span.bytes) continue;
      ++span_;
      offset_ = 0;
    }
    return crc;
  }

 private:
  const PayloadSpans& payload_;
  std::size_t span_ = 0;
  std::uint64_t offset_ = 0;
};

}  // namespace

std::optional<PinnedBlock> Store::Impl::pin(const Scope& scope,
                                            const BlockDigest& digest) noexcept {
  if (!epochs_.is_current(scope)) return std::nullopt;
  const std::optional<BlockRef> found = find(query_of(scope, digest));
  if (!found) return std::nullopt;
  Record& record = records_[found->record];
  if (!record.pin_word().pin(found->generation)) return std::nullopt;
  // The pin keeps this life of the record, so its fields stand still from here on.
  return PinnedBlock{*found, record.extents(), record.length()};
}

void Store::Impl::unpin(BlockRef ref) noexcept {
  if (ref.record >= records_.used()) return;
  if (records_[ref.record].pin_word().unpin(ref.generation) != Unpinned::kLastOfDoomed) return;
  const MutexLock lock(mutex_);
  records_[ref.record].pin_word().free_doomed();
  free_locked(ref.record);
}

void Store::Impl::drop_corrupt(const PinnedBlock& block) noexcept {
  const MutexLock lock(mutex_);
  // Once, however many readers find it.
  if (!records_[block.ref.record].pin_word().view().is_live(block.ref.generation)) return;
  drop_locked(block.ref.record);
  ++counted_.corrupt_headers;
}

Status Store::Impl::checksums(const PinnedBlock& block, std::span<std::uint32_t> out) noexcept {
  if (out.size() != chunk_count(block.length)) return Error{ErrorCode::kInvalid, 0, "checksums"};
  const auto page = dram_.header_page(block.extents).first<kHeaderPageBytes>();
  // Copied first, so that what was compared is what the caller gets.
  std::memcpy(out.data(), header_checksum_bytes(page, block.length).data(), out.size_bytes());
  if (checksums_hash_of(out) == records_[block.ref.record].checksums_hash()) return {};
  drop_corrupt(block);
  return Error{ErrorCode::kCorrupt, 0, "checksums"};
}

Result<std::size_t> Store::Impl::attributes(const PinnedBlock& block,
                                            std::span<std::byte> out) noexcept {
  const auto page = dram_.header_page(block.extents).first<kHeaderPageBytes>();
  const std::span<const std::byte> bytes = header_attribute_bytes(page);
  if (bytes.size() > out.size()) return Error{ErrorCode::kTooLarge, 0, "attributes"};
  std::copy(bytes.begin(), bytes.end(), out.begin());
  if (attributes_hash_of(out.first(bytes.size())) == records_[block.ref.record].attributes_hash()) {
    return bytes.size();
  }
  drop_corrupt(block);
  return Error{ErrorCode::kCorrupt, 0, "attributes"};
}

bool Store::Impl::verify(const PinnedBlock& block) noexcept {
  std::array<std::uint32_t, kChunksMax> expected{};
  const std::span<std::uint32_t> chunks = std::span(expected).first(chunk_count(block.length));
  if (!checksums(block, chunks).has_value()) return false;
  const PayloadSpans payload = dram_.payload(block.extents, ByteCount(block.length));
  PayloadReader reader(payload);
  std::uint64_t left = block.length;
  for (const std::uint32_t chunk : chunks) {
    const std::uint64_t bytes = std::min(left, kChunkBytes.value());
    if (reader.next_crc(bytes) != chunk) {
      drop_corrupt(block);
      return false;
    }
    left -= bytes;
  }
  return true;
}

}  // namespace cairn::storage
