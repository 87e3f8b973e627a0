#pragma once
// What happens when LLVM has no memory, or meets what it cannot go on from.
//
// LLVM is compiled without exceptions and would end the process. Here the whole shared object, with the C++ library
// that is linked into it, asks for memory in memory.cc. Where there is no memory, memory.cc breaks the compilation off
// from wherever it is, and nothing on the way is cleaned up: LLVM's data stays where it is. LLVM may hold locks of its
// own, so LLVM should never be called again.

namespace treadle::jit {

// Calls work(data). False where that was broken off: `data` may then be half of what it was to be.
bool run_guarded(void (*work)(void*), void* data);

// Within run_guarded(): ends it.
[[noreturn]] void break_off(const char* why);

// What work was broken off for, in this process; null: none was.
const char* broken_off_for();

// Makes this thread's thread-local variables. To be called while it is known that there is memory for them.
void use_thread_locals();

// Once the object has been loaded: memory that is set aside for its constructors is no longer handed out.
void loaded();

}  // namespace treadle::jit
