#pragma once
// Operands in another type than they are stored in.

#include <string>

#include "c/writer.h"

namespace treadle::c {

// Room for elements that only the instruction at hand uses: an expression.
inline std::string room(Writer& w, ElementType type, int64_t count) {
  return fmt::format("(({} *)(void *){})", stored(type), w.scratch(static_cast<size_t>(count) * byte_width(type)));
}

// An operand in another type: its own memory, or scratch. Empty if there is none.
inline std::string operand(const Call& call, size_t i, ElementType type, const char* name) {
  if (!call.has_input(i)) return {};
  if (call.type(i) == type) return call.in(i);
  Writer& w = call.writer;
  const Dims dims = call.dims(i);
  const int64_t count = product(dims, 0, dims.size());
  const std::string wide = w.variable(name);
  w.text().line("{} *const {} = {};", stored(type), wide, room(w, type, count));
  w.text().line("for (ptrdiff_t i = 0; i < {}; ++i) {}[i] = {};", count, wide,
                w.converted(call.type(i), type, call.in(i) + "[i]"));
  return wide;
}

}  // namespace treadle::c
