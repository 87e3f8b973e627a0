#pragma once
// A deep copy of a message: it shares no list and no nested message with the original. Texts, and the values in `Runs`,
// stay views into the bytes that the original points to.

#include <optional>
#include <type_traits>
#include <vector>

#include "base/arena.h"
#include "wire/onnx.h"

namespace treadle::wire {

template <class T>
concept HasFields = requires(T& m) { m.unknown; };

// The copy's lists and nested messages lie in `arena`.
template <class Message>
Message clone(const Message& from, Arena& arena);

namespace detail {

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
List<T> copy(const List<T>& from, Arena& arena) {
  List<T> to;
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
  from.unknown.for_each([&](std::string_view field) { to.unknown.add(arena, field); });
  return to;
}

}  // namespace treadle::wire
