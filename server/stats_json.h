// What people and tools are told in JSON. None of it throws: where memory runs out the text is
// "{}".
#pragma once

#include "server/lends.h"
#include "server/node_core.h"
#include "storage/store.h"

#include <string>

namespace cairn::server {

// {"tier": "dram", "length_bytes": n, "pins": n, "is_retained": b}
std::string stat_json(const storage::BlockInfo& info) noexcept;
// The pool, and what the asking process holds of it.
std::string usage_json(const NodeCore& core, const LentAccount& account) noexcept;
// Everything about the node.
std::string node_stats_json(const NodeCore& core) noexcept;

}  // namespace cairn::server
