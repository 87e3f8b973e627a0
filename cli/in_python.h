#pragma once
// Commands whose work is done by the Python package treadle.

#include <string>
#include <vector>

namespace cli {

// Runs a module of the package ("treadle._compare_command") as `python -m` does, with these arguments and with the
// standard streams of this process, and returns its exit status; 128 and the signal's number if a signal ended it. The
// Python is the one that TREADLE_PYTHON names, or python3. Errors: InputError if there is no such Python, or if it does
// not have the package.
int run_in_python(const std::string& module, const std::vector<std::string>& arguments);

}  // namespace cli
