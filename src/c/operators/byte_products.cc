// MatMulInteger, and ScaledMatMulInteger, to which QLinearMatMul is lowered (ops/quant/matmul.cc): exact sums of
// (a - a_zero)(b - b_zero).

#include "c/writer.h"
#include "ops/quant/matmul.h"

namespace treadle::c {

namespace {

using kernels::QGemmOutput;

ElementType byte_of(bool is_signed) {
  return is_signed ? ElementType::kInt8 : ElementType::kUint8;
}

// f(a, b, b_row, a_zero, b_zero, sums, n, k): one row of A. `columns`: b_zero has a zero point for each column.
std::string row_of_bytes(Functions& f, const kernels::QGemmShape& s) {
  const ElementType a = byte_of(s.a_signed), b = byte_of(s.b_signed);
  const bool columns = s.b_zero_per_column;
  return f.get(fmt::format("byte_row_{}_{}{}", suffix(a), suffix(b), columns ? "_columns" : ""),
               [&](Text& text, const std::string& name) {
                 text.open(
                     "static void {}(const {} *a, const {} *b, ptrdiff_t b_row, int32_t a_zero, {}, int32_t *restrict "
                     "sums, ptrdiff_t n, ptrdiff_t k)",
                     name, stored(a), stored(b),
                     columns ? fmt::format("const {} *b_zeros", stored(b)) : std::string("int32_t b_zero"));
                 text.line("for (ptrdiff_t j = 0; j < n; ++j) sums[j] = 0;");
                 text.open("for (ptrdiff_t p = 0; p < k; ++p)");
                 text.line("const {} *const row = b + p * b_row;", stored(b));
                 text.line("const int32_t x = a[p] - a_zero;");
                 text.open("for (ptrdiff_t j = 0; j < n; ++j)");
                 text.line("const int32_t term = x * (row[j] - {});", columns ? "b_zeros[j]" : "b_zero");
                 text.line("sums[j] = (int32_t)((uint32_t)sums[j] + (uint32_t)term);");
                 text.close();
                 text.close();
                 text.close();
               });
}

void write_byte_product(const Call& call, std::string& why) {
  if (call.call.kernel.run != run_matmul_integer) {
    why = "its kernel is not the one that C follows";
    return;
  }
  const auto& state = *static_cast<const MatMulIntegerState*>(call.call.kernel.state);
  const kernels::QGemmShape& s = state.plan.shape;
  const QGemmOutput output = state.epilogue.output;
  Writer& w = call.writer;
  Text& text = w.text();
  // The offset of a matrix in operands that have a stride of their own along each level.
  const auto offset = [&](int64_t MatMulIntegerState::Level::* stride) {
    std::string sum;
    for (size_t d = 0; d < state.levels.size(); ++d) {
      if (state.levels[d].size != 1 && state.levels[d].*stride != 0) {
        sum += fmt::format(" + m{} * {}", d, state.levels[d].*stride);
      }
    }
    return sum;
  };
  using Level = MatMulIntegerState::Level;
  text.open("");
  const std::string c = call.out(), sums = output == QGemmOutput::kInt32 ? "sums" : room(w, ElementType::kInt32, s.n);
  for (size_t d = 0; d < state.levels.size(); ++d) {
    if (state.levels[d].size != 1) text.open("for (ptrdiff_t m{0} = 0; m{0} < {1}; ++m{0})", d, state.levels[d].size);
  }
  text.open("for (ptrdiff_t i = 0; i < {}; ++i)", s.m);
  std::string a_zero = "0", b_zero = s.b_zero_per_column ? "NULL" : "0";
  if (state.has_a_zero) {
    a_zero = fmt::format("({}{})[{}]", call.in(2), offset(&Level::a_zero), s.a_zero_per_row ? "i" : "0");
  }
  if (state.has_b_zero) {
    b_zero = fmt::format("{}{}", call.in(3), offset(&Level::b_zero));
    if (!s.b_zero_per_column) b_zero = fmt::format("({})[0]", b_zero);
  }
  const std::string to = fmt::format("{}{} + i * {}", c, offset(&Level::c), s.c_row);
  text.line("{}({}{} + i * {}, {}{}, {}, {}, {}, {}, {}, {});", row_of_bytes(w.functions(), s), call.in(0),
            offset(&Level::a), s.a_row, call.in(1), offset(&Level::b), s.b_row, a_zero, b_zero,
            output == QGemmOutput::kInt32 ? to : sums, s.n, s.k);
  if (output != QGemmOutput::kInt32) {
    text.line("{} *const y = {};", stored(call.result()), to);
    text.open("for (ptrdiff_t j = 0; j < {}; ++j)", s.n);
    text.line("const float scale = {}[0] * {}[{}];", call.in(kScaleOfA), call.in(kScaleOfB),
              state.epilogue.b_scale_per_column ? "j" : "0");
    text.line("const float scaled = (float){}[j] * scale;", sums);
    std::string value = "scaled";
    if (state.has_bias) {
      text.line("const float shifted = scaled + {}[j];", call.in(kBias));
      value = "shifted";
    }
    if (output == QGemmOutput::kScaled) {
      text.line("y[j] = {};", value);
    } else {
      text.line("y[j] = {}({} / {}[0], {}[0]);", level_function(w.functions(), call.result()), value,
                call.in(kScaleOfY), call.in(kZeroOfY));
    }
    text.close();
  }
  text.close();
  for (const auto& level : state.levels) {
    if (level.size != 1) text.close();
  }
  text.close();
}

constexpr OperatorRow kRows[] = {{"MatMulInteger", "", write_byte_product},
                                 {"ScaledMatMulInteger", "treadle", write_byte_product}};

}  // namespace

std::span<const OperatorRow> byte_product_operators() {
  return kRows;
}

}  // namespace treadle::c
