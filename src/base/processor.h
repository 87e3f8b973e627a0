#pragma once
// Identifies the processor for code that is compiled for it.

#include <string>

namespace treadle {

// Model, stepping and all features that processor and operating system offer, as bytes to compare. Equal on machines
// that can run each other's code.
const std::string& processor_id();

}  // namespace treadle
