#pragma once
// What would make a model faster, from an explanation of it.

#include <string>
#include <string_view>
#include <vector>

#include "report/explain.h"

namespace treadle::report {

// Sentences, by the rules that apply, in the order of the table in advice.cc.
std::vector<std::string> advice_on(const Explanation& explanation);

// Whether loops make treadle faster than an engine that runs their bodies node by node, in a line: "will profit: ...",
// "some to gain: ..." or "little to gain: ...".
std::string outlook_of(const Explanation& explanation);

}  // namespace treadle::report
