// A filled message of every type, for golden bytes, round trips and the fuzzer.
#pragma once

#include "base/random.h"
#include "transport/wire/messages.h"

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

}  // namespace cairn::wire::testing
