#pragma once
// Handles a lack of memory, and fatal errors, in LLVM.
//
// LLVM is compiled without exceptions and would end the process. Here the whole shared object, with the C++ library
// that is linked into it, allocates memory in memory.cc. Without memory, memory.cc breaks the compilation off at any
// point, and nothing is cleaned up: LLVM's data stays as it is. LLVM may still hold locks, so it must never be called
// again.

namespace treadle::jit {

// Calls work(data). False if it was broken off; `data` may then be incomplete.
bool run_guarded(void (*work)(void*), void* data);

// Within run_guarded(): breaks the work off.
[[noreturn]] void break_off(const char* why);

// The reason why work was broken off in this process; null if none was.
const char* broken_off_for();

// Creates this thread's thread-local variables. To be called while there is certainly memory for them.
void use_thread_locals();

// To be called when the object has been loaded: the memory reserved for its constructors is no longer used.
void loaded();

}  // namespace treadle::jit
