// From requests to flows: the checks that Queue::submit promises, and which family serves what.
#pragma once

#include "base/result.h"
#include "client/question_flow.h"
#include "client/queue.h"
#include "client/queue_core.h"

namespace cairn::client {

struct KeysCall {
  const KeysRequest& request;
  wire::MessageType type{};
  Milliseconds duration{0};
};
struct QuestionCall {
  Namespace name_space;
  CallOptions call;
  Question question;
  QuestionFlow::Target target;
};

// Each: errors as Queue::submit.
Result<Ticket> submit(QueueCore& core, const LookupRequest& request, Deadline deadline);
Result<Ticket> submit(QueueCore& core, const GetRequest& request, Deadline deadline);
Result<Ticket> submit(QueueCore& core, const GetViewsRequest& request, Deadline deadline);
Result<Ticket> submit(QueueCore& core, const PutRequest& request, Deadline deadline);
Result<Ticket> submit(QueueCore& core, const ReserveRequest& request, Deadline deadline);
Result<Ticket> submit(QueueCore& core, const CommitRequest& request, Deadline deadline);
Result<Ticket> submit(QueueCore& core, const KeysCall& call, Deadline deadline);
Result<Ticket> submit(QueueCore& core, QuestionCall call, Deadline deadline);

}  // namespace cairn::client
