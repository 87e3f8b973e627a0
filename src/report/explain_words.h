#pragma once
// Words for parts of an explanation.

#include <string>
#include <string_view>

#include "report/explain.h"

namespace treadle::report {

std::string_view name(LoopReport::Tier tier);                 // "native"
std::string_view name(LoopReport::Bound bound);               // "memory"
std::string bytes_text(double bytes);                         // "197 KB"
std::string count_text(size_t count, std::string_view what);  // "2 nodes"
std::string runs_text(double count);                          // "1 run", "120 runs": two digits that say something

}  // namespace treadle::report
