#pragma once
// Which processor this is, as exactly as code that is made for it needs to know.

#include <string>

namespace treadle {

// Model, stepping and every feature that processor and operating system offer: bytes to compare, not to show. Equal on
// machines that can run each other's code.
const std::string& processor_id();

}  // namespace treadle
