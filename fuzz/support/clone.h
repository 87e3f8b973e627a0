#pragma once
// A copy of a message, fields that its struct does not name left out. Texts stay views into what they were.

#include <vector>

#include "wire/onnx.h"

namespace treadle::fuzz {

template <class Message>
Message clone(const Message& from);

namespace detail {

template <class T>
concept HasFields = requires(T& m) { m.unknown; };

template <class T>
T copy(const T& from) {
  if constexpr (HasFields<T>) {
    return clone(from);
  } else {
    return from;
  }
}
template <class T>
std::optional<T> copy(const std::optional<T>& from) {
  return from ? std::optional<T>(copy(*from)) : std::nullopt;
}
template <class T>
std::unique_ptr<T> copy(const std::unique_ptr<T>& from) {
  return from ? std::make_unique<T>(copy(*from)) : nullptr;
}
template <class T>
std::vector<T> copy(const std::vector<T>& from) {
  std::vector<T> to;
  to.reserve(from.size());
  for (const T& element : from) to.push_back(copy(element));
  return to;
}

}  // namespace detail

template <class Message>
Message clone(const Message& from) {
  std::vector<const void*> members;  // a message's fields come in the same order each time
  auto collect = [&](uint32_t, std::string_view, const auto& member) { members.push_back(&member); };
  Message::fields(from, collect);
  Message to;
  size_t next = 0;
  auto fill = [&](uint32_t, std::string_view, auto& member) {
    using Member = std::remove_reference_t<decltype(member)>;
    member = detail::copy(*static_cast<const Member*>(members[next++]));
  };
  Message::fields(to, fill);
  return to;
}

}  // namespace treadle::fuzz
