#include "server/node_core.h"

namespace cairn::server {
namespace {

std::vector<std::unique_ptr<LoopMail>> make_mail(std::span<transport::Poller* const> pollers) {
  std::vector<std::unique_ptr<LoopMail>> mail;
  mail.reserve(pollers.size());
  for (transport::Poller* const poller : pollers)
    mail.push_back(std::make_unique<LoopMail>(*poller));
  return mail;
}

}  // namespace

NodeCore::NodeCore(const NodeOptions& node_options,
                   const NodeParts& node_parts,
                   std::span<transport::Poller* const> pollers)
    : options(node_options),
      parts(node_parts),
      mail(make_mail(pollers)),
      keeper({.store = parts.store,
              .pool = parts.pool,
              .memory = parts.pool_memory,
              .metrics = parts.metrics}),
      registry({.store = parts.store,
                .dram = parts.dram,
                .processes = parts.processes,
                .metrics = parts.metrics,
                .random = parts.random,
                .keeper = &keeper,
                .mail = mail,
                .sessions_max = options.sessions_max}),
      lend_ids(options.boot.counter) {}

ByteCount NodeCore::frame_bytes(const storage::ExtentList& extents) const noexcept {
  std::uint64_t granules = 0;
  for (const storage::Extent& extent : extents.items())
    granules += extent.count;
  return parts.dram->granule() * granules;
}

ByteCount NodeCore::frame_bytes(std::uint32_t length) const noexcept {
  const std::uint64_t bytes = kHeaderBytes.value() + length;
  return ByteCount(round_up(bytes, parts.dram->granule().value()));
}

bool NodeCore::try_lend(LentAccount& account, ByteCount bytes) noexcept {
  if (!account.try_add(bytes, options.lent_max)) return false;
  add(parts.metrics->lent_bytes, bytes.value());
  return true;
}

void NodeCore::unlend(LentAccount& account, ByteCount bytes) noexcept {
  account.sub(bytes);
  parts.metrics->lent_bytes.fetch_sub(bytes.value(), std::memory_order_relaxed);
}

void NodeCore::end_lends(std::span<const Lend> lends, LentAccount& account) noexcept {
  ByteCount bytes;
  for (const Lend& lend : lends) {
    bytes += lend.bytes();
    if (lend.kind == LendKind::kRead) {
      parts.store->unpin(lend.block.ref);
    } else {
      parts.store->abort(lend.block.ref);
    }
  }
  unlend(account, bytes);
}

}  // namespace cairn::server
