#pragma once
// Messages -> bytes: fields in order of their numbers, then unknown fields. Absent fields are left out.

#include <span>
#include <string>

#include "wire/parse.h"

namespace treadle::wire {

// Fields of the message itself whose numbers are in `left_out` are not written; nested messages are complete. Errors:
// kLimit above 2 GiB - 1, the most that readers of protobuf accept.
template <class Message>
Result<std::string> serialize(const Message& message, std::span<const uint32_t> left_out = {});

template <class Message>
Result<std::string> serialize(const Parsed<Message>& message, std::span<const uint32_t> left_out = {}) {
  return serialize(*message, left_out);
}

}  // namespace treadle::wire
