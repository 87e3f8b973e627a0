// Tests neither read nor write the folder of compiled loops that belongs to whoever runs them.

#include <cstdlib>

namespace {

[[maybe_unused]] const int kOff = setenv("TREADLE_JIT_CACHE", "off", 0);

}  // namespace
