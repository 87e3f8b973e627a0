#pragma once
// What the terminal can show.

#include <cstddef>

namespace cli {

// Columns of the terminal behind a file descriptor; `otherwise` if there is none.
size_t terminal_width(int descriptor, size_t otherwise);
// Whether the user's locale encodes text as UTF-8.
bool shows_utf8();

}  // namespace cli
