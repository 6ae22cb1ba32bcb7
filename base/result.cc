#include "base/result.h"

namespace cairn {

const char* error_code_name(ErrorCode code) noexcept {
  switch (code) {
    case ErrorCode::kInvalid:
      return "invalid";
    case ErrorCode::kNotFound:
      return "not_found";
    case ErrorCode::kExists:
      return "exists";
    case ErrorCode::kBusy:
      return "busy";
    case ErrorCode::kTooLarge:
      return "too_large";
    case ErrorCode::kCorrupt:
      return "corrupt";
    case ErrorCode::kVersion:
      return "version";
    case ErrorCode::kPeerGone:
      return "peer_gone";
    case ErrorCode::kTimeout:
      return "timeout";
    case ErrorCode::kPermission:
      return "permission";
    case ErrorCode::kLocked:
      return "locked";
    case ErrorCode::kUnsupported:
      return "unsupported";
    case ErrorCode::kNoSpace:
      return "no_space";
    case ErrorCode::kIo:
      return "io";
  }
  return "unknown";
}

}  // namespace cairn
