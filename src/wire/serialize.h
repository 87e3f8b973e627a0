#pragma once
// Messages -> bytes, fields in order of their numbers, then unknown ones; what is absent is left out.

#include <span>
#include <string>

#include "wire/parse.h"

namespace treadle::wire {

// Fields whose numbers are in `left_out` are not written; this holds for the message itself, not for those in it.
// Error: kLimit above 2 GiB - 1, what a protobuf reader accepts at most.
template <class Message>
Result<std::string> serialize(const Message& message, std::span<const uint32_t> left_out = {});

template <class Message>
Result<std::string> serialize(const Parsed<Message>& message, std::span<const uint32_t> left_out = {}) {
  return serialize(*message, left_out);
}

}  // namespace treadle::wire
