#pragma once
// Large pages for large memory.

#include <cstddef>

namespace treadle {

inline constexpr size_t kLargePage = size_t{2} << 20;

// Asks the system to back [data, data + bytes) with large pages, if it gives them on request. A large page takes one
// page fault in place of 512, and needs fewer entries of the processor's cache of page tables.
void ask_for_large_pages(void* data, size_t bytes);

// `bytes` from the beginning of a page on, in large pages if they fill at least one. Null if there is no memory. Freed
// with std::free.
void* allocate_pages(size_t bytes);

}  // namespace treadle
