#pragma once
// How much stack the calling thread has left, and how deep what it walks may therefore be nested.
//
// Bodies of loops and branches lie inside of each other, and so do the calls of whoever walks them: a model can be
// nested deeper than the stack of a thread allows, which may be small. Walks do not ask at every step. Whoever makes
// something nested (reading messages and texts, import) asks for each level whether the greediest walk has room for so
// many; whoever goes on with it later, perhaps on another thread, asks once (ir/nesting.h).

#include <pthread.h>

#include <cstddef>

#include "base/status.h"

namespace treadle {

// Bytes; SIZE_MAX where the system does not tell, and on a stack that is not the thread's own.
size_t stack_left();

// Without optimisation and under a sanitizer, the frames of functions are several times as large.
#if defined(__SANITIZE_ADDRESS__) || !defined(NDEBUG)
inline constexpr size_t kStackPerLevel = size_t{32} << 10;
inline constexpr size_t kStackReserve = size_t{128} << 10;
#else
// What a walk takes for a level of bodies: inference, with most. tests/session/small_stack_test.cc holds it to that.
inline constexpr size_t kStackPerLevel = size_t{6} << 10;
// What is needed besides: by kernels, by whoever reads a file.
inline constexpr size_t kStackReserve = size_t{40} << 10;
#endif

// Whether there is stack to walk what is nested so deep.
bool has_stack_for(size_t levels);
// The same as an error, kLimit.
Status check_stack(size_t levels);
// "... nested N deep: ..."
Status too_deep(size_t levels);

// For a thread that is to be started: at least so much stack, also where the system gives its threads less.
void want_stack(pthread_attr_t& attributes, size_t bytes);
// Calls fn(context) on a thread of its own that has at least so much stack, and waits for it. False where there is no
// such thread to be had.
bool call_on_stack(size_t bytes, void (*fn)(void* context), void* context);

}  // namespace treadle
