#pragma once
// A copy of a message that shares no list with it, fields that its struct does not name left out. Texts stay views into
// what they were.

#include <vector>

#include "base/arena.h"
#include "wire/onnx.h"

namespace treadle::fuzz {

template <class Message>
Message clone(const Message& from, Arena& arena);

namespace detail {

template <class T>
concept HasFields = requires(T& m) { m.unknown; };

template <class T>
T copy(const T& from, Arena& arena) {
  if constexpr (HasFields<T>) {
    return clone(from, arena);
  } else {
    return from;
  }
}
template <class T>
std::optional<T> copy(const std::optional<T>& from, Arena& arena) {
  return from ? std::optional<T>(copy(*from, arena)) : std::nullopt;
}
template <class T>
T* copy(T* const& from, Arena& arena) {
  return from ? arena.make<T>(copy(*from, arena)) : nullptr;
}
template <class T>
wire::List<T> copy(const wire::List<T>& from, Arena& arena) {
  wire::List<T> to;
  to.reserve(arena, from.size());
  for (const T& element : from) to.add(arena, copy(element, arena));
  return to;
}

}  // namespace detail

template <class Message>
Message clone(const Message& from, Arena& arena) {
  std::vector<const void*> members;  // a message's fields come in the same order each time
  auto collect = [&](uint32_t, std::string_view, const auto& member) { members.push_back(&member); };
  Message::fields(from, collect);
  Message to;
  size_t next = 0;
  auto fill = [&](uint32_t, std::string_view, auto& member) {
    using Member = std::remove_reference_t<decltype(member)>;
    member = detail::copy(*static_cast<const Member*>(members[next++]), arena);
  };
  Message::fields(to, fill);
  return to;
}

}  // namespace treadle::fuzz
