#pragma once
// The whole command-line tool, for the executable and the Python package.

namespace cli {

// The exit status.
int run_tool(int argc, char** argv);

}  // namespace cli
