#include "tests/transport/wire_samples.h"

#include "base/checksum.h"

#include <optional>

namespace cairn::wire::testing {
namespace {

constexpr std::size_t kItemsMax = 20;

template <std::size_t kBytes>
void fill(Fields& fields, std::array<std::byte, kBytes>& out) {
  for (std::byte& byte : out)
    byte = fields.number<std::byte>();
}

void fill(Fields& fields, std::vector<BlockDigest>& out, std::size_t count) {
  const std::size_t width = fields.width();
  out.clear();
  for (std::size_t i = 0; i < count; ++i)
    out.push_back(fields.digest(width));
}

template <typename T>
void fill_numbers(Fields& fields, std::vector<T>& out, std::size_t count) {
  out.clear();
  for (std::size_t i = 0; i < count; ++i)
    out.push_back(fields.number<T>());
}

// Of blocks that fit the limits.
void fill_lengths(Fields& fields, std::vector<std::uint32_t>& out, std::size_t count) {
  out.clear();
  for (std::size_t i = 0; i < count; ++i) {
    out.push_back(fields.number<std::uint32_t>() % (1U << 20U));
  }
}

void fill(Fields& fields, std::optional<BlockDigest>& out) {
  out.reset();
  if (fields.flag()) out = fields.digest(fields.width());
}

void fill(Fields& fields, Placement& out) {
  out.is_chain = fields.flag();
  out.is_durable = fields.flag();
  out.position = fields.number<std::uint32_t>();
  out.retain_ms = fields.number<std::uint32_t>();
  fill(fields, out.parent);
  fill(fields, out.branch);
}

void fill(Fields& fields, std::vector<WireExtent>& out, std::size_t count) {
  out.clear();
  for (std::size_t i = 0; i < count; ++i) {
    out.push_back({.slab = fields.number<std::uint32_t>(),
                   .generation = fields.number<std::uint32_t>(),
                   .offset = fields.number<std::uint64_t>() >> 1U,
                   .bytes = 1 + (fields.number<std::uint64_t>() >> 2U)});
  }
}

BlockStatus status(Fields& fields) {
  return fields.choice(BlockStatus::kInvalid);
}

// [first, first + count) of an array of `size`, `count` at most `max`.
struct Run {
  std::uint32_t first = 0;
  std::uint32_t count = 0;
};
Run run_in(Fields& fields, std::size_t size, std::uint64_t max) {
  const std::uint64_t count = fields.up_to(std::min<std::uint64_t>(size, max));
  const std::uint64_t first = fields.up_to(size - count);
  return {.first = static_cast<std::uint32_t>(first), .count = static_cast<std::uint32_t>(count)};
}

struct Arrays {
  std::size_t extents = 0;
  std::size_t checksums = 0;
  std::size_t attribute_bytes = 0;
};
void fill(Fields& fields, std::vector<Grant>& out, const Arrays& arrays) {
  const std::size_t count = fields.items(kBatchKeysMax);
  out.clear();
  for (std::size_t i = 0; i < count; ++i) {
    const Run extents = run_in(fields, arrays.extents, kExtentsMax);
    const Run checksums = run_in(fields, arrays.checksums, kChunksMax);
    const Run attributes = run_in(fields, arrays.attribute_bytes, kAttributeBytesMax);
    out.push_back({.status = status(fields),
                   .reason = fields.choice(BusyReason::kRate),
                   .extent_count = static_cast<std::uint8_t>(extents.count),
                   .checksum_count = static_cast<std::uint8_t>(checksums.count),
                   .length = fields.number<std::uint32_t>() % (1U << 24U),
                   .lend = fields.number<std::uint64_t>(),
                   .extent_first = extents.first,
                   .checksum_first = checksums.first,
                   .attribute_first = attributes.first,
                   .attribute_bytes = attributes.count});
  }
}

}  // namespace

std::uint64_t Fields::raw(std::size_t width) {
  if (random_ != nullptr) return random_->next_u64();
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < width; ++i)
    value |= std::uint64_t{next_byte_++} << (8 * i);
  return value;
}

std::uint64_t Fields::up_to(std::uint64_t last) {
  return random_ == nullptr ? last : random_->below(last + 1);
}

std::size_t Fields::items(std::size_t max) {
  constexpr std::size_t kCounted = 2;
  return random_ == nullptr ? kCounted : random_->below(std::min(max, kItemsMax) + 1);
}

BlockDigest Fields::digest(std::size_t width) {
  return BlockDigest::from(bytes(width)).value_or(BlockDigest{});
}

std::string Fields::text() {
  if (random_ == nullptr) return "text";
  std::string text(random_->below(40), ' ');
  for (char& c : text)
    c = static_cast<char>('a' + random_->below(26));
  return text;
}

std::span<const std::byte> Fields::bytes(std::size_t count) {
  auto& bytes = bytes_.emplace_back(count);
  for (std::byte& byte : bytes)
    byte = number<std::byte>();
  return bytes;
}

void fill(Fields& fields, RequestContext& out) {
  fill(fields, out.name_space.bytes);
  out.epoch = fields.number<std::uint64_t>();
  out.trace_id = fields.number<std::uint64_t>();
  out.remaining_ms = fields.number<std::uint32_t>();
  out.priority = fields.choice(Priority::kStore);
}

void fill(Fields& fields, ReplyContext& out) {
  out.status = status(fields);
  out.reason = fields.choice(BusyReason::kRate);
}

void fill(Fields& fields, Hello& out) {
  out.version_min = fields.number<std::uint16_t>();
  out.version_max = std::max(out.version_min, fields.number<std::uint16_t>());
  out.features = fields.number<std::uint64_t>();
  out.pid = fields.number<std::uint32_t>();
  out.numa_node = fields.number<std::int32_t>();
  out.gpu = fields.number<std::int32_t>();
  out.wants_mapping = fields.flag();
  out.client_name = fields.text();
  out.token = fields.text();
}

void fill(Fields& fields, HelloReply& out) {
  fill(fields, out.context);
  out.version = fields.number<std::uint16_t>();
  out.features = fields.number<std::uint64_t>();
  out.session = fields.number<std::uint64_t>();
  fill(fields, out.secret.bytes);
  out.boot = {.counter = fields.number<std::uint64_t>(),
              .incarnation = fields.number<std::uint64_t>()};
  out.limits = {.message_bytes = fields.number<std::uint32_t>(),
                .lookup_keys = fields.number<std::uint32_t>(),
                .batch_keys = fields.number<std::uint32_t>(),
                .requests_in_flight = fields.number<std::uint32_t>(),
                .namespaces = fields.number<std::uint32_t>(),
                .inline_bytes = fields.number<std::uint32_t>(),
                .block_bytes = fields.number<std::uint64_t>(),
                .session_lends = fields.number<std::uint32_t>()};
  out.pool_bytes = fields.number<std::uint64_t>();
  out.is_mapping_allowed = fields.flag();
  out.allow_weak_keys = fields.flag();
  out.message = fields.text();
}

void fill(Fields& fields, Join& out) {
  out.session = fields.number<std::uint64_t>();
  fill(fields, out.secret.bytes);
}

void fill(Fields& fields, JoinReply& out) {
  fill(fields, out.context);
}

void fill(Fields& fields, Resume& out) {
  out.session = fields.number<std::uint64_t>();
  fill(fields, out.secret.bytes);
  out.held.resize(fields.items(kSessionLendsMax));
  for (HeldLend& held : out.held) {
    held = {.slab = fields.number<std::uint32_t>(),
            .slab_generation = fields.number<std::uint32_t>(),
            .offset = fields.number<std::uint64_t>(),
            .lend = fields.number<std::uint64_t>()};
  }
}

void fill(Fields& fields, ResumeReply& out) {
  fill(fields, out.context);
  out.kept.resize(fields.items(kSessionLendsMax));
  for (std::uint8_t& kept : out.kept)
    kept = fields.flag() ? 1 : 0;
}

void fill(Fields& /*fields*/, Ping& /*out*/) {}

void fill(Fields& /*fields*/, Pong& /*out*/) {}

void fill(Fields& fields, SlabNotice& out) {
  out.slab = fields.number<std::uint32_t>();
  out.generation = fields.number<std::uint32_t>();
  out.bytes = fields.number<std::uint64_t>();
  out.page_kind = static_cast<std::uint8_t>(fields.up_to(2));
}

void fill(Fields& fields, NamespaceOpen& out) {
  fill(fields, out.context);
  out.fingerprint = "{\"model\":\"" + fields.text() + "\"}";
}

void fill(Fields& fields, NamespaceOpenReply& out) {
  fill(fields, out.context);
  fill(fields, out.digest.bytes);
  out.epoch = fields.number<std::uint64_t>();
  out.message = fields.text();
}

void fill(Fields& fields, Bind& out) {
  fill(fields, out.context);
}

void fill(Fields& fields, BindReply& out) {
  fill(fields, out.context);
}

void fill(Fields& fields, Purge& out) {
  fill(fields, out.context);
}

void fill(Fields& fields, PurgeReply& out) {
  fill(fields, out.context);
  out.epoch = fields.number<std::uint64_t>();
  out.is_complete = fields.flag();
}

void fill(Fields& fields, Lookup& out) {
  fill(fields, out.context);
  out.kind = fields.choice(LookupKind::kSet);
  out.hold_ms = fields.number<std::uint32_t>();
  out.gang.resize(fields.items(kGangMax));
  for (NamespaceRef& member : out.gang) {
    fill(fields, member.digest.bytes);
    member.epoch = fields.number<std::uint64_t>();
  }
  fill(fields, out.digests, fields.items(kLookupKeysMax));
}

void fill(Fields& fields, LookupReply& out) {
  fill(fields, out.context);
  out.run = fields.number<std::uint32_t>() % kLookupKeysMax;
  out.load_us = fields.number<std::uint32_t>();
  fill_numbers(fields, out.tiers, fields.items(kLookupKeysMax));
}

void fill(Fields& fields, Stat& out) {
  fill(fields, out.context);
  out.digest = fields.digest(fields.width());
}

void fill(Fields& fields, List& out) {
  fill(fields, out.context);
  out.cursor = fields.number<std::uint64_t>();
  out.limit = fields.number<std::uint32_t>();
}

void fill(Fields& fields, ListReply& out) {
  fill(fields, out.context);
  out.next_cursor = fields.number<std::uint64_t>();
  out.digests.resize(fields.items(kListKeysMax));
  for (BlockDigest& digest : out.digests)
    digest = fields.digest(fields.width());
}

void fill(Fields& fields, Usage& out) {
  fill(fields, out.context);
}

void fill(Fields& fields, Stats& out) {
  fill(fields, out.context);
}

void fill(Fields& fields, JsonReply& out) {
  fill(fields, out.context);
  out.json = "{\"key\":\"" + fields.text() + "\"}";
}

void fill(Fields& fields, Retain& out) {
  fill(fields, out.context);
  out.duration_ms = fields.number<std::uint32_t>();
  fill(fields, out.digests, fields.items(kBatchKeysMax));
}

void fill(Fields& fields, Prefetch& out) {
  fill(fields, out.context);
  fill(fields, out.digests, fields.items(kBatchKeysMax));
}

void fill(Fields& fields, Remove& out) {
  fill(fields, out.context);
  fill(fields, out.digests, fields.items(kBatchKeysMax));
}

void fill(Fields& fields, Hint& out) {
  fill(fields, out.context);
  out.kind = fields.choice(HintKind::kReturnsIn);
  out.returns_in_ms = fields.number<std::uint32_t>();
  fill(fields, out.digests, fields.items(kBatchKeysMax));
}

void fill(Fields& fields, StatusesReply& out) {
  fill(fields, out.context);
  out.statuses.resize(fields.items(kBatchKeysMax));
  out.reasons.resize(out.statuses.size());
  for (BlockStatus& each : out.statuses)
    each = status(fields);
  for (BusyReason& each : out.reasons)
    each = fields.choice(BusyReason::kRate);
}

void fill(Fields& fields, Get& out) {
  fill(fields, out.context);
  out.mode = fields.choice(GetMode::kInline);
  out.is_chain = fields.flag();
  out.wants_attributes = fields.flag();
  fill(fields, out.digests, fields.items(kAttributeKeysMax));
}

void fill(Fields& fields, GetReply& out) {
  fill(fields, out.context);
  fill(fields, out.extents, fields.items(kBatchExtentsMax));
  fill_numbers(fields, out.checksums, fields.items(kBatchChecksumsMax));
  fill_numbers(fields, out.attributes, fields.items(kBatchAttributeBytesMax));
  fill(fields,
       out.grants,
       {.extents = out.extents.size(),
        .checksums = out.checksums.size(),
        .attribute_bytes = out.attributes.size()});
}

void fill(Fields& fields, InlineData& out) {
  out.item = fields.number<std::uint32_t>() % kBatchKeysMax;
  out.offset = fields.number<std::uint32_t>() % (1U << 23U);
  out.bytes = fields.bytes(1 + fields.items(kInlineBytesMax.value() - 1));
}

void fill(Fields& fields, Reserve& out) {
  fill(fields, out.context);
  fill(fields, out.placement);
  fill(fields, out.digests, fields.items(kBatchKeysMax));
  fill_numbers(fields, out.lengths, out.digests.size());
}

void fill(Fields& fields, ReserveReply& out) {
  fill(fields, out.context);
  fill(fields, out.branch);
  fill(fields, out.extents, fields.items(kBatchExtentsMax));
  fill(fields, out.grants, {.extents = out.extents.size()});
}

void fill(Fields& fields, Commit& out) {
  fill(fields, out.context);
  fill_numbers(fields, out.checksums, fields.items(kBatchChecksumsMax));
  fill_numbers(fields, out.attributes, fields.items(kBatchAttributeBytesMax));
  out.entries.resize(fields.items(kBatchKeysMax));
  for (CommitEntry& entry : out.entries) {
    const Run checksums = run_in(fields, out.checksums.size(), kChunksMax);
    const Run attributes = run_in(fields, out.attributes.size(), kAttributeBytesMax);
    entry = {.lend = fields.number<std::uint64_t>(),
             .checksum_first = checksums.first,
             .checksum_count = checksums.count,
             .attribute_first = attributes.first,
             .attribute_bytes = attributes.count};
  }
  out.next_placement.reset();
  out.next_digests.clear();
  out.next_lengths.clear();
  if (!fields.flag()) return;
  fill(fields, out.next_placement.emplace());
  fill(fields, out.next_digests, fields.items(kBatchKeysMax));
  fill_numbers(fields, out.next_lengths, out.next_digests.size());
}

void fill(Fields& fields, CommitReply& out) {
  fill(fields, out.context);
  out.statuses.resize(fields.items(kBatchKeysMax));
  for (BlockStatus& each : out.statuses)
    each = status(fields);
  out.next.reset();
  if (fields.flag()) fill(fields, out.next.emplace());
}

void fill(Fields& fields, Abort& out) {
  fill_numbers(fields, out.lends, fields.items(kLendsPerMessageMax));
}

void fill(Fields& fields, PutInline& out) {
  fill(fields, out.context);
  fill(fields, out.placement);
  fill(fields, out.digests, fields.items(kBatchKeysMax));
  fill_lengths(fields, out.lengths, out.digests.size());
  std::size_t chunks = 0;
  for (const std::uint32_t length : out.lengths)
    chunks += chunk_count(length);
  fill_numbers(fields, out.checksums, chunks);
  out.attribute_bytes.clear();
  std::size_t attributes = 0;
  if (fields.flag()) {
    for (std::size_t i = 0; i < out.digests.size(); ++i) {
      out.attribute_bytes.push_back(static_cast<std::uint32_t>(fields.up_to(3)));
      attributes += out.attribute_bytes.back();
    }
  }
  fill_numbers(fields, out.attributes, attributes);
}

void fill(Fields& fields, Release& out) {
  out.entries.resize(fields.items(kLendsPerMessageMax));
  for (ReleaseEntry& entry : out.entries) {
    entry = {.lend = fields.number<std::uint64_t>(), .found_corrupt = fields.flag()};
  }
}

void fill(Fields& fields, Cancel& out) {
  out.request_id = fields.number<std::uint64_t>();
}

}  // namespace cairn::wire::testing
