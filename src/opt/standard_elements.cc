// Rewrites of nodes that compute each element by itself into fewer nodes.
#include <cstring>
#include <map>
#include <variant>

#include "op/node.h"
#include "op/registry.h"
#include "opt/bytes.h"
#include "opt/match.h"
#include "opt/standard_site.h"

namespace treadle::opt {

// --- types

namespace {

int whole_bits(ElementType type) {  // the bits of a whole number that the type always holds, without a sign
  switch (type) {
    case ElementType::kBool:
      return 1;
    case ElementType::kFloat16:
      return 11;
    case ElementType::kBfloat16:
      return 8;
    case ElementType::kFloat:
      return 24;
    case ElementType::kDouble:
      return 53;
    default:
      return is_integer(type) && !is_sub_byte(type) ? static_cast<int>(8 * byte_width(type)) - is_signed_integer(type)
                                                    : 0;
  }
}

bool is_common_float(ElementType type) {
  return is_float(type) && byte_width(type) >= 2;
}

}  // namespace

bool holds_all(ElementType from, ElementType to) {
  if (whole_bits(from) == 0 || whole_bits(to) == 0 || from == to) return false;
  if (is_common_float(from)) return is_common_float(to) && byte_width(to) > byte_width(from);
  const bool fits = whole_bits(from) <= whole_bits(to);
  return fits && (is_common_float(to) || !is_signed_integer(from) || is_signed_integer(to));
}

bool asks_before_cast(Site& site) {
  ir::Node& shape = site.node();
  const ir::Node* const cast = shape.inputs[0] ? shape.inputs[0]->producer : nullptr;
  // A Cast from strings may fail.
  if (!is(cast, "Cast") || is_string(cast->inputs[0]->type.element)) return false;
  shape.inputs[0] = cast->inputs[0];
  return true;
}

bool casts_once(Site& site) {
  ir::Node& cast = site.node();
  const ir::Node* const before = site.sole_producer(0, {"Cast"});
  if (!before || is_string(cast.outputs[0]->type.element)) return false;  // the text depends on the number's type
  if (!holds_all(before->inputs[0]->type.element, cast.inputs[0]->type.element)) return false;
  cast.inputs[0] = before->inputs[0];
  return true;
}

// --- arithmetic

bool divides_once(Site& site) {
  ir::Node& mul = site.node();
  for (size_t i = 0; i < 2; ++i) {
    const ir::Node* const div = site.sole_producer(i, {"Div"});
    if (!div || div->version->since < 7 || !is_number(div->inputs[0], 1)) continue;
    ir::Value *const x = div->inputs[1], *const y = mul.inputs[1 - i];
    const int64_t rank = div->inputs[0]->constant.rank();
    if (rank > std::max(x->type.rank(), y->type.rank())) continue;  // the constant 1 adds axes to the result
    site.put("Div", {y, x});
    return true;
  }
  return false;
}

bool clips_at_zero(Site& site) {
  ir::Node& clip = site.node();
  ir::Node* const relu = site.sole_producer(0, {"Relu"});
  if (!relu) return false;
  if (clip.version->since < 11) {
    clip.attributes.set(ir::Attribute::of("min", std::max(0.0f, clip.attributes.get_float("min", 0))));
    clip.inputs[0] = relu->inputs[0];
    return true;
  }
  const ir::Value* const least = input(clip, 1);
  if (least && !(least->is_constant() && least->constant.element_count() == 1)) return false;
  const ElementType type = clip.inputs[0]->type.element;
  if (!is_common_float(type) && !is_integer(type)) return false;
  const bool stays = least && (is_float(type) ? least->constant.double_at(0) > 0 : least->constant.int64_at(0) > 0);
  auto zero = Tensor::allocate(type, {});
  if (!zero.ok()) return false;
  std::memset(zero->mutable_raw(), 0, zero->byte_size());
  ir::Value* const bound = stays ? clip.inputs[1] : site.constant(*zero, "min");
  ir::Value* const most = input(clip, 2);
  set_inputs(clip, {relu->inputs[0], bound});
  if (most) site.graph().add_input(&clip, most);
  return true;
}

bool chooses_other(Site& site) {
  ir::Node& where = site.node();
  const ir::Node* const negation = where.inputs[0] ? where.inputs[0]->producer : nullptr;
  if (!is(negation, "Not") || site.facts().beside_conditions.contains(where.inputs[0])) return false;
  set_inputs(where, {negation->inputs[0], where.inputs[2], where.inputs[1]});
  return true;
}

// --- labels

namespace {

using Label = std::variant<int64_t, std::string>;

// Names of attributes end in the type of their elements.
struct Labels {
  std::vector<Label> list;
  bool texts = false;
};

Labels labels(const ir::Node& node, const std::string& attribute) {
  Labels found;
  for (const std::string& text : node.attributes.get_strings(attribute + "_strings")) found.list.emplace_back(text);
  found.texts = !found.list.empty();
  for (const int64_t number : node.attributes.get_ints(attribute + "_int64s")) found.list.emplace_back(number);
  return found;
}

Label default_label(const ir::Node& node, bool texts) {
  if (texts) return std::string(node.attributes.get_string("default_string", "_Unused"));
  return node.attributes.get_int("default_int64", -1);
}

template <class T>
std::vector<T> as_list(const std::vector<Label>& labels) {
  std::vector<T> list;
  for (const Label& label : labels) list.push_back(std::get<T>(label));
  return list;
}

bool is_encoder(const ir::Node* node) {
  return node && is(*node, "LabelEncoder", "ai.onnx.ml") && node->version->since >= 4 &&
         !node->attributes.has("default_tensor");
}

}  // namespace

bool encodes_once(Site& site) {
  ir::Node& second = site.node();
  const ir::Node* const first = second.inputs[0] ? second.inputs[0]->producer : nullptr;
  if (!is_encoder(&second) || !is_encoder(first) || first->parent != second.parent) return false;
  if (!site.uses().once(second.inputs[0])) return false;
  const Labels from = labels(*first, "keys"), between = labels(*first, "values");
  const Labels keys = labels(second, "keys"), values = labels(second, "values");
  if (from.list.empty() || from.list.size() != between.list.size() || keys.list.size() != values.list.size() ||
      keys.list.empty() || keys.texts != between.texts) {
    return false;
  }
  std::map<Label, Label> encoded;
  for (size_t i = 0; i < keys.list.size(); ++i) {
    if (!encoded.emplace(keys.list[i], values.list[i]).second) return false;
  }
  const Label otherwise = default_label(second, values.texts);
  const auto encode = [&](const Label& label) {
    const auto found = encoded.find(label);
    return found == encoded.end() ? otherwise : found->second;
  };
  std::vector<Label> to;
  for (const Label& label : between.list) to.push_back(encode(label));
  const Label unknown = encode(default_label(*first, between.texts));
  for (const char* name : {"keys_strings", "keys_int64s", "values_strings", "values_int64s"})
    second.attributes.erase(name);
  const auto set = [&](const char* name, const std::vector<Label>& list, bool texts) {
    texts ? second.attributes.set(ir::Attribute::of(std::string(name) + "_strings", as_list<std::string>(list)))
          : second.attributes.set(ir::Attribute::of(std::string(name) + "_int64s", as_list<int64_t>(list)));
  };
  set("keys", from.list, from.texts);
  set("values", to, values.texts);
  values.texts ? second.attributes.set(ir::Attribute::of("default_string", std::get<std::string>(unknown)))
               : second.attributes.set(ir::Attribute::of("default_int64", std::get<int64_t>(unknown)));
  second.inputs[0] = first->inputs[0];
  return true;
}

}  // namespace treadle::opt
