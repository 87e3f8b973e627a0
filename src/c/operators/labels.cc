// LabelEncoder of numbers, OneHotEncoder of integers (ops/ml/labels.cc), FeatureVectorizer (ops/ml/vectorizers.cc).

#include <algorithm>
#include <cstring>
#include <numeric>
#include <vector>

#include "c/writer.h"
#include "op/op_def.h"
#include "ops/ml/mappings.h"
#include "ops/ml/predict.h"

namespace treadle::c {

namespace {

// f(keys, n, x): the position of x in keys, which are sorted and differ, with a NaN last; -1: there is none.
std::string find_function(Functions& f, ElementType type) {
  const std::string less =
      is_float(type) ? "keys[middle] < x || (x != x && keys[middle] == keys[middle])" : "keys[middle] < x";
  const std::string equal = is_float(type) ? "keys[low] == x || (x != x && keys[low] != keys[low])" : "keys[low] == x";
  return f.get(fmt::format("find_key_{}", suffix(type)), [&](Text& text, const std::string& name) {
    text.open("static ptrdiff_t {0}(const {1} *keys, ptrdiff_t n, {1} x)", name, stored(type));
    text.line("ptrdiff_t low = 0, high = n;");
    text.open("while (low < high)");
    text.line("const ptrdiff_t middle = low + (high - low) / 2;");
    text.line("if ({}) low = middle + 1;", less);
    text.line("else high = middle;");
    text.close();
    text.line("return low < n && ({}) ? low : -1;", equal);
    text.close();
  });
}

// The positions of keys in their order. Of equal keys the first counts; zeros are equal, and so are NaNs.
template <class T>
std::vector<size_t> sorted(std::span<const T> keys) {
  std::vector<size_t> order(keys.size());
  std::iota(order.begin(), order.end(), size_t{0});
  const auto less = [&](size_t a, size_t b) { return keys[a] < keys[b] || (keys[b] != keys[b] && keys[a] == keys[a]); };
  std::ranges::sort(order, [&](size_t a, size_t b) { return less(a, b) || (!less(b, a) && a < b); });
  const auto [first, last] = std::ranges::unique(order, [&](size_t a, size_t b) { return !less(a, b) && !less(b, a); });
  order.erase(first, last);
  return order;
}

template <class T>
void encode(const Call& call, std::span<const T> keys, const Tensor& values) {
  Writer& w = call.writer;
  Text& text = w.text();
  const Dims dims = call.dims(0);
  const int64_t count = product(dims, 0, dims.size());
  if (count == 0) return;
  std::vector<size_t> order = sorted(keys);
  std::vector<T> in_order;
  for (const size_t i : order) in_order.push_back(keys[i]);
  // The default is the last value.
  order.push_back(keys.size());
  const size_t width = byte_width(values.type());
  std::vector<std::byte> elements(order.size() * width);
  for (size_t i = 0; i < order.size(); ++i) {
    std::memcpy(elements.data() + i * width, static_cast<const std::byte*>(values.raw()) + order[i] * width, width);
  }
  if (in_order.empty()) in_order.push_back(T(0));
  const std::string table = w.table("keys", call.type(0), in_order.data(), in_order.size()),
                    value = w.table("values", values.type(), elements.data(), order.size());
  const size_t n = order.size() - 1;
  text.open("for (ptrdiff_t i = 0; i < {}; ++i)", count);
  text.line("const ptrdiff_t at = {}({}, {}, {}[i]);", find_function(w.functions(), call.type(0)), table, n,
            call.in(0));
  text.line("{}[i] = {}[at < 0 ? {} : at];", call.out(), value, n);
  text.close();
}

void write_label_encoder(const Call& call, std::string& why) {
  const ir::Attributes& a = call.node.attributes;
  const ml::Mapping* mapping = call.node.parsed_as<ml::Mappings>().find(call.type(0));
  const ir::Attribute* tensor = a.find("keys_tensor");
  const Tensor* keys = tensor ? &tensor->as_tensor() : nullptr;
  switch (call.type(0)) {
    case ElementType::kFloat:
      return encode(call, keys ? keys->span<float>() : a.get_floats("keys_floats"), mapping->values);
    case ElementType::kInt64:
      return encode(call, keys ? keys->span<int64_t>() : a.get_ints("keys_int64s"), mapping->values);
    case ElementType::kDouble:
      return encode(call, keys->span<double>(), mapping->values);
    case ElementType::kInt32:
      return encode(call, keys->span<int32_t>(), mapping->values);
    case ElementType::kInt16:
      return encode(call, keys->span<int16_t>(), mapping->values);
    default:
      why = "its keys are texts";
  }
}

void write_one_hot_encoder(const Call& call, std::string&) {
  Writer& w = call.writer;
  Text& text = w.text();
  const Dims dims = call.dims(0);
  const int64_t count = product(dims, 0, dims.size());
  const auto categories = call.node.attributes.get_ints("cats_int64s");
  if (count == 0) return;
  const std::vector<size_t> order = sorted(categories);
  std::vector<int64_t> keys;
  std::vector<int32_t> columns;
  for (const size_t i : order) keys.push_back(categories[i]), columns.push_back(static_cast<int32_t>(i));
  const bool real = is_float(call.type(0));
  const std::string x = call.in(0) + "[i]";
  text.line("memset({}, 0, {});", call.out(), static_cast<size_t>(count) * categories.size() * sizeof(float));
  text.open("for (ptrdiff_t i = 0; i < {}; ++i)", count);
  const std::string find = fmt::format("{}({}, {}, (int64_t){})", find_function(w.functions(), ElementType::kInt64),
                                       w.table("keys", ElementType::kInt64, keys.data(), keys.size()), keys.size(), x);
  if (real) {
    const std::string_view limit =
        call.type(0) == ElementType::kFloat ? "9223372036854775808.0f" : "9223372036854775808.0";
    text.line("const ptrdiff_t at = {0} > -{1} && {0} < {1} ? {2} : -1;", x, limit, find);
  } else {
    text.line("const ptrdiff_t at = {};", find);
  }
  text.line("if (at >= 0) {}[i * {} + {}[at]] = 1;", call.out(), categories.size(),
            w.table("columns", ElementType::kInt32, columns.data(), columns.size()));
  if (call.node.attributes.get_int("zeros", 1) == 0) text.line("else return {};", w.error("INVALID_VALUE"));
  text.close();
}

void write_feature_vectorizer(const Call& call, std::string&) {
  Writer& w = call.writer;
  Text& text = w.text();
  const Dims out = call.result_dims();
  const auto given = call.node.attributes.get_ints("inputdimensions");
  if (product(out, 0, out.size()) == 0) return;
  text.open("for (ptrdiff_t r = 0; r < {}; ++r)", out[0]);
  int64_t first = 0;
  for (size_t i = 0; i < call.inputs(); ++i) {
    const int64_t found = ml::rows_of(call.dims(i)).features;
    const int64_t columns = i < given.size() ? given[i] : found, copied = std::min(found, columns);
    if (copied > 0) {
      text.line("for (ptrdiff_t i = 0; i < {}; ++i) {}[r * {} + {} + i] = {};", copied, call.out(), out[1], first,
                w.converted(call.type(i), ElementType::kFloat, fmt::format("{}[r * {} + i]", call.in(i), found)));
    }
    if (columns > copied) {
      text.line("for (ptrdiff_t i = {}; i < {}; ++i) {}[r * {} + {} + i] = 0;", copied, columns, call.out(), out[1],
                first);
    }
    first += columns;
  }
  text.close();
}

constexpr std::string_view kDomain = "ai.onnx.ml";
constexpr OperatorRow kRows[] = {
    {"LabelEncoder", kDomain, write_label_encoder},
    {"OneHotEncoder", kDomain, write_one_hot_encoder},
    {"FeatureVectorizer", kDomain, write_feature_vectorizer},
};

}  // namespace

std::span<const OperatorRow> label_operators() {
  return kRows;
}

}  // namespace treadle::c
