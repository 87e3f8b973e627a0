// Scaler, Normalizer, Binarizer, Imputer, ArrayFeatureExtractor (ops/ml/features.cc).

#include <vector>

#include "c/writer.h"
#include "op/op_def.h"

namespace treadle::c {

namespace {

// A tensor as rows along its last axis.
struct Rows {
  int64_t rows = 1, columns = 1;

  explicit Rows(const Dims& dims) : columns(dims.empty() ? 1 : dims.back()) {
    if (!dims.empty()) rows = product(dims, 0, dims.size() - 1);
  }
  int64_t count() const { return rows * columns; }
};

// The value of an attribute for each column: a number, or a table that the column indexes.
std::string per_column(Writer& w, const char* name, std::span<const float> values, const Rows& table, float otherwise) {
  if (values.empty()) return literal(otherwise);
  if (values.size() == 1) return literal(values[0]);
  return fmt::format("{}[i % {}]", w.table(name, ElementType::kFloat, values.data(), values.size()), table.columns);
}

void write_scaler(const Call& call, std::string&) {
  Writer& w = call.writer;
  Text& text = w.text();
  const Rows table(call.dims(0));
  if (table.count() == 0) return;
  const auto& attributes = call.node.attributes;
  const std::string offset = per_column(w, "offset", attributes.get_floats("offset"), table, 0),
                    factor = per_column(w, "factor", attributes.get_floats("scale"), table, 1);
  text.open("for (ptrdiff_t i = 0; i < {}; ++i)", table.count());
  text.line("const float x = {};", w.converted(call.type(0), ElementType::kFloat, call.in(0) + "[i]"));
  text.line("{}[i] = (x - {}) * {};", call.out(), offset, factor);
  text.close();
}

// f(x, n): divides a row by its norm, unless that is 0.
std::string norm_function(Functions& f, std::string_view norm) {
  const std::string sqrt = norm == "L2" ? f.sqrt(ElementType::kDouble) : "";
  const std::string_view kind = norm == "L2" ? "l2" : norm == "L1" ? "l1" : "max";
  return f.get(fmt::format("divide_by_{}_norm", kind), [&](Text& text, const std::string& name) {
    text.open("static void {}(float *x, ptrdiff_t n)", name);
    if (norm == "MAX") {
      text.line("float norm = n > 0 ? x[0] : 0;");
      text.line("for (ptrdiff_t i = 1; i < n; ++i) norm = norm < x[i] ? x[i] : norm;");
    } else {
      text.line("double sum = 0;");
      text.open("for (ptrdiff_t i = 0; i < n; ++i)");
      text.line("const double a = (double)x[i], term = {};", norm == "L1" ? "a < 0 ? -a : a" : "a * a");
      text.line("sum = sum + term;");
      text.close();
      text.line("const float norm = (float){};", norm == "L1" ? "sum" : sqrt + "(sum)");
    }
    text.line("if (norm == 0) return;");
    text.line("for (ptrdiff_t i = 0; i < n; ++i) x[i] = x[i] / norm;");
    text.close();
  });
}

void write_normalizer(const Call& call, std::string&) {
  Writer& w = call.writer;
  Text& text = w.text();
  const Rows table(call.dims(0));
  if (table.count() == 0) return;
  text.line("for (ptrdiff_t i = 0; i < {}; ++i) {}[i] = {};", table.count(), call.out(),
            w.converted(call.type(0), ElementType::kFloat, call.in(0) + "[i]"));
  text.line("for (ptrdiff_t i = 0; i < {}; ++i) {}({} + i * {}, {});", table.rows,
            norm_function(w.functions(), call.node.attributes.get_string("norm", "MAX")), call.out(), table.columns,
            table.columns);
}

void write_binarizer(const Call& call, std::string&) {
  const Dims dims = call.dims(0);
  const int64_t n = product(dims, 0, dims.size());
  if (n == 0) return;
  call.writer.text().line("for (ptrdiff_t i = 0; i < {}; ++i) {}[i] = (double){}[i] > {};", n, call.out(), call.in(0),
                          literal(static_cast<double>(call.node.attributes.get_float("threshold"))));
}

// T: what x has.
template <class T, class Values>
void impute(const Call& call, Values values, double replaced) {
  Writer& w = call.writer;
  const Rows table(call.dims(0));
  if (table.count() == 0) return;
  std::vector<T> own;
  for (const auto value : values) own.push_back(static_cast<T>(value));
  const std::string value =
      own.size() == 1
          ? literal(own[0])
          : fmt::format("{}[i % {}]", w.table("imputed", call.type(0), own.data(), own.size()), table.columns);
  const std::string x = call.in(0) + "[i]";
  const auto wanted = static_cast<T>(replaced);
  w.text().line("for (ptrdiff_t i = 0; i < {}; ++i) {}[i] = {} ? {} : {};", table.count(), call.out(),
                wanted != wanted ? fmt::format("{0} != {0}", x) : fmt::format("{} == {}", x, literal(wanted)), value,
                x);
}

void write_imputer(const Call& call, std::string&) {
  const auto& a = call.node.attributes;
  const auto floats = a.get_floats("imputed_value_floats");
  const auto integers = a.get_ints("imputed_value_int64s");
  const auto as_float = static_cast<double>(a.get_float("replaced_value_float"));
  const auto as_integer = static_cast<double>(a.get_int("replaced_value_int64"));
  switch (call.type(0)) {
    case ElementType::kFloat:
      return impute<float>(call, floats, as_float);
    case ElementType::kDouble:
      return impute<double>(call, floats, as_float);
    case ElementType::kInt32:
      return impute<int32_t>(call, integers, as_integer);
    default:
      return impute<int64_t>(call, integers, as_integer);
  }
}

void write_extractor(const Call& call, std::string&) {
  Writer& w = call.writer;
  Text& text = w.text();
  const Rows table(call.dims(0));
  const Dims picks = call.dims(1);
  const int64_t count = product(picks, 0, picks.size());
  if (count == 0) return;
  text.open("for (ptrdiff_t k = 0; k < {}; ++k)", count);
  text.line("const int64_t at = {}[k];", call.in(1));
  text.line("if (at < 0 || at >= {}) return {};", table.columns, w.error("INDEX_OUT_OF_RANGE"));
  text.line("for (ptrdiff_t i = 0; i < {}; ++i) {}[i * {} + k] = {}[i * {} + at];", table.rows, call.out(), count,
            call.in(0), table.columns);
  text.close();
}

constexpr OperatorRow kRows[] = {
    {"Scaler", "ai.onnx.ml", write_scaler},
    {"Normalizer", "ai.onnx.ml", write_normalizer},
    {"Binarizer", "ai.onnx.ml", write_binarizer},
    {"Imputer", "ai.onnx.ml", write_imputer},
    {"ArrayFeatureExtractor", "ai.onnx.ml", write_extractor},
};

}  // namespace

std::span<const OperatorRow> feature_operators() {
  return kRows;
}

}  // namespace treadle::c
