#pragma once
// Memory for thread-local variables. The C library allocates a shared object's thread-local variables when a thread
// first uses one of them, and ends the process if there is no memory.

namespace treadle {

// Whether there is memory for the thread-local variables of the object that `inside` points into. If so, the calling
// thread's next request for memory must be the one for these variables; it will succeed.
bool has_room_for_thread_locals(const void* inside);

// Allocates the calling thread's variables of this library and of the C++ library (for exceptions). False: there is no
// memory, and no exception may be thrown.
bool make_thread_locals();

}  // namespace treadle
