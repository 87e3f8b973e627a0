#pragma once
// The whole command-line tool, as the executable and the Python package have it.

namespace cli {

// The exit status.
int run_tool(int argc, char** argv);

}  // namespace cli
