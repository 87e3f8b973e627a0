#pragma once
// An allocator that fails on demand. In the executable that links this, every request for memory of the engine and of
// the C++ library comes through here: operator new in all its forms, malloc and its relatives, mmap, and starting a
// thread (which takes a stack). A chosen one of them, or all from a chosen one on, are refused.

#include <cstddef>
#include <cstdint>
#include <vector>

namespace treadle::faults {

enum class Whose : uint8_t {
  kCaller,  // requests of the thread that arms
  kOthers,  // of every other thread
};
enum class How : uint8_t {
  kOne,      // one request
  kAllFrom,  // that one and all behind it, until disarm()
};

struct Point {
  Whose whose = Whose::kCaller;
  How how = How::kOne;
  int64_t nth = 0;  // from 1 on; 0: none is refused
};

// Where a request comes from: the same for requests of one place in the code that is reached in one way. Cheap, so not
// certain: the caller's address, and how deep the stack is.
using Place = uint64_t;

void arm(const Point& point);
// Ends it. How many requests were refused.
int64_t disarm();

// Between the two, requests are listed and none is refused.
void begin_listing(Whose whose);
std::vector<Place> end_listing();

// Pieces of memory that were asked for here and not given back.
int64_t live();
// Prints to stderr where the live pieces that are younger than an earlier age() were requested. Needs keep_stacks().
int64_t age();
void keep_stacks();
void print_living_since(int64_t age);
// Where the last refused request came from, to stderr.
void print_refused();
void print_here();

}  // namespace treadle::faults
