#include "transport/wire/block_messages.h"

#include "base/checksum.h"
#include "transport/wire/body_codec.h"

#include <algorithm>
#include <limits>
#include <numeric>

namespace cairn::wire {
namespace {

static_assert(sizeof(WireExtent) == 24);
static_assert(sizeof(Grant) == 32);
static_assert(sizeof(CommitEntry) == 24);

constexpr std::size_t kNumberBytes = sizeof(std::uint32_t);
constexpr std::size_t kReleaseEntryBytes = 9;
constexpr std::size_t kPlacementBytesMax = 12 + 2 * (1 + kBlockDigestBytesMax);
constexpr std::size_t kReserveBytesMax =
    kPlacementBytesMax + 8 + kBatchKeysMax * (kBlockDigestBytesMax + kNumberBytes);
// The longest commit and put_inline: no batch within the limits has to be cut for the frame.
static_assert(kFrameHeaderBytes + 64 + kBatchKeysMax * sizeof(CommitEntry) +
                  kBatchChecksumsMax * kNumberBytes + kBatchAttributeBytesMax + kReserveBytesMax <=
              kMessageBytesMax.value());
static_assert(kFrameHeaderBytes + 64 + kReserveBytesMax + kBatchChecksumsMax * kNumberBytes +
                  kBatchKeysMax * kNumberBytes + kBatchAttributeBytesMax <=
              kMessageBytesMax.value());
static_assert(kFrameHeaderBytes + 16 + kLendsPerMessageMax * kReleaseEntryBytes <=
              kMessageBytesMax.value());

// [first, first + count) lies in an array of `size`, and count is at most `max`.
bool is_run_in(std::uint64_t first,
               std::uint64_t count,
               std::size_t size,
               std::uint64_t max) noexcept {
  return count <= max && first + count <= size;  // both are 32-bit numbers
}

bool is_valid_extent(const WireExtent& extent) noexcept {
  return extent.bytes > 0 &&
         extent.offset <= std::numeric_limits<std::uint64_t>::max() - extent.bytes;
}

// The arrays that a grant points into.
struct GrantArrays {
  std::size_t extents = 0;
  std::size_t checksums = 0;
  std::size_t attribute_bytes = 0;
};

bool is_valid_grant(const Grant& grant, const GrantArrays& arrays) noexcept {
  return is_known_status(grant.status) && is_known_reason(grant.reason) &&
         grant.length <= kBlockBytesMax.value() &&
         is_run_in(grant.extent_first, grant.extent_count, arrays.extents, kExtentsMax) &&
         is_run_in(grant.checksum_first, grant.checksum_count, arrays.checksums, kChunksMax) &&
         is_run_in(grant.attribute_first,
                   grant.attribute_bytes,
                   arrays.attribute_bytes,
                   kAttributeBytesMax);
}

bool are_valid_grants(std::span<const Grant> grants, const GrantArrays& arrays) noexcept {
  return std::ranges::all_of(
      grants, [&arrays](const Grant& grant) { return is_valid_grant(grant, arrays); });
}

template <typename Io, Is<Get> M>
void layout(Io& io, M& m) {
  layout(io, m.context);
  io.choice(m.mode, GetMode::kInline);
  io.flag(m.is_chain);
  io.flag(m.wants_attributes);
  io.zeros(1);
  const std::uint32_t keys_max = m.wants_attributes ? kAttributeKeysMax : kBatchKeysMax;
  const std::size_t keys = io.count(m.digests.size(), keys_max, "get keys");
  io.digests(m.digests, keys);
}

template <typename Io, Is<GetReply> M>
void layout(Io& io, M& m) {
  layout(io, m.context);
  const std::size_t grants = io.count(m.grants.size(), kBatchKeysMax, "grants");
  const std::size_t extents = io.count(m.extents.size(), kBatchExtentsMax, "extents");
  const std::size_t checksums = io.count(m.checksums.size(), kBatchChecksumsMax, "checksums");
  const std::size_t attribute_bytes =
      io.count(m.attributes.size(), kBatchAttributeBytesMax, "attributes");
  io.array(m.grants, grants);
  io.array(m.extents, extents);
  io.array(m.checksums, checksums);
  io.array(m.attributes, attribute_bytes);
  io.require(std::ranges::all_of(m.extents, is_valid_extent), "extent");
  io.require(are_valid_grants(m.grants, {extents, checksums, attribute_bytes}), "grant");
}

template <typename Io, Is<InlineData> M>
void layout(Io& io, M& m) {
  io.number(m.item);
  io.require(m.item < kBatchKeysMax, "inline item");
  io.number(m.offset);
  const std::size_t bytes =
      io.count(m.bytes.size(), static_cast<std::uint32_t>(kInlineBytesMax.value()), "inline bytes");
  io.zeros(4);
  io.require(bytes > 0 && m.offset + std::uint64_t{bytes} <= kBlockBytesMax.value(),
             "inline bytes");
  io.view(m.bytes, bytes);
}

template <typename Io, Is<Placement> M>
void layout(Io& io, M& m) {
  io.flag(m.is_chain);
  io.flag(m.is_durable);
  io.zeros(2);
  io.number(m.position);
  io.number(m.retain_ms);
  io.digest(m.parent);
  io.digest(m.branch);
}

template <typename Io, Is<Reserve> M>
void layout(Io& io, M& m) {
  layout(io, m.context);
  layout(io, m.placement);
  const std::size_t keys = io.count(m.digests.size(), kBatchKeysMax, "reserve keys");
  io.digests(m.digests, keys);
  io.array(m.lengths, keys);
}

template <typename Io, Is<ReserveReply> M>
void layout(Io& io, M& m) {
  layout(io, m.context);
  const std::size_t grants = io.count(m.grants.size(), kBatchKeysMax, "grants");
  const std::size_t extents = io.count(m.extents.size(), kBatchExtentsMax, "extents");
  io.digest(m.branch);
  io.array(m.grants, grants);
  io.array(m.extents, extents);
  io.require(std::ranges::all_of(m.extents, is_valid_extent), "extent");
  io.require(are_valid_grants(m.grants, {.extents = extents}), "grant");
}

template <typename Io, Is<Commit> M>
void layout(Io& io, M& m) {
  layout(io, m.context);
  const std::size_t entries = io.count(m.entries.size(), kBatchKeysMax, "commit entries");
  const std::size_t checksums = io.count(m.checksums.size(), kBatchChecksumsMax, "checksums");
  const std::size_t attribute_bytes =
      io.count(m.attributes.size(), kBatchAttributeBytesMax, "attributes");
  io.array(m.entries, entries);
  io.array(m.checksums, checksums);
  io.array(m.attributes, attribute_bytes);
  const auto is_valid_entry = [&](const CommitEntry& entry) {
    return is_run_in(entry.checksum_first, entry.checksum_count, checksums, kChunksMax) &&
           is_run_in(
               entry.attribute_first, entry.attribute_bytes, attribute_bytes, kAttributeBytesMax);
  };
  io.require(std::ranges::all_of(m.entries, is_valid_entry), "commit entry");
  if (io.present(m.next_placement)) {
    layout(io, *m.next_placement);
    const std::size_t keys = io.count(m.next_digests.size(), kBatchKeysMax, "reserve keys");
    io.digests(m.next_digests, keys);
    io.array(m.next_lengths, keys);
  } else {
    io.none(m.next_digests);
    io.none(m.next_lengths);
  }
}

template <typename Io, Is<CommitReply> M>
void layout(Io& io, M& m) {
  layout(io, m.context);
  const std::size_t statuses = io.count(m.statuses.size(), kBatchKeysMax, "statuses");
  io.array(m.statuses, statuses);
  io.require(std::ranges::all_of(m.statuses, is_known_status), "status");
  if (io.present(m.next)) layout(io, *m.next);
}

template <typename Io, Is<Abort> M>
void layout(Io& io, M& m) {
  const std::size_t lends = io.count(m.lends.size(), kLendsPerMessageMax, "lends");
  io.array(m.lends, lends);
}

template <typename Io, Is<PutInline> M>
void layout(Io& io, M& m) {
  layout(io, m.context);
  layout(io, m.placement);
  const std::size_t keys = io.count(m.digests.size(), kBatchKeysMax, "put keys");
  const std::size_t checksums = io.count(m.checksums.size(), kBatchChecksumsMax, "checksums");
  const std::size_t runs = io.count(m.attribute_bytes.size(), kBatchKeysMax, "attribute runs");
  const std::size_t attribute_bytes =
      io.count(m.attributes.size(), kBatchAttributeBytesMax, "attributes");
  io.digests(m.digests, keys);
  io.array(m.lengths, keys);
  io.array(m.checksums, checksums);
  io.array(m.attribute_bytes, runs);
  io.array(m.attributes, attribute_bytes);
  const auto add_chunks = [](std::uint64_t sum, std::uint32_t length) {
    return sum + chunk_count(length);
  };
  io.require(std::accumulate(m.lengths.begin(), m.lengths.end(), std::uint64_t{0}, add_chunks) ==
                 m.checksums.size(),
             "checksums of lengths");
  io.require(runs == 0 || runs == keys, "attribute runs");
  io.require(std::ranges::all_of(m.attribute_bytes,
                                 [](std::uint32_t bytes) { return bytes <= kAttributeBytesMax; }),
             "attribute bytes");
  io.require(
      std::accumulate(m.attribute_bytes.begin(), m.attribute_bytes.end(), std::uint64_t{0}) ==
          m.attributes.size(),
      "attribute bytes");
}

template <typename Io, Is<Release> M>
void layout(Io& io, M& m) {
  const std::size_t entries = io.count(m.entries.size(), kLendsPerMessageMax, "lends");
  io.resize(m.entries, entries, kReleaseEntryBytes);
  for (auto& entry : m.entries) {
    io.number(entry.lend);
    io.flag(entry.found_corrupt);
  }
}

template <typename Io, Is<Cancel> M>
void layout(Io& io, M& m) {
  io.number(m.request_id);
}

}  // namespace

CAIRN_WIRE_CODEC(Get, MessageType::kGet);
CAIRN_WIRE_CODEC(GetReply, MessageType::kGetReply);
CAIRN_WIRE_CODEC(InlineData, MessageType::kInlineData);
CAIRN_WIRE_CODEC(Reserve, MessageType::kReserve);
CAIRN_WIRE_CODEC(ReserveReply, MessageType::kReserveReply);
CAIRN_WIRE_CODEC(Commit, MessageType::kCommit);
CAIRN_WIRE_CODEC(CommitReply, MessageType::kCommitReply);
CAIRN_WIRE_CODEC(Abort, MessageType::kAbort);
CAIRN_WIRE_CODEC(PutInline, MessageType::kPutInline);
CAIRN_WIRE_CODEC(Release, MessageType::kRelease);
CAIRN_WIRE_CODEC(Cancel, MessageType::kCancel);

}  // namespace cairn::wire
