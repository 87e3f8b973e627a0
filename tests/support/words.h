#pragma once
// Arguments of functions as words, so that one loop varies those of every function.

#include <cstdint>
#include <cstring>

namespace treadle::test {

// None is wider.
using Word = uint64_t;

template <class T>
Word word_of(T argument) {
  static_assert(sizeof(T) <= sizeof(Word));
  Word word = 0;
  std::memcpy(&word, &argument, sizeof argument);
  return word;
}

template <class T>
T from_word(Word word) {
  static_assert(sizeof(T) <= sizeof(Word));
  T argument;
  std::memcpy(&argument, &word, sizeof argument);
  return argument;
}

}  // namespace treadle::test
