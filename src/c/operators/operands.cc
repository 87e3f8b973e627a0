// Operands and results in another type than the one in which they are stored.

#include "c/writer.h"

namespace treadle::c {

std::string room(Writer& w, ElementType type, int64_t count) {
  return fmt::format("(({} *)(void *){})", stored(type), w.scratch(static_cast<size_t>(count) * byte_width(type)));
}

std::string operand(const Call& call, size_t i, ElementType type, const char* name) {
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

std::string result(const Call& call, size_t i, ElementType type, const char* name) {
  if (call.result(i) == type) return call.out(i);
  Writer& w = call.writer;
  const Dims dims = call.result_dims(i);
  const std::string wide = w.variable(name);
  w.text().line("{} *const {} = {};", stored(type), wide, room(w, type, product(dims, 0, dims.size())));
  return wide;
}

void store_result(const Call& call, size_t i, ElementType type, const std::string& from) {
  if (call.result(i) == type) return;
  Writer& w = call.writer;
  const Dims dims = call.result_dims(i);
  w.text().line("for (ptrdiff_t i = 0; i < {}; ++i) {}[i] = {};", product(dims, 0, dims.size()), call.out(i),
                w.converted(type, call.result(i), from + "[i]"));
}

}  // namespace treadle::c
