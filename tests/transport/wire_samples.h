// A filled message of every type, for golden bytes, round trips and the fuzzer.
#pragma once

#include "base/random.h"
#include "transport/wire/messages.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <list>
#include <span>
#include <string>
#include <vector>

namespace cairn::wire::testing {

// Where the values of a sample come from. Counting: each number is the next run of ascending bytes,
// flags are set, enumerations have their last value and arrays two elements, so that golden bytes
// can be read. Random: anything the rules of the messages allow.
class Fields {
 public:
  static Fields counting() { return Fields(nullptr); }
  // `random` must outlive the fields.
  static Fields random(Random& random) { return Fields(&random); }

  template <typename T>
  T number() {
    return static_cast<T>(raw(sizeof(T)));
  }
  // 0 to `last`; the last when counting.
  std::uint64_t up_to(std::uint64_t last);
  bool flag() { return up_to(1) == 1; }
  template <typename Enum>
  Enum choice(Enum last) {
    return static_cast<Enum>(up_to(static_cast<std::uint64_t>(last)));
  }
  // How many elements: 2 when counting, else 0 to `max` (below 20 when that is more).
  std::size_t items(std::size_t max);
  BlockDigest digest(std::size_t width);
  std::size_t width() { return 1 + static_cast<std::size_t>(up_to(kBlockDigestBytesMax - 1)); }
  std::string text();
  // Lives as long as the fields.
  std::span<const std::byte> bytes(std::size_t count);

 private:
  explicit Fields(Random* random)
      : random_(random) {}
  std::uint64_t raw(std::size_t width);

  Random* random_;
  std::uint8_t next_byte_ = 1;
  std::list<std::vector<std::byte>> bytes_;
};

void fill(Fields& fields, RequestContext& out);
void fill(Fields& fields, ReplyContext& out);
void fill(Fields& fields, Hello& out);
void fill(Fields& fields, HelloReply& out);
void fill(Fields& fields, Join& out);
void fill(Fields& fields, JoinReply& out);
void fill(Fields& fields, Resume& out);
void fill(Fields& fields, ResumeReply& out);
void fill(Fields& fields, Ping& out);
void fill(Fields& fields, Pong& out);
void fill(Fields& fields, SlabNotice& out);
void fill(Fields& fields, NamespaceOpen& out);
void fill(Fields& fields, NamespaceOpenReply& out);
void fill(Fields& fields, Bind& out);
void fill(Fields& fields, BindReply& out);
void fill(Fields& fields, Purge& out);
void fill(Fields& fields, PurgeReply& out);
void fill(Fields& fields, Lookup& out);
void fill(Fields& fields, LookupReply& out);
void fill(Fields& fields, Stat& out);
void fill(Fields& fields, List& out);
void fill(Fields& fields, ListReply& out);
void fill(Fields& fields, Usage& out);
void fill(Fields& fields, Stats& out);
void fill(Fields& fields, JsonReply& out);
void fill(Fields& fields, Retain& out);
void fill(Fields& fields, Prefetch& out);
void fill(Fields& fields, Remove& out);
void fill(Fields& fields, Hint& out);
void fill(Fields& fields, StatusesReply& out);
void fill(Fields& fields, Get& out);
void fill(Fields& fields, GetReply& out);
void fill(Fields& fields, InlineData& out);
void fill(Fields& fields, Reserve& out);
void fill(Fields& fields, ReserveReply& out);
void fill(Fields& fields, Commit& out);
void fill(Fields& fields, CommitReply& out);
void fill(Fields& fields, Abort& out);
void fill(Fields& fields, PutInline& out);
void fill(Fields& fields, Release& out);
void fill(Fields& fields, Cancel& out);

template <typename Message>
bool is_same(const Message& left, const Message& right) {
  return left == right;
}
inline bool is_same(const InlineData& left, const InlineData& right) {
  return left.item == right.item && left.offset == right.offset &&
         std::ranges::equal(left.bytes, right.bytes);
}

// A message struct and a type it travels under; `name` is the golden file's.
template <typename M>
struct MessageCase {
  using Message = M;
  MessageType type{};
  const char* name = "";

  // The finished frame, valid until the writer's next begin().
  std::span<const std::byte> encode(const M& message,
                                    std::uint64_t request_id,
                                    FrameWriter& frame) const {
    if constexpr (std::is_same_v<M, JsonReply> || std::is_same_v<M, StatusesReply>) {
      wire::encode(message, type, request_id, frame);
    } else {
      wire::encode(message, request_id, frame);
    }
    return frame.finish();
  }
};

template <typename Visitor>
void for_each_session_message(Visitor&& visit) {
  visit(MessageCase<Hello>{MessageType::kHello, "hello"});
  visit(MessageCase<HelloReply>{MessageType::kHelloReply, "hello_reply"});
  visit(MessageCase<Join>{MessageType::kJoin, "join"});
  visit(MessageCase<JoinReply>{MessageType::kJoinReply, "join_reply"});
  visit(MessageCase<Resume>{MessageType::kResume, "resume"});
  visit(MessageCase<ResumeReply>{MessageType::kResumeReply, "resume_reply"});
  visit(MessageCase<Ping>{MessageType::kPing, "ping"});
  visit(MessageCase<Pong>{MessageType::kPong, "pong"});
  visit(MessageCase<SlabNotice>{MessageType::kSlab, "slab"});
  visit(MessageCase<NamespaceOpen>{MessageType::kNamespaceOpen, "namespace_open"});
  visit(MessageCase<NamespaceOpenReply>{MessageType::kNamespaceOpenReply, "namespace_open_reply"});
  visit(MessageCase<Bind>{MessageType::kBind, "bind"});
  visit(MessageCase<BindReply>{MessageType::kBindReply, "bind_reply"});
  visit(MessageCase<Purge>{MessageType::kPurge, "purge"});
  visit(MessageCase<PurgeReply>{MessageType::kPurgeReply, "purge_reply"});
}

template <typename Visitor>
void for_each_query_message(Visitor&& visit) {
  visit(MessageCase<Lookup>{MessageType::kLookup, "lookup"});
  visit(MessageCase<LookupReply>{MessageType::kLookupReply, "lookup_reply"});
  visit(MessageCase<Stat>{MessageType::kStat, "stat"});
  visit(MessageCase<JsonReply>{MessageType::kStatReply, "stat_reply"});
  visit(MessageCase<List>{MessageType::kList, "list"});
  visit(MessageCase<ListReply>{MessageType::kListReply, "list_reply"});
  visit(MessageCase<Usage>{MessageType::kUsage, "usage"});
  visit(MessageCase<JsonReply>{MessageType::kUsageReply, "usage_reply"});
  visit(MessageCase<Stats>{MessageType::kStats, "stats"});
  visit(MessageCase<JsonReply>{MessageType::kStatsReply, "stats_reply"});
  visit(MessageCase<Retain>{MessageType::kRetain, "retain"});
  visit(MessageCase<StatusesReply>{MessageType::kRetainReply, "retain_reply"});
  visit(MessageCase<Prefetch>{MessageType::kPrefetch, "prefetch"});
  visit(MessageCase<StatusesReply>{MessageType::kPrefetchReply, "prefetch_reply"});
  visit(MessageCase<Remove>{MessageType::kRemove, "remove"});
  visit(MessageCase<StatusesReply>{MessageType::kRemoveReply, "remove_reply"});
  visit(MessageCase<Hint>{MessageType::kHint, "hint"});
}

template <typename Visitor>
void for_each_block_message(Visitor&& visit) {
  visit(MessageCase<Get>{MessageType::kGet, "get"});
  visit(MessageCase<GetReply>{MessageType::kGetReply, "get_reply"});
  visit(MessageCase<InlineData>{MessageType::kInlineData, "inline_data"});
  visit(MessageCase<Reserve>{MessageType::kReserve, "reserve"});
  visit(MessageCase<ReserveReply>{MessageType::kReserveReply, "reserve_reply"});
  visit(MessageCase<Commit>{MessageType::kCommit, "commit"});
  visit(MessageCase<CommitReply>{MessageType::kCommitReply, "commit_reply"});
  visit(MessageCase<Abort>{MessageType::kAbort, "abort"});
  visit(MessageCase<PutInline>{MessageType::kPutInline, "put_inline"});
  visit(MessageCase<StatusesReply>{MessageType::kPutInlineReply, "put_inline_reply"});
  visit(MessageCase<Release>{MessageType::kRelease, "release"});
  visit(MessageCase<Cancel>{MessageType::kCancel, "cancel"});
}

template <typename Visitor>
void for_each_message(Visitor&& visit) {
  for_each_session_message(visit);
  for_each_query_message(visit);
  for_each_block_message(visit);
}

}  // namespace cairn::wire::testing
