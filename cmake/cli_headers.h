// What most files of cli/ include.
#include <CLI/CLI.hpp>
