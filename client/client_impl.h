// What stands behind Client: the session and one queue, used by one call at a time.
#pragma once

#include "client/client.h"
#include "client/queue_core.h"
#include "client/requests.h"
#include "client/turn.h"

#include <memory>
#include <span>
#include <utility>

namespace cairn::client {

class Client::Impl {
 public:
  explicit Impl(std::shared_ptr<Session> with)
      : session(std::move(with)),
        core(std::make_unique<QueueCore>(session)),
        gate(session->world().clock()) {}
  ~Impl();
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  // Submits, waits until the request has ended and the caller's memory is free again. kTimeout:
  // other calls took the time; nothing was begun.
  template <typename Request>
  Result<Completion> call(const CallOptions& options, Request&& request);
  // Asks one cold question.
  template <typename Reply>
  BlockStatus ask(const Namespace& name_space, Question question, Reply& reply);
  // As call(), with what call() could not begin as a status of each key.
  template <typename Request>
  Result<Completion> call_keys(const CallOptions& options,
                               Request&& request,
                               std::span<KeyResult> results);
  // Waits until `queue` has a session. Errors: kPeerGone, kTimeout and what the hello gave.
  static Status settle(QueueCore& queue, Deadline deadline);

  void give_back(const GivenBack& back);
  // Unless a call is under way, which sends them itself.
  void send_returns();

  std::shared_ptr<Session> session;
  std::unique_ptr<QueueCore> core;
  TurnGate gate;

 private:
  Completion wait_for(Ticket ticket);
};

template <typename Request>
Result<Completion> Client::Impl::call(const CallOptions& options, Request&& request) {
  if (core->is_child()) return Error{ErrorCode::kInvalid, 0, "a handle of the parent process"};
  const Deadline deadline = core->deadline_of(options);
  const Turn turn(gate, deadline);
  if (!turn.is_in()) return Error{ErrorCode::kTimeout, 0, "other calls"};
  CAIRN_TRY(const Ticket ticket, submit(*core, std::forward<Request>(request), deadline));
  return wait_for(ticket);
}

template <typename Request>
Result<Completion> Client::Impl::call_keys(const CallOptions& options,
                                           Request&& request,
                                           std::span<KeyResult> results) {
  auto completion = call(options, std::forward<Request>(request));
  if (completion || completion.error().code != ErrorCode::kTimeout) return completion;
  for (KeyResult& result : results)
    result = {.status = BlockStatus::kTimeout};
  return Completion{};
}

template <typename Reply>
BlockStatus Client::Impl::ask(const Namespace& name_space, Question question, Reply& reply) {
  AnswerMessage answer;
  BlockStatus status = BlockStatus::kTimeout;
  const auto done = call({},
                         QuestionCall{.name_space = name_space,
                                      .call = {},
                                      .question = std::move(question),
                                      .target = {.answer = &answer, .status = &status}});
  if (!done) {
    return done.error().code == ErrorCode::kTimeout ? BlockStatus::kTimeout : BlockStatus::kInvalid;
  }
  auto* const got = std::get_if<Reply>(&answer);
  if (got != nullptr) reply = std::move(*got);
  return status;
}

}  // namespace cairn::client
