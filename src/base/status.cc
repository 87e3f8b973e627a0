#include "base/status.h"

#include <cstdio>
#include <cstdlib>

namespace treadle {

namespace {
const std::string kEmpty;
}

std::string_view code_name(Code code) {
  switch (code) {
    case Code::kOk:
      return "ok";
    case Code::kInvalidArgument:
      return "invalid argument";
    case Code::kInvalidModel:
      return "invalid model";
    case Code::kInvalidFile:
      return "invalid file";
    case Code::kNoSuchFile:
      return "no such file";
    case Code::kNotImplemented:
      return "not implemented";
    case Code::kRuntime:
      return "runtime error";
    case Code::kLimit:
      return "limit reached";
    case Code::kCancelled:
      return "cancelled";
    case Code::kInternal:
      return "internal error";
  }
  return "unknown";
}

const std::string& Status::message() const {
  return rep_ ? rep_->message : kEmpty;
}

const std::string& Status::place() const {
  return rep_ ? rep_->place : kEmpty;
}

std::string Status::to_string() const {
  if (!rep_) return "ok";
  return rep_->place.empty() ? rep_->message : rep_->place + ": " + rep_->message;
}

Status&& Status::in(std::string_view outer) && {
  if (rep_ && !outer.empty()) {
    rep_->place = rep_->place.empty() ? std::string(outer) : std::string(outer) + " " + rep_->place;
  }
  return std::move(*this);
}

Status Status::clone() const {
  Status copy;
  if (rep_) copy.rep_ = std::make_unique<Rep>(*rep_);
  return copy;
}

Status vformat_error(Code code, fmt::string_view format, fmt::format_args args) {
  return Status(code, fmt::vformat(format, args));
}

void assertion_failed(const char* expression, const char* file, int line) {
  std::fprintf(stderr, "treadle: assertion failed: %s (%s:%d)\n", expression, file, line);
  std::abort();
}

}  // namespace treadle
