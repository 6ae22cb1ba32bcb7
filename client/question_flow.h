// The cold requests of the blocking face: one message, one answer, no arrays of keys.
#pragma once

#include "client/flow.h"

#include <variant>

namespace cairn::client {

using Question = std::variant<wire::Ping,
                              wire::NamespaceOpen,
                              wire::Purge,
                              wire::List,
                              wire::Stat,
                              wire::Usage,
                              wire::Stats>;
using AnswerMessage = std::variant<std::monostate,
                                   wire::Pong,
                                   wire::NamespaceOpenReply,
                                   wire::PurgeReply,
                                   wire::ListReply,
                                   wire::JsonReply>;

class QuestionFlow final : public Flow {
 public:
  static constexpr FlowKind kKind = FlowKind::kQuestion;
  QuestionFlow() noexcept
      : Flow(kKind) {}

  // `answer` lives until the ticket is returned. It stays a monostate, with `status` saying why,
  // when there is none.
  struct Target {
    AnswerMessage* answer = nullptr;
    BlockStatus* status = nullptr;
  };
  void start(const Namespace& in, const CallOptions& options, Question question, Target target);
  bool send(QueueCore& core) override;
  Answered receive(QueueCore& core, Exchange& exchange, const wire::FrameView& frame) override;
  void lose(QueueCore& core) override;
  void end(QueueCore& core, BlockStatus status) override;

 private:
  Question question_;
  Target target_;
  bool is_asked_ = false;
};

}  // namespace cairn::client
