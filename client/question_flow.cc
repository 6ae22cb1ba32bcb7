#include "client/question_flow.h"

#include "client/queue_core.h"

#include <utility>

namespace cairn::client {
namespace {

// The numbers of requests and the type of their answers.
template <typename Message>
struct Form;
template <>
struct Form<wire::Ping> {
  static constexpr wire::MessageType kType = wire::MessageType::kPing;
};
template <>
struct Form<wire::NamespaceOpen> {
  static constexpr wire::MessageType kType = wire::MessageType::kNamespaceOpen;
};
template <>
struct Form<wire::Purge> {
  static constexpr wire::MessageType kType = wire::MessageType::kPurge;
};
template <>
struct Form<wire::List> {
  static constexpr wire::MessageType kType = wire::MessageType::kList;
};
template <>
struct Form<wire::Stat> {
  static constexpr wire::MessageType kType = wire::MessageType::kStat;
};
template <>
struct Form<wire::Usage> {
  static constexpr wire::MessageType kType = wire::MessageType::kUsage;
};
template <>
struct Form<wire::Stats> {
  static constexpr wire::MessageType kType = wire::MessageType::kStats;
};

template <typename Reply>
bool take(const wire::FrameView& frame, AnswerMessage& answer, BlockStatus& status) {
  Reply reply;
  if (!wire::decode(frame, reply)) return false;
  status = BlockStatus::kOk;
  if constexpr (requires { reply.context; }) status = reply.context.status;
  answer = std::move(reply);
  return true;
}

bool take_any(const wire::FrameView& frame, AnswerMessage& answer, BlockStatus& status) {
  switch (frame.type) {
    case wire::MessageType::kPong:
      return take<wire::Pong>(frame, answer, status);
    case wire::MessageType::kNamespaceOpenReply:
      return take<wire::NamespaceOpenReply>(frame, answer, status);
    case wire::MessageType::kPurgeReply:
      return take<wire::PurgeReply>(frame, answer, status);
    case wire::MessageType::kListReply:
      return take<wire::ListReply>(frame, answer, status);
    default:
      return take<wire::JsonReply>(frame, answer, status);
  }
}

}  // namespace

void QuestionFlow::start(const Namespace& in,
                         const CallOptions& options,
                         Question question,
                         Target target) {
  name_space = in;
  call = options;
  lookup = {};
  branch.reset();
  question_ = std::move(question);
  target_ = target;
  is_asked_ = false;
  *target_.answer = std::monostate();
  *target_.status = BlockStatus::kTimeout;
}

bool QuestionFlow::send(QueueCore& core) {
  if (is_asked_) return true;
  const auto ask = [&](auto& message) {
    using Message = std::remove_cvref_t<decltype(message)>;
    if constexpr (requires { message.context; }) message.context = core.context_of(*this);
    return core.ask(*this, Form<Message>::kType, message) != nullptr;
  };
  is_asked_ = std::visit(ask, question_);
  return is_asked_;
}

Answered QuestionFlow::receive(QueueCore& core,
                               Exchange& /*exchange*/,
                               const wire::FrameView& frame) {
  if (!take_any(frame, *target_.answer, *target_.status)) return Answered::kBroken;
  core.finish(*this);
  return Answered::kLast;
}

void QuestionFlow::lose(QueueCore& core) {
  if (is_asked_) end(core, BlockStatus::kPeerLost);
}

void QuestionFlow::end(QueueCore& core, BlockStatus status) {
  *target_.answer = std::monostate();
  *target_.status = status;
  core.finish(*this);
}

}  // namespace cairn::client
