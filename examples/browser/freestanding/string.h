// What a compiled model needs of the C library, for WebAssembly, which has instructions for it.
#pragma once
#include <stddef.h>

static inline void* memcpy(void* restrict to, const void* restrict from, size_t bytes) {
  return __builtin_memcpy(to, from, bytes);
}
static inline void* memset(void* to, int value, size_t bytes) {
  return __builtin_memset(to, value, bytes);
}
