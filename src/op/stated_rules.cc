#include "op/stated_rules.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <unordered_map>

#include "op/op_def.h"

namespace treadle {

namespace {

using ir::Attribute;
using ir::AttributeKind;

enum class Demand : uint8_t {
  kWithin,        // every number is in [least, most]
  kDistinct,      // no axis is named twice
  kWord,          // one of `words`
  kExactlyOne,    // exactly one of these attributes is given
  kAtMostOne,     // at most one of these attributes is given; they have no defaults
  kSameLength,    // all lists that are given are as long as the first of them
  kFloatType,     // the number of a float type
  kAutoPadAlone,  // "pads" is not given if "auto_pad" is
};

struct Rule {
  std::string_view domain;
  std::vector<std::string_view> operators;
  std::vector<std::string_view> attributes;
  Demand demand;
  int64_t least = 0, most = INT64_MAX;
  std::vector<std::string_view> words = {};
  int since = 1, before = INT_MAX;  // versions of the operator
};

constexpr std::string_view kMl = "ai.onnx.ml";

const std::vector<Rule>& rules() {
  static const auto* const list = new std::vector<Rule>{
      // The attributes of other operators with windows are checked in ops/nn/window.h.
      {"", {"Col2Im", "MaxUnpool"}, {"pads"}, Demand::kWithin, 0},
      {"", {"Col2Im", "MaxUnpool"}, {"dilations", "kernel_shape", "strides"}, Demand::kWithin, 1},
      {"", {"Conv", "ConvInteger", "ConvTranspose", "QLinearConv"}, {"auto_pad", "pads"}, Demand::kAutoPadAlone},
      {"", {"GlobalLpPool", "LpPool"}, {"p"}, Demand::kWithin, 1},
      {"", {"MaxPool"}, {"storage_order"}, Demand::kWithin, 0, 1},
      {"", {"NonMaxSuppression"}, {"center_point_box"}, Demand::kWithin, 0, 1},
      {"", {"CumProd", "CumSum"}, {"exclusive", "reverse"}, Demand::kWithin, 0, 1},
      {"", {"ConcatFromSequence"}, {"new_axis"}, Demand::kWithin, 0, 1},
      {"", {"DFT"}, {"inverse", "onesided"}, Demand::kWithin, 0, 1},
      {"", {"Unique"}, {"sorted"}, Demand::kWithin, 0, 1},
      {"", {"RoiAlign"}, {"sampling_ratio"}, Demand::kWithin, 0},
      {"", {"Transpose"}, {"perm"}, Demand::kWithin, 0},
      {"", {"Transpose"}, {"perm"}, Demand::kDistinct},
      {"",
       {"GroupNormalization", "LayerNormalization", "RMSNormalization", "SimplifiedLayerNormalization"},
       {"stash_type"},
       Demand::kFloatType},
      {"", {"BitShift"}, {"direction"}, Demand::kWord, 0, 0, {"LEFT", "RIGHT"}},
      {"", {"Gelu"}, {"approximate"}, Demand::kWord, 0, 0, {"none", "tanh"}},
      {"", {"RoiAlign"}, {"coordinate_transformation_mode"}, Demand::kWord, 0, 0, {"half_pixel", "output_half_pixel"}},
      {"", {"Resize"}, {"keep_aspect_ratio_policy"}, Demand::kWord, 0, 0, {"stretch", "not_larger", "not_smaller"}},
      {"", {"ScatterElements", "ScatterND"}, {"reduction"}, Demand::kWord, 0, 0, {"none", "add", "mul", "min", "max"}},
      {kMl, {"Normalizer"}, {"norm"}, Demand::kWord, 0, 0, {"MAX", "L1", "L2"}},
      {kMl, {"OneHotEncoder"}, {"cats_int64s", "cats_strings"}, Demand::kExactlyOne},
      {kMl, {"DictVectorizer"}, {"int64_vocabulary", "string_vocabulary"}, Demand::kExactlyOne},
      {kMl,
       {"LabelEncoder"},
       {"keys_floats", "keys_int64s", "keys_strings", "keys_tensor"},
       Demand::kExactlyOne,
       0,
       0,
       {},
       2},
      {kMl,
       {"LabelEncoder"},
       {"values_floats", "values_int64s", "values_strings", "values_tensor"},
       Demand::kExactlyOne,
       0,
       0,
       {},
       2},
      {kMl, {"Imputer"}, {"imputed_value_floats", "imputed_value_int64s"}, Demand::kExactlyOne},
      {kMl, {"LinearClassifier"}, {"classlabels_ints", "classlabels_strings"}, Demand::kAtMostOne},
      {kMl, {"SVMClassifier"}, {"classlabels_ints", "classlabels_strings"}, Demand::kExactlyOne},
      {kMl, {"TreeEnsembleClassifier", "ZipMap"}, {"classlabels_int64s", "classlabels_strings"}, Demand::kExactlyOne},
      {kMl,
       {"TreeEnsembleClassifier", "TreeEnsembleRegressor"},
       {"base_values", "base_values_as_tensor"},
       Demand::kAtMostOne},
      {kMl,
       {"TreeEnsembleClassifier", "TreeEnsembleRegressor"},
       {"nodes_values", "nodes_values_as_tensor"},
       Demand::kAtMostOne},
      {kMl,
       {"TreeEnsembleClassifier", "TreeEnsembleRegressor"},
       {"nodes_hitrates", "nodes_hitrates_as_tensor"},
       Demand::kAtMostOne},
      {kMl, {"TreeEnsembleClassifier"}, {"class_weights", "class_weights_as_tensor"}, Demand::kAtMostOne},
      {kMl, {"TreeEnsembleRegressor"}, {"target_weights", "target_weights_as_tensor"}, Demand::kAtMostOne},
      {kMl, {"Scaler"}, {"offset", "scale"}, Demand::kSameLength},
  };
  return *list;
}

using RulesByName = std::unordered_map<std::string_view, std::vector<const Rule*>>;

const RulesByName& rules_by_name() {
  static const auto* const table = [] {
    auto* made = new RulesByName();
    for (const Rule& rule : rules()) {
      for (const std::string_view name : rule.operators) (*made)[name].push_back(&rule);
    }
    return made;
  }();
  return *table;
}

// Elements of a list or tensor; 0 without such an attribute, or if it is empty.
size_t length_of(const ir::NodeInfo& node, std::string_view name) {
  const Attribute* a = node.attributes.find(name);
  if (!a) return 0;
  switch (a->kind) {
    case AttributeKind::kInts:
      return a->as_ints().size();
    case AttributeKind::kFloats:
      return a->as_floats().size();
    case AttributeKind::kStrings:
      return a->as_strings().size();
    case AttributeKind::kTensor:
      return static_cast<size_t>(a->as_tensor().element_count());
    default:
      return 1;
  }
}

std::span<const int64_t> numbers_of(const Attribute& a, int64_t& single) {
  if (a.kind == AttributeKind::kInts) return a.as_ints();
  if (a.kind != AttributeKind::kInt) return {};
  single = a.as_int();
  return {&single, 1};
}

Status check_within(const Rule& rule, const Attribute& a) {
  int64_t single = 0;
  for (const int64_t number : numbers_of(a, single)) {
    if (number >= rule.least && number <= rule.most) continue;
    const std::string expected = rule.most == INT64_MAX ? fmt::format("at least {}", rule.least)
                                                        : fmt::format("{} to {}", rule.least, rule.most);
    return error(Code::kInvalidModel, "attribute {} {} {}, expected {}", a.name,
                 a.kind == AttributeKind::kInts ? "holds" : "is", number, expected);
  }
  return {};
}

Status check_distinct(const Attribute& a) {
  int64_t single = 0;
  const std::span<const int64_t> numbers = numbers_of(a, single);
  std::vector<int64_t> sorted(numbers.begin(), numbers.end());
  std::ranges::sort(sorted);
  const auto twice = std::ranges::adjacent_find(sorted);
  if (twice == sorted.end()) return {};
  return error(Code::kInvalidModel, "attribute {} names axis {} twice, expected each once", a.name, *twice);
}

Status check_word(const Rule& rule, const Attribute& a) {
  if (a.kind != AttributeKind::kString || std::ranges::find(rule.words, a.as_string()) != rule.words.end()) return {};
  return error(Code::kInvalidModel, "attribute {} is '{}', expected {}", a.name, a.as_string(),
               fmt::join(rule.words, ", "));
}

Status check_exclusive(const Rule& rule, const ir::NodeInfo& node) {
  std::vector<std::string_view> given, known;
  for (const std::string_view name : rule.attributes) {
    if (node.version->attribute(name)) known.push_back(name);
    if (length_of(node, name) > 0) given.push_back(name);
  }
  if (given.size() == 1 || (given.empty() && rule.demand == Demand::kAtMostOne)) return {};
  return error(Code::kInvalidModel, "expected {} of the attributes {}, found {}",
               rule.demand == Demand::kAtMostOne ? "at most one" : "one and only one", fmt::join(known, ", "),
               given.empty() ? "none" : fmt::format("{}", fmt::join(given, ", ")));
}

Status check_lengths(const Rule& rule, const ir::NodeInfo& node) {
  const size_t first = length_of(node, rule.attributes[0]);
  for (const std::string_view name : rule.attributes) {
    if (first == 0 || length_of(node, name) == 0 || length_of(node, name) == first) continue;
    return error(Code::kInvalidModel, "attributes {} and {} have {} and {} entries, expected as many of each",
                 rule.attributes[0], name, first, length_of(node, name));
  }
  return {};
}

Status check_float_type(const Attribute& a) {
  const bool numbered = a.kind == AttributeKind::kInt;
  if (!numbered || types::kFloatsBf16.contains(element_type_from_number(a.as_int()))) return {};
  return error(Code::kInvalidModel, "attribute {} is {}, expected a float type", a.name, a.as_int());
}

Status check_auto_pad(const ir::NodeInfo& node) {
  const std::string_view automatic = node.attributes.get_string("auto_pad", "NOTSET");
  if (automatic.empty() || automatic == "NOTSET" || node.attributes.get_ints("pads").empty()) return {};
  return error(Code::kInvalidModel, "attributes pads and auto_pad ({}) are both given, expected one of them",
               automatic);
}

Status check_rule(const Rule& rule, const ir::NodeInfo& node) {
  if (rule.demand == Demand::kAutoPadAlone) return check_auto_pad(node);
  if (rule.demand == Demand::kSameLength) return check_lengths(rule, node);
  if (rule.demand == Demand::kExactlyOne || rule.demand == Demand::kAtMostOne) return check_exclusive(rule, node);
  for (const std::string_view name : rule.attributes) {
    const Attribute* a = node.attributes.find(name);
    if (!a) continue;
    if (rule.demand == Demand::kWithin) TREADLE_TRY(check_within(rule, *a));
    if (rule.demand == Demand::kDistinct) TREADLE_TRY(check_distinct(*a));
    if (rule.demand == Demand::kWord) TREADLE_TRY(check_word(rule, *a));
    if (rule.demand == Demand::kFloatType) TREADLE_TRY(check_float_type(*a));
  }
  return {};
}

}  // namespace

Status check_attribute_rules(const ir::NodeInfo& node) {
  const auto it = rules_by_name().find(node.op->name);
  if (it == rules_by_name().end()) return {};
  for (const Rule* rule : it->second) {
    if (rule->domain != node.op->domain) continue;
    if (node.version->since < rule->since || node.version->since >= rule->before) continue;
    TREADLE_TRY(check_rule(*rule, node));
  }
  return {};
}

namespace {

bool has(std::span<ir::Value* const> arguments, size_t i) {
  return i < arguments.size() && arguments[i];
}

// Earlier documents forbid it as well, but other runtimes accept it in old models.
Status check_attention(const ir::Node& node) {
  constexpr size_t kValidLength = 6, kPresentKey = 1, kPresentValue = 2;
  if (node.version->since < 25) return {};
  const bool key = has(node.outputs, kPresentKey), value = has(node.outputs, kPresentValue);
  if (key != value) return error(Code::kInvalidModel, "present_key and present_value are used together or not at all");
  if (!key || !has(node.inputs, kValidLength)) return {};
  return error(Code::kInvalidModel, "nonpad_kv_seqlen is not used together with present_key and present_value");
}

Status check_split(const ir::Node& node) {
  const bool listed = has(node.inputs, 1), counted = node.attributes.has("num_outputs");
  if (node.version->since < 18 || listed != counted) return {};
  return error(Code::kInvalidModel, "expected input split or attribute num_outputs, found {}",
               listed ? "both" : "neither");
}

}  // namespace

Status check_argument_rules(const ir::Node& node) {
  if (!node.op->domain.empty()) return {};
  if (node.op->name == "Attention") return check_attention(node);
  if (node.op->name == "Split") return check_split(node);
  return {};
}

}  // namespace treadle
