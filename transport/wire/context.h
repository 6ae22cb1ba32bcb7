// What stands at the front of every request and reply, and what every decode() promises.
//
// encode() begins a frame and appends the whole message; the caller then takes the bytes with
// finish(), after any TLVs of its own. It CAIRN_CHECKs every rule that decode() refuses, so the
// caller bounds what it sends by the limits that stand beside the messages and in frame.h.
//
// decode() gives kCorrupt (a field that cannot be, a body that is short or over-long, a frame of
// another type) or kTooLarge (a count over its limit) and never reads outside the frame; `out` is
// then unspecified. Numbers that name no status, mode or priority are kCorrupt. It reuses the
// vectors and strings of `out`, so a session decodes without allocating, and it takes memory only
// for elements whose bytes are there. All are pure: no I/O, no clock, any thread.
#pragma once

#include "base/block_key.h"
#include "base/block_status.h"
#include "transport/wire/frame.h"

#include <cstdint>

namespace cairn::wire {

enum class Priority : std::uint8_t { kLoad = 0, kPrefetch = 1, kStore = 2 };

// Stands at the front of every request's body but hello, join, resume and ping.
struct RequestContext {
  NamespaceDigest name_space;
  std::uint64_t epoch = 0;
  std::uint64_t trace_id = 0;
  std::uint32_t remaining_ms = 0;  // 0 is refused with kInvalid
  Priority priority = Priority::kLoad;
  friend bool operator==(const RequestContext&, const RequestContext&) noexcept = default;
};

// Stands at the front of every reply's body: how the request as a whole went. With another status
// than kOk the arrays behind it are empty and every key has that status.
struct ReplyContext {
  BlockStatus status = BlockStatus::kOk;
  BusyReason reason = BusyReason::kNone;
  friend bool operator==(const ReplyContext&, const ReplyContext&) noexcept = default;
};

// Texts for people in replies: a longer one is cut by encode().
inline constexpr std::size_t kTextBytesMax = 4'096;

}  // namespace cairn::wire
