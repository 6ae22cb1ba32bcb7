// A loop's reused memory: messages are decoded into and encoded from these, so that answering
// allocates nothing once vectors have grown to the batches in use.
#pragma once

#include "server/lends.h"
#include "storage/store.h"
#include "transport/wire/messages.h"

#include <cstdint>
#include <vector>

namespace cairn::server {

// One loop's.
struct Scratch {
  wire::FrameWriter writer;

  wire::Lookup lookup;
  wire::LookupReply lookup_reply;
  wire::Get get;
  wire::GetReply get_reply;
  wire::Reserve reserve;
  wire::ReserveReply reserve_reply;
  wire::Commit commit;
  wire::CommitReply commit_reply;
  wire::Abort abort;
  wire::Release release;
  wire::PutInline put_inline;
  wire::InlineData inline_data;
  wire::Retain retain;
  wire::Prefetch prefetch;
  wire::Remove remove;
  wire::Hint hint;
  wire::StatusesReply statuses_reply;
  wire::Resume resume;
  wire::ResumeReply resume_reply;

  std::vector<storage::LookupHit> hits;
  std::vector<storage::LookupHit> gang_hits;
  std::vector<storage::Scope> scopes;
  std::vector<storage::ReserveItem> reserve_items;
  std::vector<storage::ReserveOutcome> reserve_outcomes;
  std::vector<storage::CommitItem> commit_items;
  std::vector<BlockStatus> commit_statuses;
  std::vector<std::size_t> commit_places;
  std::vector<storage::BlockRef> refs;
  std::vector<LendId> lend_ids;
  std::vector<Lend> lends;
  std::vector<Lend> undone;
};

}  // namespace cairn::server
