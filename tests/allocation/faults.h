#pragma once
// An allocator that fails on demand. In an executable that links it, every request for memory by the engine and the C++
// library comes through here: operator new in all its forms, malloc and related functions, mmap, and starting a thread
// (which takes a stack). It refuses a chosen request, or all requests from a chosen one on.

#include <cstddef>
#include <cstdint>
#include <vector>

namespace treadle::faults {

enum class Whose : uint8_t {
  kCaller,  // requests of the thread that calls arm()
  kOthers,  // requests of all other threads
};
enum class How : uint8_t {
  kOne,      // one request
  kAllFrom,  // that request and all later ones, until disarm()
};

struct Point {
  Whose whose = Whose::kCaller;
  How how = How::kOne;
  int64_t nth = 0;  // counts from 1; 0: none is refused
};

// The origin of a request: equal for requests of one place in the code that is reached in one way. It is cheap and
// therefore not certain: the caller's address, and the depth of the stack.
using Place = uint64_t;

void arm(const Point& point);
// Ends refusing. Returns the number of requests that were refused.
int64_t disarm();

// Between the two calls, requests are listed and none is refused.
void begin_listing(Whose whose);
std::vector<Place> end_listing();

// Pieces of memory that were allocated here and not freed.
int64_t live();
// Prints to stderr where the live pieces that are younger than an earlier age() were requested. Needs keep_stacks().
int64_t age();
void keep_stacks();
void print_living_since(int64_t age);
// Prints the origin of the last refused request to stderr.
void print_refused();
void print_here();

}  // namespace treadle::faults
