#pragma once
// What happens when LLVM has no memory, or meets what it cannot go on from.
//
// It would end the process: it was compiled without exceptions. Here all of the shared object's memory is asked for in
// memory.cc, the C++ library's included, which is linked into it. Where there is none, compiling is broken off from
// wherever it is, and nothing on the way is cleaned up: what LLVM was working on is left where it is, and it may hold
// locks of its own, so it should never be called again.

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
