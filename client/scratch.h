// Messages of one queue that are used again and again, so that no request takes memory for them.
#pragma once

#include "client/frame_copy.h"
#include "transport/wire/messages.h"

#include <array>
#include <cstddef>
#include <vector>

namespace cairn::client {

struct Scratch {
  wire::Lookup lookup;
  wire::LookupReply lookup_reply;
  wire::Get get;
  wire::GetReply get_reply;
  wire::Reserve reserve;
  wire::ReserveReply reserve_reply;
  wire::Commit commit;
  wire::CommitReply commit_reply;
  wire::PutInline put_inline;
  wire::StatusesReply statuses;
  wire::Release release;
  wire::Abort abort;
  std::vector<FramePieces> pieces;
};

}  // namespace cairn::client
