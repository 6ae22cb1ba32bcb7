#include "tests/transport/wire_cases.h"

#include "tests/transport/wire_samples.h"

#include <algorithm>
#include <array>
#include <type_traits>

namespace cairn::wire::testing {
namespace {

template <typename M>
bool is_same(const M& left, const M& right) {
  return left == right;
}
bool is_same(const InlineData& left, const InlineData& right) {
  return left.item == right.item && left.offset == right.offset &&
         std::ranges::equal(left.bytes, right.bytes);
}

template <typename M>
std::span<const std::byte> encode_as(MessageType type,
                                     const M& message,
                                     std::uint64_t request_id,
                                     FrameWriter& frame) {
  if constexpr (std::is_same_v<M, JsonReply> || std::is_same_v<M, StatusesReply>) {
    encode(message, type, request_id, frame);
  } else {
    encode(message, request_id, frame);
  }
  return frame.finish();
}

template <typename M, MessageType kType>
struct Case {
  static std::vector<std::byte> sample_frame(std::uint64_t request_id) {
    auto fields = Fields::counting();
    M message;
    fill(fields, message);
    FrameWriter writer;
    const auto frame = encode_as(kType, message, request_id, writer);
    return {frame.begin(), frame.end()};
  }

  static Result<bool> is_sample(const FrameView& frame) {
    auto fields = Fields::counting();
    M message;
    fill(fields, message);
    M decoded;
    CAIRN_TRY_STATUS(decode(frame, decoded));
    return is_same(decoded, message);
  }

  static Result<std::string> difference_when_encoded_again(const FrameView& frame) {
    M message;
    CAIRN_TRY_STATUS(decode(frame, message));
    FrameWriter writer;
    return difference_of(message, frame, encode_as(kType, message, frame.request_id, writer));
  }

  static std::string difference_in_round_trips(Random& random, int rounds) {
    M decoded;
    FrameWriter writer;
    for (int round = 0; round < rounds; ++round) {
      auto fields = Fields::random(random);
      M message;
      fill(fields, message);
      const std::uint64_t id = random.next_u64();
      const auto view = decode_frame(encode_as(kType, message, id, writer));
      if (!view) return view.error().what;
      const Status status = decode(*view, decoded);
      if (!status) return status.error().what;
      if (view->type != kType || view->request_id != id) return "type or request id";
      if (!is_same(decoded, message)) return "message of round " + std::to_string(round);
    }
    return {};
  }

  static std::string difference_of(const M& message,
                                   const FrameView& frame,
                                   std::span<const std::byte> again) {
    const auto view = decode_frame(again);
    if (!view) return view.error().what;
    M decoded;
    const Status status = decode(*view, decoded);
    if (!status) return status.error().what;
    if (!is_same(decoded, message)) return "message";
    if (!std::ranges::equal(view->body, frame.body)) return "body";
    if (view->request_id != frame.request_id) return "request id";
    return {};
  }
};

template <typename M, MessageType kType>
constexpr MessageCase make_case(const char* name) {
  using Of = Case<M, kType>;
  return {.type = kType,
          .name = name,
          .sample_frame = &Of::sample_frame,
          .is_sample = &Of::is_sample,
          .difference_when_encoded_again = &Of::difference_when_encoded_again,
          .difference_in_round_trips = &Of::difference_in_round_trips};
}

constexpr std::array kCases = {
    make_case<Hello, MessageType::kHello>("hello"),
    make_case<HelloReply, MessageType::kHelloReply>("hello_reply"),
    make_case<Join, MessageType::kJoin>("join"),
    make_case<JoinReply, MessageType::kJoinReply>("join_reply"),
    make_case<Resume, MessageType::kResume>("resume"),
    make_case<ResumeReply, MessageType::kResumeReply>("resume_reply"),
    make_case<Ping, MessageType::kPing>("ping"),
    make_case<Pong, MessageType::kPong>("pong"),
    make_case<SlabNotice, MessageType::kSlab>("slab"),
    make_case<NamespaceOpen, MessageType::kNamespaceOpen>("namespace_open"),
    make_case<NamespaceOpenReply, MessageType::kNamespaceOpenReply>("namespace_open_reply"),
    make_case<Bind, MessageType::kBind>("bind"),
    make_case<BindReply, MessageType::kBindReply>("bind_reply"),
    make_case<Purge, MessageType::kPurge>("purge"),
    make_case<PurgeReply, MessageType::kPurgeReply>("purge_reply"),
    make_case<Lookup, MessageType::kLookup>("lookup"),
    make_case<LookupReply, MessageType::kLookupReply>("lookup_reply"),
    make_case<Stat, MessageType::kStat>("stat"),
    make_case<JsonReply, MessageType::kStatReply>("stat_reply"),
    make_case<List, MessageType::kList>("list"),
    make_case<ListReply, MessageType::kListReply>("list_reply"),
    make_case<Usage, MessageType::kUsage>("usage"),
    make_case<JsonReply, MessageType::kUsageReply>("usage_reply"),
    make_case<Stats, MessageType::kStats>("stats"),
    make_case<JsonReply, MessageType::kStatsReply>("stats_reply"),
    make_case<Retain, MessageType::kRetain>("retain"),
    make_case<StatusesReply, MessageType::kRetainReply>("retain_reply"),
    make_case<Prefetch, MessageType::kPrefetch>("prefetch"),
    make_case<StatusesReply, MessageType::kPrefetchReply>("prefetch_reply"),
    make_case<Remove, MessageType::kRemove>("remove"),
    make_case<StatusesReply, MessageType::kRemoveReply>("remove_reply"),
    make_case<Hint, MessageType::kHint>("hint"),
    make_case<Get, MessageType::kGet>("get"),
    make_case<GetReply, MessageType::kGetReply>("get_reply"),
    make_case<InlineData, MessageType::kInlineData>("inline_data"),
    make_case<Reserve, MessageType::kReserve>("reserve"),
    make_case<ReserveReply, MessageType::kReserveReply>("reserve_reply"),
    make_case<Commit, MessageType::kCommit>("commit"),
    make_case<CommitReply, MessageType::kCommitReply>("commit_reply"),
    make_case<Abort, MessageType::kAbort>("abort"),
    make_case<PutInline, MessageType::kPutInline>("put_inline"),
    make_case<StatusesReply, MessageType::kPutInlineReply>("put_inline_reply"),
    make_case<Release, MessageType::kRelease>("release"),
    make_case<Cancel, MessageType::kCancel>("cancel")};

}  // namespace

std::span<const MessageCase> all_messages() {
  return kCases;
}

}  // namespace cairn::wire::testing
