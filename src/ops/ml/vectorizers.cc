// Operators that make tables of features from several tensors or from a map: FeatureVectorizer, DictVectorizer,
// CastMap.
//
// A map becomes a table of one row, [1, C]. Exporters of feature pipelines rely on this, and the operators behind
// accept it like a vector of features.

#include <algorithm>
#include <charconv>
#include <numeric>

#include "kernels/convert.h"
#include "kernels/costs.h"
#include "kernels/sort.h"
#include "op/axis_rules.h"
#include "op/op_def.h"
#include "op/pieces.h"
#include "ops/costs.h"
#include "ops/ml/dictionary.h"
#include "ops/ml/predict.h"

namespace treadle::ml {

namespace {

// ---- FeatureVectorizer: the inputs' columns side by side ----

// How many columns input i gives: as many as `inputdimensions` says (cut off, or filled up with zeros), or all.
Dim columns_of(const InferContext& ctx, size_t i) {
  const auto given = ctx.attributes().get_ints("inputdimensions");
  if (i < given.size()) return Dim(given[i]);
  const Shape* x = ctx.shape(i);
  return x ? x->back() : Dim::unknown();
}

Status infer_feature_vectorizer(InferContext& ctx) {
  const auto given = ctx.attributes().get_ints("inputdimensions");
  if (!given.empty() && given.size() != ctx.inputs.size()) {
    return error(Code::kInvalidModel, "attribute inputdimensions has {} entries, expected one for each of {} inputs",
                 given.size(), ctx.inputs.size());
  }
  Dim rows = Dim::unknown(), columns(int64_t{0});
  for (size_t i = 0; i < ctx.inputs.size(); ++i) {
    if (i < given.size() && given[i] < 0) {
      return error(Code::kInvalidModel, "attribute inputdimensions holds {}, expected at least 0", given[i]);
    }
    if (const Shape* x = ctx.shape(i)) {
      TREADLE_TRY(check_rows(*x));
      const Dim count = row_count(*x);
      if (rows.is_known() && count.is_known() && rows.value() != count.value()) {
        return error(Code::kInvalidArgument, "input {} has {} rows, expected those of the inputs before it: {}", i,
                     count.value(), rows.value());
      }
      if (!rows.is_known()) rows = count;
    }
    columns = columns + columns_of(ctx, i);
  }
  ctx.set_output(0, ElementType::kFloat, {rows, columns});
  return {};
}

struct ColumnsPart {
  kernels::TileConverter convert;
  size_t row_bytes;  // distance of rows in the input
  size_t copied, columns;
};

struct FeatureState {
  std::vector<ColumnsPart> parts;
  int64_t rows = 0;
};

uint32_t run_feature_vectorizer(const void* state, void* const* slots, const uint32_t* operands) {
  const auto& s = *static_cast<const FeatureState*>(state);
  auto* y = static_cast<float*>(slots[operands[s.parts.size()]]);
  StopPoll stop;
  for (int64_t row = 0; row < s.rows; ++row) {
    for (size_t i = 0; i < s.parts.size(); ++i) {
      const ColumnsPart& part = s.parts[i];
      const auto* x = static_cast<const std::byte*>(slots[operands[i]]) + static_cast<size_t>(row) * part.row_bytes;
      kernels::convert(part.convert, x, y, part.copied);
      std::fill(y + part.copied, y + part.columns, 0.0f);
      y += part.columns;
      if (stop.after(costs::kFeaturePartNs + static_cast<double>(part.columns))) return fail(KernelError::kStopped);
    }
  }
  return 0;
}

Status prepare_feature_vectorizer(PrepareContext& ctx) {
  const auto given = ctx.attributes().get_ints("inputdimensions");
  auto* s = ctx.make_state<FeatureState>();
  s->rows = ctx.outputs[0].dims[0];
  for (size_t i = 0; i < ctx.inputs.size(); ++i) {
    const Operand& x = ctx.inputs[i];
    const auto found = static_cast<size_t>(rows_of(x.dims).features);
    const size_t columns = i < given.size() ? static_cast<size_t>(given[i]) : found;
    s->parts.push_back({kernels::make_converter(x.type, ElementType::kFloat), found * byte_width(x.type),
                        std::min(found, columns), columns});
  }
  ctx.set_kernel(run_feature_vectorizer, s);
  return {};
}

// ---- DictVectorizer: a map's values in the order of a vocabulary ----

struct Vocabulary {
  Dictionary words;
  int64_t size = 0;
};

Result<Vocabulary> parse_dict_vectorizer(const ir::NodeInfo& node) {
  const auto strings = node.attributes.get_strings("string_vocabulary");
  const auto integers = node.attributes.get_ints("int64_vocabulary");
  if (strings.empty() == integers.empty()) {
    return error(Code::kInvalidModel, "expected one of the attributes string_vocabulary and int64_vocabulary");
  }
  return Vocabulary{Dictionary(strings.empty() ? to_tensor(integers) : to_tensor(strings)),
                    static_cast<int64_t>(std::max(strings.size(), integers.size()))};
}

Status infer_dict_vectorizer(InferContext& ctx) {
  const Vocabulary& vocabulary = ctx.node.parsed_as<Vocabulary>();
  const Type& x = ctx.input(0);
  if (x.kind != Type::Kind::kMap || x.element != vocabulary.words.type()) {
    return error(Code::kInvalidModel, "X is {}, expected a map with keys of the vocabulary's type, {}", x.to_string(),
                 name(vocabulary.words.type()));
  }
  ctx.set_output(0, x.child->element, {Dim(1), Dim(vocabulary.size)});
  return {};
}

// Keys that are not in the vocabulary are left out.
Status compute_dict_vectorizer(ComputeContext& ctx) {
  const Vocabulary& vocabulary = ctx.node.parsed_as<Vocabulary>();
  const Map& x = ctx.inputs[0].map();
  if (x.keys.type() != vocabulary.words.type()) {
    return error(Code::kInvalidArgument, "X has keys of type {}, expected the vocabulary's type, {}",
                 name(x.keys.type()), name(vocabulary.words.type()));
  }
  TREADLE_ASSIGN(Tensor * y, ctx.allocate(0, x.values.type(), {1, vocabulary.size}));
  const bool texts = is_string(y->type());
  const size_t width = byte_width(y->type());
  if (!texts && !fill_in_pieces(y->mutable_raw(), 0, y->byte_size())) return stopped();
  StopPoll stop;
  for (int64_t i = 0; i < x.keys.element_count(); ++i) {
    if (stop.after(texts ? costs::kDictFindNs + costs::kTextNs : costs::kDictFindNs)) return stopped();
    const int64_t at = vocabulary.words.find(x.keys.raw(), i);
    if (at < 0) continue;
    if (texts) {
      y->mutable_data<String>()[at] = x.values.data<String>()[i];
    } else {
      const auto* from = x.values.data<std::byte>() + static_cast<size_t>(i) * width;
      std::copy_n(from, width, y->mutable_data<std::byte>() + static_cast<size_t>(at) * width);
    }
  }
  return {};
}

// ---- CastMap: a map's values in the order of its keys, or at the positions that its keys give ----

struct MapCast {
  ElementType to = ElementType::kFloat;
  int64_t places = -1;  // length of the sparse form; -1: dense
};

Result<MapCast> parse_cast_map(const ir::NodeInfo& node) {
  const std::string_view to = node.attributes.get_string("cast_to", "TO_FLOAT");
  const std::string_view form = node.attributes.get_string("map_form", "DENSE");
  MapCast cast;
  if (to == "TO_STRING") {
    cast.to = ElementType::kString;
  } else if (to == "TO_INT64") {
    cast.to = ElementType::kInt64;
  } else if (to != "TO_FLOAT") {
    return error(Code::kInvalidModel, "attribute cast_to is '{}', expected TO_FLOAT, TO_STRING or TO_INT64", to);
  }
  if (form == "SPARSE") {
    cast.places = node.attributes.get_int("max_map", 1);
    if (cast.places < 1) return error(Code::kInvalidModel, "attribute max_map is {}, expected 1 or more", cast.places);
  } else if (form != "DENSE") {
    return error(Code::kInvalidModel, "attribute map_form is '{}', expected DENSE or SPARSE", form);
  }
  return cast;
}

Status infer_cast_map(InferContext& ctx) {
  const MapCast& cast = ctx.node.parsed_as<MapCast>();
  ctx.set_output(0, cast.to, {Dim(1), cast.places < 0 ? Dim::unknown() : Dim(cast.places)});
  return {};
}

template <class T>
Status parse_number(std::string_view text, T& number) {
  const char* begin = text.data();
  const char* const end = begin + text.size();
  while (begin < end && (*begin == ' ' || *begin == '\t' || *begin == '+')) ++begin;
  const auto [stop, problem] = std::from_chars(begin, end, number);
  if (problem == std::errc() && stop == end) return {};
  return error(Code::kRuntime, "found '{}', expected the text of {}", text,
               std::is_integral_v<T> ? "an integer" : "a number");
}

Status cast_element(const Tensor& from, int64_t i, Tensor& to, int64_t at) {
  const bool text = is_string(from.type());
  switch (to.type()) {
    case ElementType::kString:
      // Six decimals, as in onnxruntime.
      to.mutable_data<String>()[at] =
          text ? from.data<String>()[i] : String(fmt::format("{:f}", from.data<float>()[i]));
      return {};
    case ElementType::kInt64:
      if (text) return parse_number(from.data<String>()[i], to.mutable_data<int64_t>()[at]);
      kernels::cast(from.type(), ElementType::kInt64, from.data<float>() + i, to.mutable_data<int64_t>() + at, 1);
      return {};
    default:
      if (text) return parse_number(from.data<String>()[i], to.mutable_data<float>()[at]);
      to.mutable_data<float>()[at] = from.data<float>()[i];
      return {};
  }
}

Status compute_cast_map(ComputeContext& ctx) {
  const MapCast& cast = ctx.node.parsed_as<MapCast>();
  const Map& x = ctx.inputs[0].map();
  const std::span<const int64_t> keys = x.keys.span<int64_t>();
  CountedVector<int64_t> order(keys.size());
  std::iota(order.begin(), order.end(), int64_t{0});
  const auto before = [&](int64_t a, int64_t b) { return keys[static_cast<size_t>(a)] < keys[static_cast<size_t>(b)]; };
  if (!kernels::sort(order.data(), static_cast<int64_t>(order.size()), before)) return stopped();
  const int64_t columns = cast.places < 0 ? static_cast<int64_t>(keys.size()) : cast.places;
  TREADLE_ASSIGN(Tensor * y, ctx.allocate(0, cast.to, {1, columns}));
  if (!is_string(cast.to) && !fill_in_pieces(y->mutable_raw(), 0, y->byte_size())) return stopped();
  StopPoll stop;
  for (size_t i = 0; i < order.size(); ++i) {
    if (stop.after(costs::kCastMapEntryNs)) return stopped();
    const int64_t key = keys[static_cast<size_t>(order[i])];
    if (cast.places >= 0 && (key < 0 || key >= cast.places)) {
      return error(Code::kRuntime, "X has the key {}, expected 0 to {}", key, cast.places - 1);
    }
    TREADLE_TRY(cast_element(x.values, order[i], *y, cast.places < 0 ? static_cast<int64_t>(i) : key));
  }
  return {};
}

}  // namespace

}  // namespace treadle::ml

TREADLE_OP(FeatureVectorizer, "ai.onnx.ml") {
  op.since(1)
      .in("X", "T1", Arity::kVariadic)
      .out("Y", "tensor(float)")
      .optional("inputdimensions", ir::AttributeKind::kInts)
      .type("T1", types::kMlNumbers);
  op.infer(ml::infer_feature_vectorizer).prepare(ml::prepare_feature_vectorizer).axes(axes::entries_of<~uint32_t{0}>);
}

TREADLE_OP(DictVectorizer, "ai.onnx.ml") {
  op.since(1)
      .in("X", "T1")
      .out("Y", "T2")
      .optional("int64_vocabulary", ir::AttributeKind::kInts)
      .optional("string_vocabulary", ir::AttributeKind::kStrings)
      .type("T1",
            maps_of(ElementType::kString, ElementType::kInt64) | maps_of(ElementType::kInt64, ElementType::kString) |
                maps_of(ElementType::kInt64, ElementType::kFloat) | maps_of(ElementType::kInt64, ElementType::kDouble) |
                maps_of(ElementType::kString, ElementType::kFloat) |
                maps_of(ElementType::kString, ElementType::kDouble))
      .type("T2", tensors(ElementType::kInt64, ElementType::kFloat, ElementType::kDouble, ElementType::kString));
  op.parse<ml::parse_dict_vectorizer>()
      .infer(ml::infer_dict_vectorizer)
      .compute(ml::compute_dict_vectorizer)
      .no_axes("it works on maps");
}

TREADLE_OP(CastMap, "ai.onnx.ml") {
  op.since(1)
      .in("X", "T1")
      .out("Y", "T2")
      .attr("cast_to", "TO_FLOAT")
      .attr("map_form", "DENSE")
      .attr("max_map", 1)
      .type("T1",
            maps_of(ElementType::kInt64, ElementType::kString) | maps_of(ElementType::kInt64, ElementType::kFloat))
      .type("T2", tensors(ElementType::kString, ElementType::kFloat, ElementType::kInt64));
  op.parse<ml::parse_cast_map>()
      .infer(ml::infer_cast_map)
      .compute(ml::compute_cast_map)
      .can_fail()
      .no_axes("it works on maps");
}
