#pragma once
// Memory for thread-local variables. The C library allocates the thread-local variables of a shared object when a
// thread first uses one of them, and ends the process where there is no memory.

namespace treadle {

// False: there is no memory. After true, the calling thread's next request for memory may be the one for the
// thread-local variables of the object that `inside` points into: it is met.
bool has_room_for_thread_locals(const void* inside);

// Makes the calling thread's variables of this library and of the C++ library (which has some for exceptions). False:
// there is no memory, and nothing may be thrown.
bool make_thread_locals();

}  // namespace treadle
