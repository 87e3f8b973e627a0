// Names for unknown sizes, and the notation of sizes in onnx.
#include <algorithm>

#include "infer/inference.h"

namespace treadle {

namespace {

// Calls `fn` with the shape of every tensor type within `type`.
template <class Fn>
void for_each_shape(Type& type, Fn&& fn) {
  if (type.has_shape) fn(type.shape);
  if (!type.child) return;
  Type child = *type.child;
  for_each_shape(child, fn);
  type.child = std::make_shared<const Type>(std::move(child));
}

}  // namespace

void Inference::forget_expressions(Type& type) const {
  for_each_shape(type, [](Shape& shape) {
    for (Dim& d : shape) {
      if (d.is_symbolic() && d.symbol_name().empty()) d = Dim::unknown();
    }
  });
}

void Inference::name_unknowns(const ir::Value* value, Type& type) {
  size_t k = 0;
  for_each_shape(type, [&](Shape& shape) {
    for (Dim& d : shape) {
      if (!d.is_unknown()) continue;
      std::vector<std::string>& names = names_[value];
      if (k == names.size()) {
        do {
          names.resize(k + 1);
          names[k] = "unk__" + std::to_string(next_name_++);
        } while (taken_names_.contains(names[k]));
        names_of_region_[value->owner].push_back(names[k]);
      }
      d = Dim::symbol(names[k++]);
    }
  });
}

void Inference::find_taken_names(const ir::Region& top) {
  const auto look_at = [&](const ir::Value* value) {
    if (!value) return;
    Type type = value->type;
    for_each_shape(type, [&](Shape& shape) {
      for (const Dim& d : shape) {
        if (const std::string_view name = d.symbol_name(); name.starts_with("unk__")) taken_names_.emplace(name);
      }
    });
  };
  for (const ir::Value* input : top.inputs) look_at(input);
  ir::for_each_node(top, [&](const ir::Node& node) {
    for (const ir::Value* output : node.outputs) look_at(output);
    for (const auto& region : node.regions) {
      for (const ir::Value* input : region->inputs) look_at(input);
    }
  });
}

}  // namespace treadle
