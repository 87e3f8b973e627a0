#include "session/sequence_signature.h"

#include <algorithm>

#include "op/op_def.h"
#include "opt/remarks.h"

namespace treadle::session {

namespace {

bool are_alike(const Sequence& list) {
  const auto elements = list.elements();
  if (elements.empty() || !elements[0].is_tensor() || is_string(elements[0].tensor().type())) return false;
  const Tensor& first = elements[0].tensor();
  return std::all_of(elements.begin() + 1, elements.end(), [&](const AnyValue& v) {
    return v.is_tensor() && v.tensor().type() == first.type() && v.tensor().dims() == first.dims();
  });
}

bool reads_elements(const ir::Node& node) {
  if (!node.op->domain.empty()) return false;
  return node.op->name == "SequenceMap" || (node.op->name == "SequenceAt" && opt::loop_around(*node.parent));
}

}  // namespace

SequenceSignature SequenceSignature::of(const Sequence& list, ElementType element) {
  if (!are_alike(list)) return {Kind::kUnlike, element, {}};
  return {Kind::kAlike, element, list.elements()[0].tensor().dims(), static_cast<int64_t>(list.size())};
}

bool SequenceSignature::accepts(const Sequence& list) const {
  if (element == ElementType::kUndefined) return true;
  const auto elements = list.elements();
  const bool fits = std::all_of(elements.begin(), elements.end(),
                                [&](const AnyValue& v) { return v.is_tensor() && v.tensor().type() == element; });
  if (!fits || kind == Kind::kAny) return fits;
  if (!are_alike(list)) return kind == Kind::kUnlike;
  return kind == Kind::kAlike && elements[0].tensor().dims() == dims &&
         (length < 0 || length == static_cast<int64_t>(list.size()));
}

void SequenceSignature::widen(const SequenceSignature& before) {
  if (kind != Kind::kAlike || before.kind == Kind::kUnlike) return;
  if (before.kind == Kind::kAny || before.dims != dims) {
    *this = {Kind::kAny, element, {}};
  } else if (before.length != length) {
    length = -1;
  }
}

std::vector<bool> sequences_in_loops(const ir::Graph& graph) {
  const auto& inputs = graph.top().inputs;
  std::vector<bool> found(inputs.size());
  ir::for_each_node(graph.top(), [&](const ir::Node& node) {
    if (!reads_elements(node)) return;
    for (const ir::Value* v : node.inputs) {
      const auto at = std::find(inputs.begin(), inputs.end(), v);
      if (at == inputs.end() || !v || v->type.kind != Type::Kind::kSequence) continue;
      if (v->type.child && v->type.child->is_tensor()) {
        found[static_cast<size_t>(at - inputs.begin())] = true;
      }
    }
  });
  return found;
}

}  // namespace treadle::session
