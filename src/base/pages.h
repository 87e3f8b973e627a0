#pragma once
// Memory for much at once.

#include <cstddef>

namespace treadle {

inline constexpr size_t kLargePage = size_t{2} << 20;

// Asks the system to back what lies in [data, data + bytes) by large pages, where it gives them on request: they are
// filled with one fault instead of 512, and walks over much memory stay within what the processor remembers of the page
// table.
void ask_for_large_pages(void* data, size_t bytes);

// `bytes` that begin at a page's start, in large pages where they fill some; null where there is no memory. For
// std::free.
void* allocate_pages(size_t bytes);

}  // namespace treadle
