#pragma once
// Changes of lists in the middle.

#include "wire/list.h"

namespace treadle::reduce {

// Removes the elements for which drop(element) is true. `drop` is called for each in turn,
// and finds it at its old place.
template <class T, class Drop>
void erase_if(wire::List<T>& list, Drop&& drop) {
  size_t kept = 0;
  for (size_t i = 0; i < list.size(); ++i) {
    if (drop(list[i])) continue;
    if (kept != i) list[kept] = list[i];
    ++kept;
  }
  list.truncate(kept);
}

// Removes elements [first, last), as far as the list has them.
template <class T>
void erase_range(wire::List<T>& list, size_t first, size_t last) {
  size_t index = 0;
  erase_if(list, [&](const T&) {
    const size_t i = index++;
    return i >= first && i < last;
  });
}
template <class T>
void erase_at(wire::List<T>& list, size_t index) {
  erase_range(list, index, index + 1);
}

template <class T, class Source>
void insert_at(wire::List<T>& list, size_t index, const Source& elements, Arena& arena) {
  wire::List<T> longer;
  longer.reserve(arena, list.size() + elements.size());
  for (size_t i = 0; i < index; ++i) longer.add(arena, list[i]);
  for (const T& element : elements) longer.add(arena, element);
  for (size_t i = index; i < list.size(); ++i) longer.add(arena, list[i]);
  list = longer;
}

}  // namespace treadle::reduce
