// Det and Inverse (ops/tensor/det.cc): Gaussian elimination in double.

#include "c/writer.h"
#include "op/op_def.h"

namespace treadle::c {

namespace {

// f(a, n, width, k): looks from row k on for the row with the largest element in column k. Exchanges it with row k.
// Returns whether it is another row.
std::string pivot_function(Functions& f) {
  return f.get("bring_pivot", [](Text& text, const std::string& name) {
    text.open("static int {}(double *a, ptrdiff_t n, ptrdiff_t width, ptrdiff_t k)", name);
    text.line("ptrdiff_t pivot = k;");
    text.open("for (ptrdiff_t i = k + 1; i < n; ++i)");
    text.line("const double x = a[i * width + k], best = a[pivot * width + k];");
    text.line("if ((x < 0 ? -x : x) > (best < 0 ? -best : best)) pivot = i;");
    text.close();
    text.line("if (pivot == k) return 0;");
    text.open("for (ptrdiff_t j = 0; j < width; ++j)");
    text.line("const double x = a[k * width + j];");
    text.line("a[k * width + j] = a[pivot * width + j];");
    text.line("a[pivot * width + j] = x;");
    text.close();
    text.line("return 1;");
    text.close();
  });
}

// f(a, width, k, i): takes as much of row k from row i as makes column k zero, which is not written.
std::string eliminate_function(Functions& f) {
  return f.get("eliminate", [](Text& text, const std::string& name) {
    text.open("static void {}(double *a, ptrdiff_t width, ptrdiff_t k, ptrdiff_t i)", name);
    text.line("const double factor = a[i * width + k] / a[k * width + k];");
    text.open("for (ptrdiff_t j = k + 1; j < width; ++j)");
    text.line("const double part = factor * a[k * width + j];");
    text.line("a[i * width + j] = a[i * width + j] - part;");
    text.close();
    text.close();
  });
}

std::string determinant_function(Functions& f) {
  const std::string pivot = pivot_function(f), eliminate = eliminate_function(f);
  return f.get("determinant", [&](Text& text, const std::string& name) {
    text.open("static double {}(double *a, ptrdiff_t n)", name);
    text.line("double product = 1;");
    text.open("for (ptrdiff_t k = 0; k < n; ++k)");
    text.line("if ({}(a, n, n, k)) product = -product;", pivot);
    text.line("product = product * a[k * n + k];");
    text.line("if (a[k * n + k] == 0) return product;");
    text.line("for (ptrdiff_t i = k + 1; i < n; ++i) {}(a, n, k, i);", eliminate);
    text.close();
    text.line("return product;");
    text.close();
  });
}

// f(a, n): the right half of the rows [A, 1] becomes the inverse.
std::string inverse_function(Functions& f) {
  const std::string pivot = pivot_function(f), eliminate = eliminate_function(f);
  return f.get("invert", [&](Text& text, const std::string& name) {
    text.open("static void {}(double *a, ptrdiff_t n)", name);
    text.line("const ptrdiff_t width = 2 * n;");
    text.open("for (ptrdiff_t k = 0; k < n; ++k)");
    text.line("(void){}(a, n, width, k);", pivot);
    text.open("for (ptrdiff_t i = 0; i < n; ++i)");
    text.line("if (i != k) {}(a, width, k, i);", eliminate);
    text.close();
    text.line("const double divisor = a[k * width + k];");
    text.line("for (ptrdiff_t j = k; j < width; ++j) a[k * width + j] = a[k * width + j] / divisor;");
    text.close();
    text.close();
  });
}

template <bool kInverse>
void write_matrices(const Call& call, std::string&) {
  Writer& w = call.writer;
  Text& text = w.text();
  const Dims dims = call.dims(0);
  const int64_t n = dims.back(), matrices = product(dims, 0, dims.size() - 2), width = kInverse ? 2 * n : n;
  if (matrices == 0 || (kInverse && n == 0)) return;
  const ElementType type = call.type(0);
  const auto narrow = [&](const std::string& x) { return w.converted(ElementType::kDouble, type, x); };
  text.open("for (ptrdiff_t m = 0; m < {}; ++m)", matrices);
  if (n == 0) {
    text.line("{}[m] = {};", call.out(), narrow("1.0"));
    text.close();
    return;
  }
  text.line("double *const a = (double *)(void *){};", w.scratch(static_cast<size_t>(n * width) * sizeof(double)));
  text.line("for (ptrdiff_t i = 0; i < {0}; ++i) a[i / {1} * {2} + i % {1}] = {3};", n * n, n, width,
            w.converted(type, ElementType::kDouble, fmt::format("{}[m * {} + i]", call.in(0), n * n)));
  if (kInverse) {
    text.line("for (ptrdiff_t i = 0; i < {0}; ++i) a[i / {1} * {2} + {1} + i % {1}] = i / {1} == i % {1};", n * n, n,
              width);
    text.line("{}(a, {});", inverse_function(w.functions()), n);
    text.line("for (ptrdiff_t i = 0; i < {}; ++i) {}[m * {} + i] = {};", n * n, call.out(), n * n,
              narrow(fmt::format("a[i / {0} * {1} + {0} + i % {0}]", n, width)));
  } else {
    text.line("{}[m] = {};", call.out(), narrow(fmt::format("{}(a, {})", determinant_function(w.functions()), n)));
  }
  text.close();
}

constexpr OperatorRow kRows[] = {{"Det", "", write_matrices<false>},
                                 {"Inverse", "com.microsoft", write_matrices<true>}};

}  // namespace

std::span<const OperatorRow> matrix_operators() {
  return kRows;
}

}  // namespace treadle::c
