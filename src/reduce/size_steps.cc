// Sizes of axes: all axes of one size together, in types, tensors and the integers that name sizes.

#include <set>

#include "reduce/step.h"
#include "reduce/tensors.h"

namespace treadle::reduce {

namespace {

constexpr size_t kMostInts = 64;  // of a tensor whose elements may be sizes

// A size and what it becomes.
struct Change {
  int64_t from, to;
  bool multiples;  // four gates of a hidden size become smaller with it

  int64_t of(int64_t size) const {
    if (size == from) return to;
    return multiples && from > 1 && size > from && size % from == 0 ? size / from * to : size;
  }
};

bool change_dims(std::vector<int64_t>& dims, const Change& change) {
  bool changed = false;
  for (int64_t& size : dims) {
    const int64_t other = change.of(size);
    changed |= other != size;
    size = other;
  }
  return changed;
}

void change_type(wire::TypeProto& type, const Change& change) {
  if (type.tensor && type.tensor->shape) {
    for (wire::Dimension& dimension : type.tensor->shape->dims) {
      if (dimension.value) dimension.value = change.of(*dimension.value);
    }
  }
  if (type.sequence && type.sequence->elem_type) change_type(*type.sequence->elem_type, change);
  if (type.optional && type.optional->elem_type) change_type(*type.optional->elem_type, change);
}

bool may_hold_sizes(const wire::TensorProto& tensor) {
  int64_t count = 1;
  for (const int64_t size : tensor.dims) count *= std::max<int64_t>(size, 0);
  return tensor.data_type == static_cast<int32_t>(ElementType::kInt64) && tensor.dims.size() < 2 &&
         static_cast<size_t>(count) <= kMostInts;
}

void change_tensor(wire::TensorProto& tensor, const Change& change, bool ints, Candidate& candidate) {
  std::vector<int64_t> dims(tensor.dims.begin(), tensor.dims.end());
  const bool smaller = change_dims(dims, change);
  const bool elements = ints && may_hold_sizes(tensor);
  if (!smaller && !elements) return;
  const std::optional<Tensor> contents = read(tensor);
  if (!contents) return;
  Tensor part = first_part(*contents, smaller ? dims : std::vector<int64_t>(tensor.dims.begin(), tensor.dims.end()));
  bool changed = smaller;
  for (int64_t i = 0; elements && i < part.element_count(); ++i) {
    int64_t& element = part.mutable_data<int64_t>()[i];
    const int64_t other = change.of(element);
    changed |= other != element;
    element = other;
  }
  if (changed) write(std::move(part), tensor, candidate);
}

class Sizes : public Step {
 public:
  const char* name() const override { return "sizes"; }
  size_t ways() const override { return kTargets * kReaches; }
  size_t count(wire::ModelProto& model) const override { return sizes_of(model).size(); }
  bool apply(Candidate& candidate, size_t first, size_t last, size_t way) const override {
    const std::vector<int64_t> sizes = sizes_of(candidate.model);
    bool changed = false;
    for (size_t i = last; i-- > first;) {
      const int64_t target = target_of(sizes[i], way / kReaches);
      if (target < 1 || target >= sizes[i]) continue;
      const size_t reach = way % kReaches;
      change_model(candidate, {sizes[i], target, reach == kMultiples}, reach != kTypes);
      changed = true;
    }
    return changed;
  }

 private:
  static constexpr size_t kTargets = 3, kReaches = 3;
  // What changes: types, tensors, and integers that are that size or a multiple; that size alone; no integers.
  enum Reach : uint8_t { kMultiples, kExactly, kTypes };

  static int64_t target_of(int64_t size, size_t target) { return target == 0 ? 1 : target == 1 ? size / 2 : size - 1; }

  // Sizes above 1, the smallest first.
  static std::vector<int64_t> sizes_of(wire::ModelProto& model) {
    std::set<int64_t> sizes;
    const auto add = [&](int64_t size) {
      if (size > 1) sizes.insert(size);
    };
    const auto add_types = [&](const wire::List<wire::ValueInfoProto>& values) {
      for (const wire::ValueInfoProto& value : values) {
        if (!value.type || !value.type->tensor || !value.type->tensor->shape) continue;
        for (const wire::Dimension& dimension : value.type->tensor->shape->dims) add(dimension.value.value_or(0));
      }
    };
    for (const wire::TensorProto* tensor : tensors_of(model)) {
      for (const int64_t size : tensor->dims) add(size);
    }
    for (const Scope& scope : scopes_of(model)) {
      if (!scope.graph) continue;
      add_types(scope.graph->inputs);
      add_types(scope.graph->value_infos);
      add_types(scope.graph->outputs);
    }
    return {sizes.begin(), sizes.end()};
  }

  static void change_model(Candidate& candidate, const Change& change, bool ints) {
    for (wire::TensorProto* tensor : tensors_of(candidate.model)) change_tensor(*tensor, change, ints, candidate);
    for (const Scope& scope : scopes_of(candidate.model)) {
      if (scope.graph) {
        for (auto* values : {&scope.graph->inputs, &scope.graph->outputs, &scope.graph->value_infos}) {
          for (wire::ValueInfoProto& value : *values) {
            if (value.type) change_type(*value.type, change);
          }
        }
      }
      for (wire::NodeProto& node : scope.nodes()) {
        for (wire::AttributeProto& attribute : node.attributes) {
          if (ints && attribute.i == change.from) attribute.i = change.to;
          for (int64_t& element : attribute.ints) {
            if (ints && element == change.from) element = change.to;
          }
        }
      }
    }
  }
};

}  // namespace

void add_size_steps(Steps& steps) {
  steps.push_back(std::make_unique<Sizes>());
}

}  // namespace treadle::reduce
