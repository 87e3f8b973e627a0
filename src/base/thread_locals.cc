#include "base/thread_locals.h"

#include <cxxabi.h>
#include <link.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>

namespace treadle {

namespace {

struct Search {
  uintptr_t inside = 0;
  size_t bytes = 0;  // size of the object's thread-local variables
};

int look(dl_phdr_info* object, size_t /*size*/, void* data) {
  auto* search = static_cast<Search*>(data);
  size_t bytes = 0;
  bool is_it = false;
  for (int i = 0; i < object->dlpi_phnum; ++i) {
    const ElfW(Phdr)& header = object->dlpi_phdr[i];
    if (header.p_type == PT_LOAD) is_it |= search->inside - object->dlpi_addr - header.p_vaddr < header.p_memsz;
    if (header.p_type != PT_TLS) continue;
    bytes = header.p_memsz + (header.p_align > alignof(std::max_align_t) ? header.p_align : 0);
  }
  if (is_it) search->bytes = bytes;
  return is_it ? 1 : 0;
}

}  // namespace

bool has_room_for_thread_locals(const void* inside) {
  Search search{reinterpret_cast<uintptr_t>(inside)};
  dl_iterate_phdr(look, &search);
  // An allocator gives memory that a thread has just freed to the same thread's next request of the size.
  void* volatile room = std::malloc(std::max<size_t>(search.bytes, 1));
  std::free(room);
  return room != nullptr;
}

bool make_thread_locals() {
  [[maybe_unused]] thread_local volatile char one = 0;
  static const char anchor = 0;
  if (!has_room_for_thread_locals(&anchor)) return false;
  one = 1;
  if (!has_room_for_thread_locals(reinterpret_cast<const void*>(&abi::__cxa_get_globals))) return false;
  [[maybe_unused]] const void* volatile globals = abi::__cxa_get_globals();
  return true;
}

}  // namespace treadle
