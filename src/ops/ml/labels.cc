// Operators that look up values: LabelEncoder, CategoryMapper and OneHotEncoder.

#include <algorithm>
#include <cmath>
#include <cstring>

#include "op/axis_rules.h"
#include "op/op_def.h"
#include "op/pieces.h"
#include "op/refused_element.h"
#include "ops/costs.h"
#include "ops/ml/mappings.h"

namespace treadle::ml {

bool Mapping::run(const void* x, void* y, int64_t count) const {
  const int64_t otherwise = values.element_count() - 1;
  const size_t width = is_string(values.type()) ? 0 : byte_width(values.type());
  StopPoll stop;
  for (int64_t i = 0; i < count; ++i) {
    int64_t at = keys.find(x, i);
    if (at < 0) at = otherwise;
    if (width == 0) {
      static_cast<String*>(y)[i] = values.data<String>()[at];
      if (stop.after(text_ns(values.data<String>()[at]))) return false;
    } else {
      std::memcpy(static_cast<std::byte*>(y) + static_cast<size_t>(i) * width,
                  values.data<std::byte>() + static_cast<size_t>(at) * width, width);
    }
    if (stop.after(costs::kLabelFindNs)) return false;
  }
  return true;
}

namespace {

void copy_elements(const Tensor& from, Tensor& to) {
  if (is_string(from.type())) {
    std::copy_n(from.data<String>(), from.element_count(), to.mutable_data<String>());
  } else if (from.byte_size() > 0) {
    std::memcpy(to.mutable_raw(), from.raw(), from.byte_size());
  }
}

// Sets the last value from the attributes default_*.
void set_default(const ir::Attributes& attributes, Tensor& values) {
  const int64_t last = values.element_count() - 1;
  const ir::Attribute* tensor = attributes.find("default_tensor");
  const Tensor* given = tensor && tensor->as_tensor().element_count() > 0 ? &tensor->as_tensor() : nullptr;
  const int64_t integer = given ? 0 : attributes.get_int("default_int64", -1);
  const float number = given ? 0 : attributes.get_float("default_float", -0.0f);
  switch (values.type()) {
    case ElementType::kString:
      values.mutable_data<String>()[last] =
          given ? given->data<String>()[0] : String(attributes.get_string("default_string", "_Unused"));
      return;
    case ElementType::kFloat:
      values.mutable_data<float>()[last] = given ? static_cast<float>(given->double_at(0)) : number;
      return;
    case ElementType::kDouble:
      values.mutable_data<double>()[last] = given ? given->double_at(0) : static_cast<double>(number);
      return;
    case ElementType::kInt16:
      values.mutable_data<int16_t>()[last] = static_cast<int16_t>(given ? given->int64_at(0) : integer);
      return;
    case ElementType::kInt32:
      values.mutable_data<int32_t>()[last] = static_cast<int32_t>(given ? given->int64_at(0) : integer);
      return;
    default:
      values.mutable_data<int64_t>()[last] = given ? given->int64_at(0) : integer;
  }
}

Result<Mapping> make_mapping(const ir::Attributes& attributes, const Tensor& keys, const Tensor& values) {
  const int64_t count = values.element_count();
  if (keys.element_count() != count) {
    return error(Code::kInvalidModel, "there are {} keys, expected one for each of the {} values", keys.element_count(),
                 count);
  }
  TREADLE_ASSIGN(Tensor with_default, Tensor::allocate(values.type(), {count + 1}));
  copy_elements(values, with_default);
  set_default(attributes, with_default);
  return Mapping{Dictionary(keys), std::move(with_default)};
}

// Mappings from integers to strings and back.
Result<Mappings> make_both_ways(const ir::Attributes& attributes, const Tensor& integers, const Tensor& strings) {
  Mappings both;
  TREADLE_ASSIGN(Mapping forward, make_mapping(attributes, strings, integers));
  TREADLE_ASSIGN(Mapping backward, make_mapping(attributes, integers, strings));
  both.list.push_back(std::move(forward));
  both.list.push_back(std::move(backward));
  return both;
}

// The attribute `prefix`_tensor, _strings, _int64s or _floats that is given.
Result<Tensor> read_list(const ir::Attributes& attributes, const std::string& prefix) {
  if (const ir::Attribute* tensor = attributes.find(prefix + "_tensor")) return tensor->as_tensor();
  if (attributes.has(prefix + "_strings")) return to_tensor(attributes.get_strings(prefix + "_strings"));
  if (attributes.has(prefix + "_int64s")) return to_tensor(attributes.get_ints(prefix + "_int64s"));
  if (attributes.has(prefix + "_floats")) return Tensor::of_float(attributes.get_floats(prefix + "_floats"));
  return error(Code::kInvalidModel,
               "no {0} are given, expected one of the attributes {0}_tensor, {0}_strings, {0}_int64s and {0}_floats",
               prefix);
}

bool is_label_type(ElementType type) {
  constexpr ElementType kTypes[] = {ElementType::kFloat, ElementType::kDouble, ElementType::kInt16,
                                    ElementType::kInt32, ElementType::kInt64,  ElementType::kString};
  return std::find(std::begin(kTypes), std::end(kTypes), type) != std::end(kTypes);
}

Result<Mappings> parse_label_encoder(const ir::NodeInfo& node) {
  const ir::Attributes& a = node.attributes;
  if (node.version->since == 1) {
    const auto classes = a.get_strings("classes_strings");
    std::vector<int64_t> positions(classes.size());
    for (size_t i = 0; i < positions.size(); ++i) positions[i] = static_cast<int64_t>(i);
    return make_both_ways(a, to_tensor(positions), to_tensor(classes));
  }
  TREADLE_ASSIGN(const Tensor keys, read_list(a, "keys"));
  TREADLE_ASSIGN(const Tensor values, read_list(a, "values"));
  for (const Tensor* list : {&keys, &values}) {
    if (list->rank() == 1) continue;
    return error(Code::kInvalidModel, "{} are of rank {}, expected a list", list == &keys ? "keys" : "values",
                 list->rank());
  }
  if (!is_label_type(keys.type()) || !is_label_type(values.type())) {
    return error(Code::kInvalidModel,
                 "keys and values are of types {} and {}, expected float, double, int64, int32, int16 or string",
                 name(keys.type()), name(values.type()));
  }
  if (const ir::Attribute* otherwise = a.find("default_tensor")) {
    const Tensor& t = otherwise->as_tensor();
    if (t.element_count() > 1) {
      return error(Code::kInvalidModel, "the default has {} elements, expected one", t.element_count());
    }
    if (t.element_count() > 0 && t.type() != values.type()) {
      return error(Code::kInvalidModel, "the default is of type {}, expected the type of the values, {}",
                   name(t.type()), name(values.type()));
    }
  }
  TREADLE_ASSIGN(Mapping mapping, make_mapping(a, keys, values));
  Mappings one;
  one.list.push_back(std::move(mapping));
  return one;
}

Result<Mappings> parse_category_mapper(const ir::NodeInfo& node) {
  const ir::Attributes& a = node.attributes;
  if (!a.has("cats_int64s") || !a.has("cats_strings")) {
    return error(Code::kInvalidModel, "expected both cats_int64s and cats_strings");
  }
  return make_both_ways(a, to_tensor(a.get_ints("cats_int64s")), to_tensor(a.get_strings("cats_strings")));
}

Status infer_mapping(InferContext& ctx) {
  const Mappings& mappings = ctx.node.parsed_as<Mappings>();
  const Mapping* mapping = mappings.find(ctx.element(0));
  if (!mapping) {
    return error(Code::kInvalidModel, "X is of type {}, expected the type of the keys, {}", name(ctx.element(0)),
                 name(mappings.list[0].keys.type()));
  }
  if (const Shape* x = ctx.shape(0)) {
    ctx.set_output(0, mapping->values.type(), *x);
  } else {
    ctx.set_output(0, mapping->values.type());
  }
  return {};
}

struct MappingState {
  const Mapping* mapping;
  int64_t count;
};

uint32_t run_mapping(const void* state, void* const* slots, const uint32_t* operands) {
  const auto& s = *static_cast<const MappingState*>(state);
  return unless_stopped(s.mapping->run(slots[operands[0]], slots[operands[1]], s.count));
}

Status prepare_mapping(PrepareContext& ctx) {
  const Operand& x = ctx.inputs[0];
  const Mapping* mapping = ctx.node.parsed_as<Mappings>().find(x.type);
  ctx.set_kernel(run_mapping, ctx.make_state<MappingState>(MappingState{mapping, x.element_count()}));
  return {};
}

// Only if keys or values are strings.
Status compute_mapping(ComputeContext& ctx) {
  const Tensor& x = ctx.tensor(0);
  const Mapping* mapping = ctx.node.parsed_as<Mappings>().find(x.type());
  if (!mapping) return error(Code::kInvalidArgument, "X is of type {}, expected that of the keys", name(x.type()));
  TREADLE_ASSIGN(Tensor * y, ctx.allocate(0, mapping->values.type(), x.dims()));
  return mapping->run(x.raw(), y->mutable_raw(), x.element_count()) ? Status() : stopped();
}

// ---- OneHotEncoder ----

struct Categories {
  Dictionary strings, integers;
  int64_t string_count = 0, integer_count = 0;
  bool zeros = true;  // whether an unknown category becomes a row of zeros; otherwise it is an error

  int64_t columns(ElementType x) const { return is_string(x) ? string_count : integer_count; }
  // Returns 0, or refuse(position) for an element that is no category.
  template <class Find, class Refuse>
  uint32_t run(int64_t count, int64_t columns, float* row, Find&& find, Refuse&& refuse) const {
    if (!fill_in_pieces(row, 0, static_cast<size_t>(count * columns) * sizeof(float))) {
      return fail(KernelError::kStopped);
    }
    StopPoll stop;
    for (int64_t i = 0; i < count; ++i, row += columns) {
      if (stop.after(costs::kLabelFindNs)) return fail(KernelError::kStopped);
      const int64_t at = find(i);
      if (at >= 0) {
        row[at] = 1;
      } else if (!zeros) {
        return refuse(i);
      }
    }
    return 0;
  }
};

Result<Categories> parse_one_hot_encoder(const ir::NodeInfo& node) {
  const auto strings = node.attributes.get_strings("cats_strings");
  const auto integers = node.attributes.get_ints("cats_int64s");
  return Categories{Dictionary(to_tensor(strings)), Dictionary(to_tensor(integers)),
                    static_cast<int64_t>(strings.size()), static_cast<int64_t>(integers.size()),
                    node.attributes.get_int("zeros", 1) != 0};
}

Status infer_one_hot_encoder(InferContext& ctx) {
  const int64_t columns = ctx.node.parsed_as<Categories>().columns(ctx.element(0));
  if (columns == 0)
    return error(Code::kInvalidModel,
                 "X is of type {}, but no categories of that type are given: expected attribute {}",
                 name(ctx.element(0)), is_string(ctx.element(0)) ? "cats_strings" : "cats_int64s");
  const Shape* x = ctx.shape(0);
  if (!x) return ctx.set_output(0, ElementType::kFloat), Status();
  Shape out = *x;
  out.push_back(Dim(columns));
  ctx.set_output(0, ElementType::kFloat, std::move(out));
  return {};
}

struct OneHotState {
  const Categories* categories;
  int64_t count;
};

template <class T>
uint32_t run_one_hot(const void* state, void* const* slots, const uint32_t* operands) {
  const auto& s = *static_cast<const OneHotState*>(state);
  const auto* x = static_cast<const T*>(slots[operands[0]]);
  const auto find = [&](int64_t i) -> int64_t {
    if constexpr (std::is_floating_point_v<T>) {
      if (!(std::abs(x[i]) < static_cast<T>(INT64_MAX))) return -1;
    }
    return s.categories->integers.find(static_cast<int64_t>(x[i]));
  };
  const auto refuse = [&](int64_t i) {
    return refuse_number({"X", i}, static_cast<double>(x[i]), "one of attribute cats_int64s");
  };
  return s.categories->run(s.count, s.categories->integer_count, static_cast<float*>(slots[operands[1]]), find, refuse);
}

Status prepare_one_hot_encoder(PrepareContext& ctx) {
  const Operand& x = ctx.inputs[0];
  const auto* s = ctx.make_state<OneHotState>(OneHotState{&ctx.node.parsed_as<Categories>(), x.element_count()});
  ctx.set_kernel(x.type == ElementType::kFloat    ? run_one_hot<float>
                 : x.type == ElementType::kDouble ? run_one_hot<double>
                 : x.type == ElementType::kInt32  ? run_one_hot<int32_t>
                                                  : run_one_hot<int64_t>,
                 s);
  return {};
}

// Only if X holds strings.
Status compute_one_hot_encoder(ComputeContext& ctx) {
  const Tensor& x = ctx.tensor(0);
  const Categories& categories = ctx.node.parsed_as<Categories>();
  Dims dims = x.dims();
  dims.push_back(categories.string_count);
  TREADLE_ASSIGN(Tensor * y, ctx.allocate(0, ElementType::kFloat, std::move(dims)));
  const auto find = [&](int64_t i) { return categories.strings.find(x.raw(), i); };
  Status refused;
  const auto refuse = [&](int64_t i) {
    refused = error(Code::kRuntime, "X[{}] is '{}', expected one of attribute cats_strings", i,
                    std::string_view(x.data<String>()[i]));
    return fail(KernelError::kInvalidValue);
  };
  const uint32_t failed =
      categories.run(x.element_count(), categories.string_count, y->mutable_data<float>(), find, refuse);
  if (!refused.ok()) return refused;
  return kernel_status(failed);
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
  op.parse<ml::parse_label_encoder>()
      .infer(ml::infer_mapping)
      .prepare(ml::prepare_mapping)
      .compute(ml::compute_mapping)
      .axes(axes::element_by_element, axes::unchanged);
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
  op.parse<ml::parse_category_mapper>()
      .infer(ml::infer_mapping)
      .prepare(ml::prepare_mapping)
      .compute(ml::compute_mapping)
      .axes(axes::element_by_element, axes::unchanged);
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
  op.parse<ml::parse_one_hot_encoder>()
      .infer(ml::infer_one_hot_encoder)
      .prepare(ml::prepare_one_hot_encoder)
      .compute(ml::compute_one_hot_encoder)
      .can_fail()
      .axes(axes::element_by_element, axes::unchanged);
}
