// Levels of floats and floats of levels (ops/quant/linear.cc, dynamic.cc), and products of floats with constant weights
// that stay bytes or fewer bits (dequantized_product.cc, matmul_nbits.cc, ops/rnn/quantized_gemm.cc).

#include <algorithm>
#include <cstring>

#include "c/sums.h"
#include "c/writer.h"
#include "kernels/gemm.h"
#include "op/op_def.h"
#include "op/operands.h"
#include "ops/quant/rows.h"
#include "ops/quant/scale_layout.h"

namespace treadle::c {

namespace {

constexpr ElementType kF32 = ElementType::kFloat;

}  // namespace

std::string level_function(Functions& f, ElementType type) {
  const quant::LevelRange range = quant::levels_of(type);
  return f.get(fmt::format("level_{}", suffix(type)), [&](Text& text, const std::string& name) {
    text.open("static inline {} {}(float x, int32_t zero)", stored(type), name);
    text.line("const float low = (float)({} - zero), high = (float)({} - zero);", range.low, range.high);
    text.line("const float least = x >= low ? x : low, held = least <= high ? least : high;");
    text.line("const float shifted = held + 12582912.0f; /* 1.5 * 2^23: rounds half to even */");
    text.line("return ({})((int32_t)(shifted - 12582912.0f) + zero);", stored(type));
    text.close();
  });
}

namespace {

// Loops over the elements of x. `body` is given the positions of an element and of its scale.
template <class Body>
void each_scaled(Writer& w, const quant::ScaleLayout& layout, Body&& body) {
  const auto [outer, n, inner] = layout.view;
  Text& text = w.text();
  std::string at, scale;
  int opened = 0;
  const std::pair<const char*, size_t> loops[] = {{"o", outer}, {"k", n}, {"i", inner}};
  size_t last = 3;
  for (size_t d = 0; d < 3; ++d) {
    if (loops[d].second != 1) last = d;
  }
  for (size_t d = 0; d < 3; ++d) {
    const auto [index, size] = loops[d];
    if (size != 1) {
      if (d == last) text.line("{}_INDEPENDENT", w.functions().upper_prefix());
      text.open("for (ptrdiff_t {0} = 0; {0} < {1}; ++{0})", index, size);
      ++opened;
      if (!at.empty()) at = fmt::format("({}) * {} + {}", at, size, index);
      if (at.empty()) at = index;
    }
  }
  if (at.empty()) at = "0";
  if (layout.per_axis) scale = n == 1 ? "0" : "k";
  if (layout.block != 0) {
    scale = outer == 1 ? "" : fmt::format("o * {}", layout.blocks());
    if (n != 1) scale += fmt::format("{}k / {}", scale.empty() ? "" : " + ", layout.block);
    if (inner != 1) scale = scale.empty() ? "i" : fmt::format("({}) * {} + i", scale, inner);
  }
  body(at, scale.empty() ? "0" : scale);
  for (; opened > 0; --opened) text.close();
}

// Declares `scale`, and `zero` if levels of `quantized` have zero points.
void write_scale(const Call& call, ElementType quantized, const std::string& at) {
  Writer& w = call.writer;
  w.text().line("const float scale = {};", w.converted(call.type(1), kF32, fmt::format("{}[{}]", call.in(1), at)));
  if (!is_integer(quantized)) return;
  std::string zero = "0";
  if (call.has_input(2)) {
    zero = w.converted(call.type(2), ElementType::kInt32, fmt::format("{}[{}]", call.in(2), at));
  }
  w.text().line("const int32_t zero = {};", zero);
}

Result<quant::ScaleLayout> layout_of(const Call& call) {
  const Dims scales = call.dims(1);
  return quant::scale_layout(call.node.attributes, call.dims(0), product(scales, 0, scales.size()));
}

void write_quantize(const Call& call, std::string& why) {
  Writer& w = call.writer;
  const auto layout = layout_of(call);
  const ElementType to = call.result();
  if (!layout.ok()) {
    why = "its scales do not fit";
    return;
  }
  const ElementType precision = quant::precision_of_division(call.node.attributes, call.type(1));
  const bool rounds = precision == ElementType::kFloat16 || precision == ElementType::kBfloat16;
  const bool saturates = call.node.attributes.get_int("saturate", 1) != 0;
  const std::string x = call.in(0), y = call.out();
  each_scaled(w, *layout, [&](const std::string& at, const std::string& scale) {
    write_scale(call, to, scale);
    std::string level = fmt::format("{} / scale", w.converted(call.type(0), kF32, fmt::format("{}[{}]", x, at)));
    if (rounds) level = w.converted(precision, kF32, w.converted(kF32, precision, level));
    if (is_integer(to)) {
      level = fmt::format("{}({}, zero)", level_function(w.functions(), to), level);
    } else {
      level = w.converted(kF32, to, level, {.saturate = saturates});
    }
    w.text().line("{}[{}] = {};", y, at, level);
  });
}

void write_dequantize(const Call& call, std::string& why) {
  Writer& w = call.writer;
  const auto layout = layout_of(call);
  const ElementType from = call.type(0);
  if (!layout.ok()) {
    why = "its scales do not fit";
    return;
  }
  const std::string x = call.in(0), y = call.out();
  each_scaled(w, *layout, [&](const std::string& at, const std::string& scale) {
    write_scale(call, from, scale);
    const std::string element = fmt::format("{}[{}]", x, at);
    std::string value = w.converted(from, kF32, element);
    if (from == ElementType::kInt32) {
      value = fmt::format("(float)(int32_t)((uint32_t){} - (uint32_t)zero)", element);  // wraps
    } else if (is_integer(from)) {
      value = fmt::format("(float)({} - zero)", element);
    }
    w.text().line("{}[{}] = {};", y, at, w.converted(kF32, call.result(), fmt::format("{} * scale", value)));
  });
}

// f(x, n, range): the least and the greatest element, and 0; NaN for both if an element is NaN.
std::string range_function(Functions& f) {
  const int lanes = f.lanes(kF32);
  return f.get("range_f32", [&](Text& text, const std::string& name) {
    text.open("static void {}(const float *restrict x, ptrdiff_t n, float *restrict range)", name);
    text.line("float low[{0}] = {{0}}, high[{0}] = {{0}};", lanes);
    text.line("int32_t orderless[{}] = {{0}};", lanes);
    const auto step = [&](const char* l, const char* at) {
      text.line("low[{0}] = {1} < low[{0}] ? {1} : low[{0}];", l, at);
      text.line("high[{0}] = {1} > high[{0}] ? {1} : high[{0}];", l, at);
      text.line("orderless[{0}] |= {1} != {1};", l, at);
    };
    text.line("ptrdiff_t i = 0;");
    text.open("for (; n - i >= {0}; i += {0})", lanes);
    text.open("for (int l = 0; l < {}; ++l)", lanes);
    step("l", "x[i + l]");
    text.close();
    text.close();
    text.open("for (; n - i >= 1; ++i)");
    step("0", "x[i]");
    text.close();
    text.open("for (int l = 1; l < {}; ++l)", lanes);
    text.line("low[0] = low[l] < low[0] ? low[l] : low[0];");
    text.line("high[0] = high[l] > high[0] ? high[l] : high[0];");
    text.line("orderless[0] |= orderless[l];");
    text.close();
    text.line("range[0] = orderless[0] ? {} : low[0];", literal(std::numeric_limits<float>::quiet_NaN()));
    text.line("range[1] = orderless[0] ? range[0] : high[0];");
    text.close();
  });
}

void write_dynamic_quantize(const Call& call, std::string&) {
  Writer& w = call.writer;
  Text& text = w.text();
  const Dims dims = call.dims(0);
  const int64_t n = product(dims, 0, dims.size());
  const std::string level = level_function(w.functions(), ElementType::kUint8), x = call.in(0);
  text.open("");
  text.line("float range[2];");
  text.line("{}({}, {}, range);", range_function(w.functions()), x, n);
  // A tensor of zeros has no range; any scale is exact.
  text.line("const float width = range[1] - range[0], scale = range[1] == range[0] ? 1.0f : width / 255.0f;");
  text.line("const uint8_t zero = {}((0.0f - range[0]) / scale, 0);", level);
  if (call.has_output(0)) {
    text.line("for (ptrdiff_t i = 0; i < {}; ++i) {}[i] = {}({}[i] / scale, zero);", n, call.out(0), level, x);
  }
  if (call.has_output(1)) text.line("{}[0] = scale;", call.out(1));
  if (call.has_output(2)) text.line("{}[0] = zero;", call.out(2));
  text.close();
}

// --- products with bytes ---------------------------------------------------------------------------------------------

// A mark in front of a loop that gcc must not write out.
std::string rolled_mark(Functions& functions) {
  return functions.get("rolled", [](Text& text, const std::string& name) {
    text.line("#if defined(__GNUC__) && !defined(__clang__)");
    text.line("#define {} _Pragma(\"GCC unroll 1\")", name);
    text.line("#else");
    text.line("#define {}", name);
    text.line("#endif");
  });
}

// f(a, a_row, b, b_row, scale, scale_step, zero, zero_step, c, c_row, m, n, k): C = A B, where column j of B is
// (b - zero[j * zero_step]) * scale[j * scale_step]; one chain over k for each element, as product_function(). `zero`
// may be null.
std::string weights_product_function(Functions& functions, ElementType weights) {
  const std::string_view t = stored(weights);
  const std::string fused = functions.fuses() ? functions.multiply_add(kF32) : "";
  // The loop over columns must stay one: gcc makes vectors of it only then.
  const std::string rolled = rolled_mark(functions);
  const auto tile = [&](int rows, int columns) {
    return functions.get(
        fmt::format("tile_{}x{}_of_{}", rows, columns, suffix(weights)), [&](Text& text, const std::string& name) {
          text.open(
              "static inline void {}(const float *restrict a, ptrdiff_t a_row, const {} *restrict b, ptrdiff_t b_row, "
              "const float *restrict scale, ptrdiff_t scale_step, const {} *restrict zero, ptrdiff_t zero_step, "
              "float *restrict c, ptrdiff_t c_row, ptrdiff_t k)",
              name, t, t);
          text.line("float s[{}][{}], factor[{}];", rows, columns, columns);
          text.line("int32_t base[{}];", columns);
          text.line("for (int l = 0; l < {}; ++l) factor[l] = scale[l * scale_step];", columns);
          text.line("for (int l = 0; l < {}; ++l) base[l] = zero ? zero[l * zero_step] : 0;", columns);
          text.line("for (int r = 0; r < {}; ++r)", rows);
          text.line("  for (int l = 0; l < {}; ++l) s[r][l] = 0;", columns);
          text.open("for (ptrdiff_t p = 0; p < k; ++p)");
          for (int r = 0; r < rows; ++r) text.line("const float x{} = a[{} * a_row + p];", r, r);
          text.line("{}", rolled);
          text.open("for (int l = 0; l < {}; ++l)", columns);
          text.line("const float y = (float)(b[p * b_row + l] - base[l]) * factor[l];");
          for (int r = 0; r < rows; ++r) {
            if (fused.empty()) {
              text.line("const float xy{0} = x{0} * y;", r);
              text.line("s[{0}][l] = s[{0}][l] + xy{0};", r);
            } else {
              text.line("s[{0}][l] = {1}(x{0}, y, s[{0}][l]);", r, fused);
            }
          }
          text.close();
          text.close();
          text.line("for (int r = 0; r < {}; ++r)", rows);
          text.line("  for (int l = 0; l < {}; ++l) c[r * c_row + l] = s[r][l];", columns);
          text.close();
        });
  };
  const int lanes = functions.lanes(kF32);
  struct Tiles {
    int rows;
    std::vector<std::pair<int, std::string>> columns;
  };
  std::vector<Tiles> tiles;
  for (const int rows : {4, 1}) {
    Tiles& of = tiles.emplace_back(Tiles{rows, {}});
    for (const int columns : {rows == 1 ? 4 * lanes : 2 * lanes, lanes, 1}) {
      of.columns.emplace_back(columns, tile(rows, columns));
    }
  }
  return functions.get(fmt::format("product_of_{}", suffix(weights)), [&](Text& text, const std::string& name) {
    text.open(
        "static void {}(const float *restrict a, ptrdiff_t a_row, const {} *restrict b, ptrdiff_t b_row, "
        "const float *restrict scale, ptrdiff_t scale_step, const {} *restrict zero, ptrdiff_t zero_step, "
        "float *restrict c, ptrdiff_t c_row, ptrdiff_t m, ptrdiff_t n, ptrdiff_t k)",
        name, t, t);
    text.line("ptrdiff_t i = 0;");
    for (const Tiles& of : tiles) {
      text.open("for (; m - i >= {0}; i += {0})", of.rows);
      text.line("const float *a_at = a + i * a_row;");
      text.line("float *c_at = c + i * c_row;");
      text.line("ptrdiff_t j = 0;");
      for (const auto& [columns, called] : of.columns) {
        text.open("for (; n - j >= {0}; j += {0})", columns);
        text.line("const {} *zero_at = zero ? zero + j * zero_step : zero;", t);
        text.line(
            "{}(a_at, a_row, b + j, b_row, scale + j * scale_step, scale_step, zero_at, zero_step, c_at + j, "
            "c_row, k);",
            called);
        text.close();
      }
      text.close();
    }
    text.close();
  });
}

// Operand `i` as an array and the step from column to column; without the operand a null pointer.
struct Beside {
  std::string pointer;
  int step = 0;
};
Beside beside(const Call& call, size_t i, ElementType type) {
  if (!call.has_input(i)) return {fmt::format("(const {} *)0", stored(type)), 0};
  const Dims dims = call.dims(i);
  return {call.in(i), product(dims, 0, dims.size()) > 1 ? 1 : 0};
}

// DequantizedProduct: A [..., k], bytes B [k, n] or [n, k] with transB, C broadcast to the result.
void write_dequantized_product(const Call& call, std::string& why) {
  enum Input : size_t { kA, kB, kC, kScale, kZero };
  Writer& w = call.writer;
  const auto& attributes = call.node.attributes;
  const bool transposed = attributes.get_int("transB") != 0;
  const Dims a = call.dims(kA), b = call.dims(kB);
  const int64_t n = b[transposed ? 0 : 1], k = b[transposed ? 1 : 0], m = product(a, 0, a.size() - 1);
  const Tensor* weights = call.constant(kB);
  const ElementType type = call.type(kB);
  if (!weights) {
    why = "its weights are no constant";
    return;
  }
  if (m * n == 0) return;
  Text& text = w.text();
  const std::string from = call.in(kA), to = call.out();
  const Beside scale = beside(call, kScale, kF32), zero = beside(call, kZero, type);
  if (n <= kernels::kGemmDotColumns) {
    // Each column becomes floats first.
    const std::string column = fmt::format("((float *)(void *){})", w.scratch(static_cast<size_t>(k) * sizeof(float)));
    const std::string bytes = call.in(kB);
    text.open("for (ptrdiff_t j = 0; j < {}; ++j)", n);
    text.line("const float scale = {}[j * {}];", scale.pointer, scale.step);
    text.line("const int32_t zero = {};",
              call.has_input(kZero) ? fmt::format("{}[j * {}]", zero.pointer, zero.step) : std::string("0"));
    text.line("float *const row = {};", column);
    text.line("for (ptrdiff_t p = 0; p < {}; ++p) row[p] = (float)({}[{}] - zero) * scale;", k, bytes,
              transposed ? fmt::format("j * {} + p", k) : fmt::format("p * {} + j", n));
    text.line("for (ptrdiff_t i = 0; i < {}; ++i) {}[i * {} + j] = {}({} + i * {}, 1, row, 1, {});", m, to, n,
              dot_function(w.functions(), kF32), from, k, k);
    text.close();
  } else {
    std::string bytes;
    if (transposed) {
      std::vector<uint8_t> turned(static_cast<size_t>(k * n));
      const auto* source = static_cast<const uint8_t*>(weights->raw());
      for (int64_t j = 0; j < n; ++j) {
        for (int64_t p = 0; p < k; ++p) turned[static_cast<size_t>(p * n + j)] = source[j * k + p];
      }
      bytes = w.table("weights", type, turned.data(), turned.size());
    } else {
      bytes = call.in(kB);
    }
    text.line("{}({}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {});", weights_product_function(w.functions(), type),
              from, k, bytes, n, scale.pointer, scale.step, zero.pointer, zero.step, to, n, m, n, k);
  }
  const float alpha = attributes.get_float("alpha"), beta = attributes.get_float("beta");
  const bool has_bias = call.has_input(kC) && beta != 0;
  if (alpha == 1 && !has_bias) return;
  text.open("for (ptrdiff_t i = 0; i < {}; ++i)", m);
  text.open("for (ptrdiff_t j = 0; j < {}; ++j)", n);
  text.line("float x = {}[i * {} + j];", to, n);
  if (alpha != 1) text.line("x = x * {};", literal(alpha));
  if (has_bias) {
    const Operand bias = operand_of(*call.node.inputs[kC]);
    const Dims strides = broadcast_strides(bias, Dims{m, n});
    text.line("float y = {}[i * {} + j * {}];", call.in(kC), strides[0], strides[1]);
    if (beta != 1) text.line("y = {} * y;", literal(beta));
    text.line("x = x + y;");
  }
  text.line("{}[i * {} + j] = x;", to, n);
  text.close();
  text.close();
}

// f(a, a_zero, b, zero, zero_step, sums, n, k): sums[j] = sum over p of (a[p] - a_zero)(b[p * n + j] - zero[j]), exact.
std::string byte_row_function(Functions& f, ElementType weights) {
  const std::string_view t = stored(weights);
  return f.get(fmt::format("byte_row_{}", suffix(weights)), [&](Text& text, const std::string& name) {
    text.open(
        "static void {}(const uint8_t *restrict a, int32_t a_zero, const {} *restrict b, const {} *restrict zero, "
        "ptrdiff_t zero_step, uint32_t *restrict sums, ptrdiff_t n, ptrdiff_t k)",
        name, t, t);
    text.line("memset(sums, 0, (size_t)n * sizeof *sums);");
    text.open("for (ptrdiff_t p = 0; p < k; ++p)");
    text.line("const int32_t x = a[p] - a_zero;");
    text.line("const {} *row = b + p * n;", t);
    text.open("if (zero == NULL)");
    text.line("for (ptrdiff_t j = 0; j < n; ++j) sums[j] += (uint32_t)(x * row[j]);");
    text.otherwise();
    text.line("for (ptrdiff_t j = 0; j < n; ++j) sums[j] += (uint32_t)(x * (row[j] - zero[j * zero_step]));");
    text.close();
    text.close();
    text.close();
  });
}

// DynamicQuantizeGemm: A [m, k] is quantised as a whole; bytes B [k, n]; C [n] or [m, n].
void write_dynamic_quantize_gemm(const Call& call, std::string&) {
  enum Input : size_t { kA, kB, kScale, kZero, kC };
  Writer& w = call.writer;
  Text& text = w.text();
  const Dims a = call.dims(kA), b = call.dims(kB);
  const int64_t m = a[0], k = a[1], n = b[1];
  if (m * n == 0) return;
  const ElementType type = call.type(kB);
  const std::string level = level_function(w.functions(), ElementType::kUint8), x = call.in(kA), y = call.out();
  const std::string levels = w.scratch(static_cast<size_t>(m * k));
  const std::string sums =
      fmt::format("((uint32_t *)(void *){})", w.scratch(static_cast<size_t>(n) * sizeof(uint32_t)));
  const Beside scale = beside(call, kScale, kF32), zero = beside(call, kZero, type);
  text.open("");
  text.line("float range[2];");
  text.line("{}({}, {}, range);", range_function(w.functions()), x, m * k);
  text.line("const float width = (range[1] - range[0]) / 255.0f, scale = width > 0 ? width : 1.0f;");
  text.line("const float start = -range[0] / scale, held = start < 0 ? 0.0f : start > 255 ? 255.0f : start;");
  text.line("const uint8_t zero = width > 0 ? {}(held, 0) : 0;", level);
  text.line("for (ptrdiff_t i = 0; i < {}; ++i) {}[i] = {}({}[i] / scale, zero);", m * k, levels, level, x);
  text.open("for (ptrdiff_t i = 0; i < {}; ++i)", m);
  text.line("uint32_t *const sums = {};", sums);
  text.line("{}({} + i * {}, zero, {}, {}, {}, sums, {}, {});", byte_row_function(w.functions(), type), levels, k,
            call.in(kB), zero.pointer, zero.step, n, k);
  text.open("for (ptrdiff_t j = 0; j < {}; ++j)", n);
  text.line("const float both = scale * {}[j * {}], value = (float)(int32_t)sums[j] * both;", scale.pointer,
            scale.step);
  std::string sum = "value";
  if (call.has_input(kC)) {
    const bool by_row = call.dims(kC).size() == 2;
    sum = by_row ? fmt::format("{}[i * {} + j] + value", call.in(kC), n) : fmt::format("value + {}[j]", call.in(kC));
  }
  text.line("{}[i * {} + j] = {};", y, n, sum);
  text.close();
  text.close();
  text.close();
}

// Weights of 2, 4 or 8 bits in blocks (kernels/block_weights.h), as a model has them: the first one in the lowest bits.
struct Blocks {
  int64_t k, n, size;
  int bits;
  ElementType type;   // of rows and scales
  ElementType zeros;  // kUint8: packed like weights; kUndefined: none

  int64_t count() const { return (k + size - 1) / size; }
  int64_t bytes() const { return size * bits / 8; }
  int64_t zero_bytes() const { return (count() * bits + 7) / 8; }
};

bool has_zeros(const Blocks& w) {
  return w.zeros != ElementType::kUndefined;
}

// f(a, a_sums, b, scale, zero, y): a row of `a`, as floats and with zeros behind it, times all columns. The sum of a
// block is one chain, and the sum over blocks is another.
std::string block_row_function(Functions& f, const Blocks& w) {
  const std::string scale_type(stored(w.type)), zero_type(stored(has_zeros(w) ? w.zeros : w.type));
  const std::string fused = f.fuses() ? f.multiply_add(kF32) : "";
  const std::string shape = fmt::format("{}_{}_{}_{}_{}_{}", w.k, w.n, w.size, w.bits, suffix(w.type),
                                        has_zeros(w) ? suffix(w.zeros) : "none");
  const int mask = (1 << w.bits) - 1, middle = 1 << (w.bits - 1), per_byte = 8 / w.bits;
  const std::string arguments = fmt::format(
      "const float *restrict a, const float *restrict a_sums, const uint8_t *restrict b, const {} *restrict scale, "
      "const {} *restrict zero, float *restrict y",
      scale_type, zero_type);
  const auto add = [&](Text& text, const std::string& sum, const std::string& x, const std::string& with) {
    if (!fused.empty()) return text.line("{0} = {1}({2}, {3}, {0});", sum, fused, x, with);
    text.open("");
    text.line("const float xy = {} * {};", x, with);
    text.line("{0} = {0} + xy;", sum);
    text.close();
  };
  const auto columns = [&](int count) {
    return f.get(fmt::format("columns_{}_of_{}", count, shape), [&](Text& text, const std::string& name) {
      text.open("static inline void {}({})", name, arguments);
      text.line("float total[{0}] = {{0}};", count);
      text.open("for (ptrdiff_t q = 0; q < {}; ++q)", w.count());
      text.line("float sum[{0}] = {{0}};", count);
      text.open("for (ptrdiff_t p = 0; p < {}; ++p)", w.bytes());
      text.open("for (int s = 0; s < {}; ++s)", per_byte);
      text.line("const float x = a[q * {} + p * {} + s];", w.size, per_byte);
      text.open("for (int l = 0; l < {}; ++l)", count);
      text.line("const int level = ((b[l * {} + q * {} + p] >> (s * {})) & {}) - {};", w.count() * w.bytes(), w.bytes(),
                w.bits, mask, middle);
      add(text, "sum[l]", "x", "(float)level");
      text.close();
      text.close();
      text.close();
      text.open("for (int l = 0; l < {}; ++l)", count);
      if (w.zeros == ElementType::kUint8) {
        text.line("const int level = ((zero[l * {} + q / {}] >> (q % {} * {})) & {}) - {};", w.zero_bytes(), per_byte,
                  per_byte, w.bits, mask, middle);
        add(text, "sum[l]", "-(float)level", "a_sums[q]");
      } else if (has_zeros(w)) {
        text.line("const float level = {} - {}.0f;",
                  f.converted(w.zeros, kF32, fmt::format("zero[l * {} + q]", w.count())), middle);
        add(text, "sum[l]", "-level", "a_sums[q]");
      }
      add(text, "total[l]", f.converted(w.type, kF32, fmt::format("scale[l * {} + q]", w.count())), "sum[l]");
      text.close();
      text.close();
      text.line("for (int l = 0; l < {}; ++l) y[l] = total[l];", count);
      if (!has_zeros(w)) text.line("(void)zero, (void)a_sums;");
      text.close();
    });
  };
  constexpr int kWide = 8;
  const std::string wide = columns(kWide), narrow = columns(1);
  return f.get(fmt::format("row_of_{}", shape), [&](Text& text, const std::string& name) {
    text.open("static void {}({})", name, arguments);
    text.line("ptrdiff_t j = 0;");
    const int64_t zeros = w.zeros == ElementType::kUint8 ? w.zero_bytes() : w.count();
    for (const int count : {kWide, 1}) {
      text.open("for (; {0} - j >= {1}; j += {1})", w.n, count);
      text.line("{}(a, a_sums, b + j * {}, scale + j * {}, {}, y + j);", count == 1 ? narrow : wide,
                w.count() * w.bytes(), w.count(), has_zeros(w) ? fmt::format("zero + j * {}", zeros) : "zero");
      text.close();
    }
    text.close();
  });
}

// BlockMatMul: rows of A [..., K] times weights [N, blocks, bytes of a block].
void write_block_matmul(const Call& call, std::string&) {
  enum Input : size_t { kA, kB, kScales, kZeros, kGroups, kBias };
  Writer& w = call.writer;
  Text& text = w.text();
  const auto& attributes = call.node.attributes;
  const Blocks blocks{attributes.get_int("K"),
                      attributes.get_int("N"),
                      attributes.get_int("block_size"),
                      static_cast<int>(attributes.get_int("bits")),
                      call.type(kA),
                      call.has_input(kZeros) ? call.type(kZeros) : ElementType::kUndefined};
  const int64_t k = blocks.k, n = blocks.n, padded = blocks.count() * blocks.size;
  const Dims a = call.dims(kA);
  const int64_t rows = product(a, 0, a.size() - 1);
  if (rows == 0) return;
  const auto floats = [&](int64_t count) {
    return fmt::format("((float *)(void *){})", w.scratch(static_cast<size_t>(count) * sizeof(float)));
  };
  const bool is_float = blocks.type == kF32;
  const std::string row = floats(padded), sums = floats(blocks.count()), result = is_float ? "" : floats(n);
  text.open("for (ptrdiff_t i = 0; i < {}; ++i)", rows);
  text.line("float *const row = {}, *const sums = {};", row, sums);
  text.line("for (ptrdiff_t p = 0; p < {}; ++p) row[p] = {};", k,
            w.converted(blocks.type, kF32, fmt::format("{}[i * {} + p]", call.in(kA), k)));
  if (padded > k) text.line("for (ptrdiff_t p = {}; p < {}; ++p) row[p] = 0;", k, padded);
  if (has_zeros(blocks)) {
    text.open("for (ptrdiff_t q = 0; q < {}; ++q)", blocks.count());
    text.line("float total = 0;");
    text.line("for (ptrdiff_t p = 0; p < {0}; ++p) total += row[q * {0} + p];", blocks.size);
    text.line("sums[q] = total;");
    text.close();
  }
  text.line("float *const to = {};", is_float ? fmt::format("{} + i * {}", call.out(), n) : result);
  const Beside zero = beside(call, kZeros, has_zeros(blocks) ? blocks.zeros : blocks.type);
  text.line("{}(row, sums, {}, {}, {}, to);", block_row_function(w.functions(), blocks), call.in(kB), call.in(kScales),
            zero.pointer);
  const bool has_bias = call.has_input(kBias);
  if (has_bias || !is_float) {
    std::string value = "to[j]";
    if (has_bias) value += " + " + w.converted(blocks.type, kF32, fmt::format("{}[j]", call.in(kBias)));
    const std::string place = is_float ? "to[j]" : fmt::format("{}[i * {} + j]", call.out(), n);
    text.line("for (ptrdiff_t j = 0; j < {}; ++j) {} = {};", n, place, w.converted(kF32, blocks.type, value));
  }
  text.close();
}

constexpr OperatorRow kRows[] = {
    {"QuantizeLinear", "", write_quantize},
    {"DequantizeLinear", "", write_dequantize},
    {"DequantizedWeights", "treadle", write_dequantize},
    {"DynamicQuantizeLinear", "", write_dynamic_quantize},
    {"DequantizedProduct", "treadle", write_dequantized_product},
    {"DynamicQuantizeGemm", "treadle", write_dynamic_quantize_gemm},
    {"BlockMatMul", "treadle", write_block_matmul},
};

}  // namespace

std::span<const OperatorRow> quant_operators() {
  return kRows;
}

}  // namespace treadle::c
