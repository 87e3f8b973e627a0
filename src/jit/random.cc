// The source of random numbers for the C++ library inside libtreadle_jit.so. The system has a function of this name
// only since glibc 2.36; the object must also load with older ones.

#include <unistd.h>

#include <cstdint>
#include <ctime>

extern "C" {
[[gnu::visibility("hidden")]] uint32_t arc4random() noexcept;
}

uint32_t arc4random() noexcept {
  uint32_t number = 0;
  if (getentropy(&number, sizeof number) != 0) number = static_cast<uint32_t>(time(nullptr));  // before Linux 3.17
  return number;
}
