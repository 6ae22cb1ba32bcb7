// The messages of protocol version 1 as structs, with encode and checked decode: one include for
// all of them. docs/formats.md "Messages" gives every layout byte by byte.
#pragma once

#include "transport/wire/block_messages.h"
#include "transport/wire/query_messages.h"
#include "transport/wire/session_messages.h"
