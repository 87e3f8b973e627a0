#pragma once
// Whether treadle opens a model.

#include <string>

namespace cli {

// Asked in a process of its own, since the engine may crash or hang on such models: false then, too. Ctrl-C (bar.h)
// ends the wait. Throws InputError if no process can be made.
bool loads(const std::string& path, double timeout);

}  // namespace cli
