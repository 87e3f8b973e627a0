// Operators that look values up: LabelEncoder, CategoryMapper and OneHotEncoder.

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>
#include <unordered_map>

#include "op/op_def.h"

namespace treadle::ml {

namespace {

// A key or value of any of the types that labels come in. Floats are looked up by value; NaN finds NaN.
struct Label {
  std::string text;
  double number = 0;
  int64_t integer = 0;
};

struct LabelList {
  ElementType type = ElementType::kUndefined;
  std::vector<Label> labels;
};

Label label_at(const Tensor& t, int64_t i) {
  if (is_string(t.type())) return {t.data<std::string>()[i], 0, 0};
  if (is_float(t.type())) return {{}, t.double_at(i), 0};
  return {{}, 0, t.int64_at(i)};
}

void set_label(Tensor& t, int64_t i, const Label& label) {
  switch (t.type()) {
    case ElementType::kString:
      t.mutable_data<std::string>()[i] = label.text;
      return;
    case ElementType::kFloat:
      t.mutable_data<float>()[i] = static_cast<float>(label.number);
      return;
    case ElementType::kDouble:
      t.mutable_data<double>()[i] = label.number;
      return;
    case ElementType::kInt64:
      t.mutable_data<int64_t>()[i] = label.integer;
      return;
    case ElementType::kInt32:
      t.mutable_data<int32_t>()[i] = static_cast<int32_t>(label.integer);
      return;
    default:
      t.mutable_data<int16_t>()[i] = static_cast<int16_t>(label.integer);
  }
}

// From a label to its position among the keys; of equal keys the first counts.
class Dictionary {
 public:
  explicit Dictionary(const LabelList& keys) : type_(keys.type) {
    for (size_t i = 0; i < keys.labels.size(); ++i) index_.emplace(encode(keys.labels[i]), i);
  }
  // -1: no such key.
  int64_t find(const Label& label) const {
    const auto found = index_.find(encode(label));
    return found == index_.end() ? -1 : static_cast<int64_t>(found->second);
  }

 private:
  std::string encode(const Label& label) const {
    if (is_string(type_)) return label.text;
    char bytes[8];
    const double number = std::isnan(label.number) ? std::nan("") : label.number + 0.0;  // one NaN, one zero
    std::memcpy(bytes, is_float(type_) ? static_cast<const void*>(&number) : &label.integer, sizeof bytes);
    return std::string(bytes, sizeof bytes);
  }
  ElementType type_;
  std::unordered_map<std::string, size_t> index_;
};

// `prefix`_tensor, _strings, _int64s or _floats, whichever is there.
LabelList read_list(const ir::Attributes& attributes, const std::string& prefix) {
  LabelList list;
  if (const ir::Attribute* tensor = attributes.find(prefix + "_tensor")) {
    const Tensor& t = tensor->as_tensor();
    list.type = t.type();
    for (int64_t i = 0; i < t.element_count(); ++i) list.labels.push_back(label_at(t, i));
  } else if (attributes.has(prefix + "_strings")) {
    list.type = ElementType::kString;
    for (const std::string& s : attributes.get_strings(prefix + "_strings")) list.labels.push_back({s, 0, 0});
  } else if (attributes.has(prefix + "_int64s")) {
    list.type = ElementType::kInt64;
    for (int64_t i : attributes.get_ints(prefix + "_int64s")) list.labels.push_back({{}, 0, i});
  } else if (attributes.has(prefix + "_floats")) {
    list.type = ElementType::kFloat;
    for (float f : attributes.get_floats(prefix + "_floats")) list.labels.push_back({{}, static_cast<double>(f), 0});
  }
  return list;
}

Label read_default(const ir::Attributes& attributes) {
  if (const ir::Attribute* tensor = attributes.find("default_tensor")) {
    if (tensor->as_tensor().element_count() > 0) return label_at(tensor->as_tensor(), 0);
  }
  return {std::string(attributes.get_string("default_string", "_Unused")),
          static_cast<double>(attributes.get_float("default_float", -0.0f)), attributes.get_int("default_int64", -1)};
}

Status map_labels(ComputeContext& ctx, const LabelList& keys, const LabelList& values) {
  const Tensor& x = ctx.tensor(0);
  if (keys.labels.size() != values.labels.size()) {
    return error(Code::kInvalidModel, "there are {} keys and {} values", keys.labels.size(), values.labels.size());
  }
  if (keys.type != x.type()) {
    return error(Code::kInvalidModel, "the keys are of type {}, X is of type {}", name(keys.type), name(x.type()));
  }
  TREADLE_ASSIGN(Tensor * y, ctx.allocate(0, values.type, x.dims()));
  const Dictionary dictionary(keys);
  const Label otherwise = read_default(ctx.attributes());
  for (int64_t i = 0; i < x.element_count(); ++i) {
    const int64_t at = dictionary.find(label_at(x, i));
    set_label(*y, i, at < 0 ? otherwise : values.labels[static_cast<size_t>(at)]);
  }
  return {};
}

Status set_like_x(InferContext& ctx, ElementType element) {
  if (const Shape* x = ctx.shape(0)) {
    ctx.set_output(0, element, *x);
  } else {
    ctx.set_output(0, element);
  }
  return {};
}

ElementType other_type(ElementType x) {
  return is_string(x) ? ElementType::kInt64 : ElementType::kString;
}

// Strings to their positions and back, or between two lists: both directions by the type of X.
Status map_both_ways(ComputeContext& ctx, const LabelList& integers, const LabelList& strings) {
  const bool forward = is_string(ctx.tensor(0).type());
  return map_labels(ctx, forward ? strings : integers, forward ? integers : strings);
}

Status infer_label_encoder(InferContext& ctx) {
  if (ctx.version() == 1) return set_like_x(ctx, other_type(ctx.element(0)));
  const LabelList values = read_list(ctx.attributes(), "values");
  if (values.type == ElementType::kUndefined) return error(Code::kInvalidModel, "no attribute values_* is given");
  return set_like_x(ctx, values.type);
}

Status compute_label_encoder(ComputeContext& ctx) {
  const ir::Attributes& a = ctx.attributes();
  if (ctx.version() > 1) return map_labels(ctx, read_list(a, "keys"), read_list(a, "values"));
  const LabelList strings = read_list(a, "classes");
  LabelList positions{ElementType::kInt64, {}};
  for (size_t i = 0; i < strings.labels.size(); ++i) positions.labels.push_back({{}, 0, static_cast<int64_t>(i)});
  return map_both_ways(ctx, positions, {ElementType::kString, strings.labels});
}

Status infer_category_mapper(InferContext& ctx) {
  return set_like_x(ctx, other_type(ctx.element(0)));
}

LabelList integers_of(const ir::Attributes& attributes) {
  LabelList list{ElementType::kInt64, {}};
  for (int64_t i : attributes.get_ints("cats_int64s")) list.labels.push_back({{}, 0, i});
  return list;
}
LabelList strings_of(const ir::Attributes& attributes) {
  LabelList list{ElementType::kString, {}};
  for (const std::string& s : attributes.get_strings("cats_strings")) list.labels.push_back({s, 0, 0});
  return list;
}

Status compute_category_mapper(ComputeContext& ctx) {
  return map_both_ways(ctx, integers_of(ctx.attributes()), strings_of(ctx.attributes()));
}

// ---- OneHotEncoder ----

LabelList categories(const ir::Attributes& attributes, ElementType x) {
  return is_string(x) ? strings_of(attributes) : integers_of(attributes);
}

Status infer_one_hot_encoder(InferContext& ctx) {
  const LabelList list = categories(ctx.attributes(), ctx.element(0));
  if (list.labels.empty()) return error(Code::kInvalidModel, "no categories are given for X's type");
  const Shape* x = ctx.shape(0);
  if (!x) return ctx.set_output(0, ElementType::kFloat), Status();
  Shape out = *x;
  out.push_back(Dim(static_cast<int64_t>(list.labels.size())));
  ctx.set_output(0, ElementType::kFloat, std::move(out));
  return {};
}

Status compute_one_hot_encoder(ComputeContext& ctx) {
  const Tensor& x = ctx.tensor(0);
  const LabelList list = categories(ctx.attributes(), x.type());
  const Dictionary dictionary(list);
  const auto columns = static_cast<int64_t>(list.labels.size());
  Dims dims = x.dims();
  dims.push_back(columns);
  TREADLE_ASSIGN(Tensor * y, ctx.allocate(0, ElementType::kFloat, std::move(dims)));
  auto* row = y->mutable_data<float>();
  std::fill_n(row, y->element_count(), 0.0f);
  const bool zeros = ctx.attributes().get_int("zeros", 1) != 0;
  for (int64_t i = 0; i < x.element_count(); ++i, row += columns) {
    Label label = label_at(x, i);
    if (is_float(x.type())) label.integer = static_cast<int64_t>(label.number);
    const int64_t at = dictionary.find(label);
    if (at >= 0) {
      row[at] = 1;
    } else if (!zeros) {
      return error(Code::kRuntime, "element {} of X is none of the {} categories", i, columns);
    }
  }
  return {};
}

}  // namespace

}  // namespace treadle::ml

TREADLE_OP(LabelEncoder, "ai.onnx.ml") {
  op.since(1)
      .in("X", "T1")
      .out("Y", "T2")
      .optional("classes_strings", ir::AttributeKind::kStrings)
      .attr("default_int64", -1)
      .attr("default_string", "_Unused")
      .type("T1", types::kInt64OrString)
      .type("T2", types::kInt64OrString);
  op.since(2)
      .drop_attr("classes_strings")
      .attr("default_float", -0.0)
      .optional("keys_floats", ir::AttributeKind::kFloats)
      .optional("keys_int64s", ir::AttributeKind::kInts)
      .optional("keys_strings", ir::AttributeKind::kStrings)
      .optional("values_floats", ir::AttributeKind::kFloats)
      .optional("values_int64s", ir::AttributeKind::kInts)
      .optional("values_strings", ir::AttributeKind::kStrings)
      .type("T1", tensors(ElementType::kFloat, ElementType::kInt64, ElementType::kString))
      .type("T2", tensors(ElementType::kFloat, ElementType::kInt64, ElementType::kString));
  op.since(4)
      .optional("default_tensor", ir::AttributeKind::kTensor)
      .optional("keys_tensor", ir::AttributeKind::kTensor)
      .optional("values_tensor", ir::AttributeKind::kTensor)
      .type("T1", tensors(ElementType::kFloat, ElementType::kInt16, ElementType::kInt32, ElementType::kInt64,
                          ElementType::kString, ElementType::kDouble))
      .type("T2", tensors(ElementType::kFloat, ElementType::kInt16, ElementType::kInt32, ElementType::kInt64,
                          ElementType::kString, ElementType::kDouble));
  op.infer(ml::infer_label_encoder).compute(ml::compute_label_encoder);
}

TREADLE_OP(CategoryMapper, "ai.onnx.ml") {
  op.since(1)
      .in("X", "T1")
      .out("Y", "T2")
      .optional("cats_int64s", ir::AttributeKind::kInts)
      .optional("cats_strings", ir::AttributeKind::kStrings)
      .attr("default_int64", -1)
      .attr("default_string", "_Unused")
      .type("T1", types::kInt64OrString)
      .type("T2", types::kInt64OrString);
  op.infer(ml::infer_category_mapper).compute(ml::compute_category_mapper);
}

TREADLE_OP(OneHotEncoder, "ai.onnx.ml") {
  op.since(1)
      .in("X", "T")
      .out("Y", "tensor(float)")
      .optional("cats_int64s", ir::AttributeKind::kInts)
      .optional("cats_strings", ir::AttributeKind::kStrings)
      .attr("zeros", 1)
      .type("T", tensors(ElementType::kFloat, ElementType::kInt32, ElementType::kInt64, ElementType::kString,
                         ElementType::kDouble));
  op.infer(ml::infer_one_hot_encoder).compute(ml::compute_one_hot_encoder).can_fail();
}
