#pragma once
// A call in a process of its own, for calls that may end it.

#include <functional>
#include <optional>
#include <string>

namespace treadle::test {

// The text that `call` returns; none where the call has ended its process.
std::optional<std::string> told_apart(const std::function<std::string()>& call);

}  // namespace treadle::test
