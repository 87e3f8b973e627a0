#pragma once
// How much stack the calling thread has left, and how many levels of nesting that allows.
//
// Bodies of loops and branches are nested, and a function that walks them calls itself for each level. A model can be
// nested deeper than a thread's stack allows. Walks do not check at every step. Code that builds nested objects
// (reading messages and texts, import) checks for each level whether the walk with the largest frames would have enough
// stack. Code that walks them later, perhaps on another thread, checks once (ir/nesting.h).

#include <pthread.h>

#include <cstddef>

#include "base/status.h"

namespace treadle {

// In bytes. SIZE_MAX if the system does not tell, or if the current stack is not the thread's own.
size_t stack_left();

// Without optimisation and under a sanitizer, stack frames are several times as large.
#if defined(__SANITIZE_ADDRESS__) || !defined(NDEBUG)
inline constexpr size_t kStackPerLevel = size_t{32} << 10;
inline constexpr size_t kStackReserve = size_t{128} << 10;
#else
// Stack per level of bodies of the walk with the largest frames, which is inference. tests/session/small_stack_test.cc
// checks it.
inline constexpr size_t kStackPerLevel = size_t{6} << 10;
// Stack for everything else, such as kernels and reading files.
inline constexpr size_t kStackReserve = size_t{40} << 10;
#endif

// Whether the stack suffices to walk `levels` levels.
bool has_stack_for(size_t levels);
// As has_stack_for(). Errors: kLimit.
Status check_stack(size_t levels);
// "... nested N deep: ..."
Status too_deep(size_t levels);

// Sets the stack size of a thread to be started to `bytes`, unless the default is larger.
void want_stack(pthread_attr_t& attributes, size_t bytes);
// Calls fn(context) on a new thread with at least `bytes` of stack, and waits for it. False if no such thread can be
// started.
bool call_on_stack(size_t bytes, void (*fn)(void* context), void* context);

}  // namespace treadle
