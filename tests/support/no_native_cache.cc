// Tests neither read nor write the user's folder of compiled loops.

#include <cstdlib>

namespace {

[[maybe_unused]] const int kOff = setenv("TREADLE_JIT_CACHE", "off", 0);

}  // namespace
