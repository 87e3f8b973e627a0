#include "session/exposed_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <unordered_map>
#include <unordered_set>

#include "base/spelling.h"
#include "op/loop_view.h"
#include "op/registry.h"
#include "ops/control/loop.h"
#include "opt/builder.h"
#include "opt/standard_nodes.h"
#include "type/make_tensor.h"

namespace treadle::session {

namespace {

constexpr int64_t kLoopsCarrySequences = 13, kBranchesHandOnSequences = 14;  // operator sets

int64_t operator_set(const ir::Graph& graph) {
  for (const auto& [domain, version] : graph.metadata.opset_imports) {
    if (domain.empty() || domain == "ai.onnx") return version;
  }
  return 0;
}

bool is_if(const ir::Node& node) {
  return node.op->control == Control::kIf;
}

class Exposer {
 public:
  Exposer(ir::Graph& graph, const Inference& inference) : graph_(graph), inference_(inference) {
    for (const ir::Value* input : graph.top().inputs) {
      for (const Dim& size : input->type.shape) {
        if (!size.symbol_name().empty()) given_sizes_.emplace(size.symbol_name());
      }
    }
  }

  void add(ExposedValue& exposed) {
    const Chain chain = chain_of(*exposed.inner.value);
    const Type& type = exposed.inner.value->type;
    exposed.left_out = type.is_known() && !type.is_tensor()      ? "it is no tensor"
                       : type.element == ElementType::kUndefined ? "its type is not known"
                                                                 : why_unreachable(chain);
    if (!exposed.left_out.empty()) return;
    is_in_loop_ = has_loop(chain, chain.size());
    const std::string why_no_rows = why_not_rows(chain, type);
    if (why_no_rows.empty()) return add_rows(exposed, chain);
    const std::string why_no_log = why_not_logged(chain);
    if (why_no_log.empty()) return add_log(exposed, chain);
    exposed.left_out = why_no_rows + ", and " + why_no_log;
  }

  // Sizes in branches outside of loops are left to the engines, since they may be those of a branch that the run does
  // not take. In loops engines need sizes: onnxruntime's Scan refuses rows without.
  void forget_sizes() {
    for (ir::Value* value : added_) {
      if (value->type.is_tensor()) value->type = Type::tensor(value->type.element);
    }
  }

 private:
  // The regions around a value, outermost first, without the graph itself.
  using Chain = std::vector<ir::Region*>;

  static Chain chain_of(const ir::Value& value) {
    Chain chain;
    for (ir::Region* r = value.owner; r && r->parent_node; r = r->parent_region()) chain.insert(chain.begin(), r);
    return chain;
  }

  static std::string why_unreachable(const Chain& chain) {
    for (const ir::Region* region : chain) {
      const ir::Node& node = *region->parent_node;
      if (!is_if(node) && !is_loop(node)) return fmt::format("it is in the body of a {}", node.op->name);
      if (is_scan(node) && node.version->since < 9) return "it is in the body of a Scan of operator set 8";
    }
    return "";
  }

  // ---- Rows

  // A size that is the same in all iterations.
  bool stays(const Dim& size) const {
    return size.is_known() || (size.is_symbolic() && given_sizes_.contains(size.symbol_name()));
  }

  std::string why_not_rows(const Chain& chain, const Type& type) const {
    Shape shape = type.shape;
    for (size_t i = chain.size(); i-- > 0;) {
      const ir::Node& node = *chain[i]->parent_node;
      const bool is_in_loop = has_loop(chain, is_if(node) ? i : i + 1);
      if (is_in_loop && !type.has_shape) return "its rank is not known";
      const bool all_fit = std::all_of(shape.begin(), shape.end(),
                                       [&](const Dim& size) { return is_if(node) ? size.is_known() : stays(size); });
      if (is_in_loop && !all_fit) {
        return fmt::format("its sizes in iterations are not known to be equal ({})", to_string(shape));
      }
      if (!is_if(node)) shape.insert(0, trips(node));
    }
    return "";
  }

  static bool has_loop(const Chain& chain, size_t count) {
    return std::any_of(chain.begin(), chain.begin() + static_cast<std::ptrdiff_t>(count),
                       [](const ir::Region* region) { return is_loop(*region->parent_node); });
  }

  // The number of iterations, if it is known before the loop runs.
  Dim trips(const ir::Node& node) const {
    const LoopView loop(node);
    if (loop.is_scan()) {
      if (loop.scan_inputs() == 0) return {};
      const auto input = loop.scan_input(0);
      const Shape& whole = input.whole->type.shape;
      const auto axis = normalize_axis(input.axis, static_cast<int64_t>(whole.size()));
      return axis.ok() ? whole[static_cast<size_t>(*axis)] : Dim();
    }
    const Tensor* count = loop.trip_count() ? inference_.constant(loop.trip_count()) : nullptr;
    if (!count || count->element_count() != 1 || !condition_stays_true(loop)) return {};
    if (loop.condition()) {
      const Tensor* condition = inference_.constant(loop.condition());
      if (!condition || condition->element_count() != 1 || !condition->data<bool>()[0]) return {};
    }
    return std::max<int64_t>(count->int64_at(0), 0);
  }

  void add_rows(ExposedValue& exposed, const Chain& chain) {
    ir::Value* const value = exposed.inner.value;
    exposed.output = output_of(lifted(chain, value, exposed.inner.name));
    if (std::none_of(chain.begin(), chain.end(), [](const ir::Region* r) { return is_if(*r->parent_node); })) return;
    ir::Value*& ran = ran_[chain.back()];
    if (!ran) ran = lifted(chain, truth(), fmt::format("{}:ran", exposed.inner.name));
    exposed.ran = output_of(ran);
  }

  // Hands the value out of all regions.
  ir::Value* lifted(const Chain& chain, ir::Value* value, const std::string& name) {
    for (size_t i = chain.size(); i-- > 0;) {
      ir::Node& node = *chain[i]->parent_node;
      name_outputs(node);
      if (is_if(node)) {
        value = out_of_branch(*chain[i], value, name, has_loop(chain, i));
      } else {
        // onnxruntime computes wrong numbers for a Scan whose body returns an input directly.
        ir::Value* const row = call(*chain[i], "Identity", {value}, value->type, name);
        value = added(LoopEditor(node).add_scan_output(row, trips(node), false, name));
      }
    }
    return value;
  }

  // `keeps_sizes`: a loop around it needs rows of equal sizes.
  ir::Value* out_of_branch(ir::Region& branch, ir::Value* value, const std::string& name, bool keeps_sizes) {
    ir::Node& node = *branch.parent_node;
    const ir::Value* const zeros = this->zeros(value->type);
    for (const auto& region : node.regions) {
      region->outputs.push_back(region.get() == &branch ? value : const_cast<ir::Value*>(zeros));
    }
    return added(graph_.add_output(&node, name, keeps_sizes ? value->type : Type::tensor(value->type.element)));
  }

  // Unknown sizes are 0.
  ir::Value* zeros(const Type& type) {
    Dims dims;
    for (const Dim& size : type.shape) dims.push_back(size.value_or(0));
    ir::Value*& made = zeros_[fmt::format("{}{}", static_cast<int>(type.element), to_string(dims))];
    if (!made) {
      Tensor tensor = make_tensor(type.element, dims);
      if (type.element != ElementType::kString) std::memset(tensor.mutable_raw(), 0, tensor.byte_size());
      made = graph_.new_constant("zeros", std::move(tensor));
    }
    return made;
  }

  ir::Value* truth() {
    if (!truth_) truth_ = graph_.new_constant("true", Tensor::scalar<bool>(ElementType::kBool, true));
    return truth_;
  }

  // ---- Logs

  std::string why_not_logged(const Chain& chain) const {
    const bool has_branch = std::any_of(chain.begin(), chain.end(), [](auto* r) { return is_if(*r->parent_node); });
    const int64_t needed = has_branch ? kBranchesHandOnSequences : kLoopsCarrySequences;
    if (std::any_of(chain.begin(), chain.end(), [](auto* r) { return is_scan(*r->parent_node); })) {
      return "a Scan carries no sequences";
    }
    if (operator_set(graph_) >= needed) return "";
    return fmt::format("a sequence of them needs operator set {}, and the model has {}", needed, operator_set(graph_));
  }

  void add_log(ExposedValue& exposed, const Chain& chain) {
    ir::Value* const value = exposed.inner.value;
    exposed.output = output_of(logged(chain, value, exposed.inner.name));
    ir::Value*& at = log_at_[chain.back()];
    if (!at) at = logged(chain, iterations(chain), fmt::format("{}:at", exposed.inner.name));
    exposed.log_at = output_of(at);
  }

  ir::Value* logged(const Chain& chain, ir::Value* value, const std::string& name) {
    const Type element = Type::tensor(value->type.element);
    ir::Value* const empty = call(graph_.top(), "SequenceEmpty", {}, Type::sequence(element), name + ":empty", 0);
    empty->producer->attributes.set(ir::Attribute::of("dtype", static_cast<int64_t>(element.element)));
    return carried(chain, 0, empty, value, name);
  }

  // The sequence behind the node around chain[i].
  ir::Value* carried(const Chain& chain, size_t i, ir::Value* sequence, ir::Value* value, const std::string& name) {
    ir::Node& node = *chain[i]->parent_node;
    name_outputs(node);
    ir::Value* const before = is_if(node) ? sequence : graph_.new_value(name + ":before", sequence->type, chain[i]);
    ir::Value* const after = i + 1 < chain.size()
                                 ? carried(chain, i + 1, before, value, name)
                                 : call(*chain[i], "SequenceInsert", {before, value}, sequence->type, name + ":after");
    if (!is_if(node)) return LoopEditor(node).add_state(sequence, before, after, name);
    for (const auto& region : node.regions) {
      region->outputs.push_back(region.get() == chain[i] ? after : sequence);
    }
    return graph_.add_output(&node, name, sequence->type);
  }

  // The numbers of the iterations of all loops of the chain, as one tensor in the innermost region.
  ir::Value* iterations(const Chain& chain) {
    ir::Region& inner = *chain.back();
    std::vector<ir::Value*> counters;
    for (const ir::Region* region : chain) {
      if (is_if(*region->parent_node)) continue;
      if (!one_) one_ = graph_.new_constant("one", Tensor::of_int64(std::vector<int64_t>{1}));
      ir::Value* const counter = LoopView(*region->parent_node).counter();
      counters.push_back(call(inner, "Reshape", {counter, one_}, Type::tensor(ElementType::kInt64, {1}), "counter"));
    }
    const Dim count = static_cast<int64_t>(counters.size());
    ir::Value* const all = call(inner, "Concat", counters, Type::tensor(ElementType::kInt64, {count}), "counters");
    all->producer->attributes.set(ir::Attribute::of("axis", int64_t{0}));
    return all;
  }

  // ---- Nodes

  // Values for the outputs that the node leaves out, since further outputs stand behind them.
  void name_outputs(ir::Node& node) {
    const size_t in_body = node.regions.front()->outputs.size();
    const size_t count = node.op->control == Control::kLoop ? in_body - 1 : in_body;
    while (node.outputs.size() < count) graph_.add_absent_output(&node);
    for (size_t i = 0; i < count; ++i) {
      if (node.outputs[i]) continue;
      node.outputs[i] = graph_.new_value(fmt::format("{}:{}", std::string_view(node.name), i), {}, node.parent);
      node.outputs[i]->producer = &node;
      node.outputs[i]->output_index = static_cast<uint32_t>(i);
    }
  }

  ir::Value* call(ir::Region& region, std::string_view op, const std::vector<ir::Value*>& inputs, Type type,
                  const std::string& name, size_t at = SIZE_MAX) {
    const OpDef& record = require_op(op);
    const OpVersion* const version = opt::standard_version(graph_, op);
    // A name that no node has: onnxruntime refuses models with two nodes of one name.
    const std::string path = fmt::format("exposed:{}:{}", ++calls_, name);
    ir::Node* node = graph_.new_node(&region, &record, version ? version : &record.newest(), path, at);
    for (ir::Value* input : inputs) graph_.add_input(node, input);
    return added(graph_.add_output(node, name, std::move(type)));
  }

  ir::Value* added(ir::Value* value) {
    if (!is_in_loop_) added_.push_back(value);
    return value;
  }

  size_t output_of(ir::Value* value) {
    std::vector<ir::Value*>& outputs = graph_.top().outputs;
    const auto found = std::find(outputs.begin(), outputs.end(), value);
    const auto at = static_cast<size_t>(found - outputs.begin());
    if (found == outputs.end()) outputs.push_back(value);
    return at;
  }

  ir::Graph& graph_;
  const Inference& inference_;
  std::unordered_set<std::string_view> given_sizes_;
  std::unordered_map<const ir::Region*, ir::Value*> ran_, log_at_;  // by the innermost region
  std::map<std::string, ir::Value*> zeros_;
  bool is_in_loop_ = false;        // the value that is being added
  std::vector<ir::Value*> added_;  // outside of loops
  ir::Value *truth_ = nullptr, *one_ = nullptr;
  int calls_ = 0;
};

bool is_made(const InnerValue& inner) {
  return inner.value->producer != nullptr;
}

// The values that are wanted, in the order of a run.
Result<std::vector<ExposedValue>> select(const ir::Graph& graph, std::span<const std::string> wanted) {
  std::vector<InnerValue> all = inner_values(graph);
  std::unordered_set<std::string_view> missing(wanted.begin(), wanted.end());
  std::unordered_set<std::string> seen;
  std::vector<ExposedValue> chosen;
  for (const InnerValue& inner : all) missing.erase(inner.name);
  for (const std::string& name : wanted) {
    if (!missing.contains(name)) continue;
    Speller nearest(name);
    for (const InnerValue& inner : all) nearest.offer(inner.name);
    return error(Code::kInvalidArgument, "the model has no value '{}'{}", name,
                 nearest.best().empty() ? "" : fmt::format(" (did you mean '{}'?)", nearest.best()));
  }
  for (InnerValue& inner : all) {
    const bool is_wanted =
        wanted.empty() ? is_made(inner) : std::find(wanted.begin(), wanted.end(), inner.name) != wanted.end();
    if (is_wanted && seen.insert(inner.name).second) chosen.push_back({std::move(inner), {}, {}, {}, {}, {}});
  }
  return chosen;
}

// Types as the model declares them. What inference finds holds for one run, and may contradict branches that the run
// does not take. Other engines check these all the same.
class DeclaredTypes {
 public:
  explicit DeclaredTypes(const ir::Graph& graph) {
    for (ir::Value* input : graph.top().inputs) types_.emplace_back(input, input->type);
    for (const InnerValue& inner : inner_values(graph)) types_.emplace_back(inner.value, inner.value->type);
  }
  void restore() const {
    for (const auto& [value, type] : types_) value->type = type;
  }

 private:
  std::vector<std::pair<ir::Value*, Type>> types_;
};

InferenceOptions lenient() {
  return {.strict = false, .sizes_wait = true};
}

// The values, without constants, that a node and its bodies read.
std::vector<ir::Value*> values_read(const ir::Node& node) {
  std::vector<ir::Value*> read;
  const auto add = [&](ir::Value* v) {
    if (v && !v->is_constant() && std::find(read.begin(), read.end(), v) == read.end()) read.push_back(v);
  };
  for (ir::Value* input : node.inputs) add(input);
  for (const auto& body : node.regions) {
    for (ir::Value* v : ir::captures(*body)) add(v);
  }
  return read;
}

}  // namespace

Result<std::vector<ExposedValue>> expose(ir::Graph& graph, std::span<const Feed> feeds,
                                         std::span<const std::string> wanted) {
  const DeclaredTypes declared(graph);
  Inference inference(lenient());
  TREADLE_TRY(infer_for(graph, feeds, inference));
  TREADLE_ASSIGN(std::vector<ExposedValue> values, select(graph, wanted));
  Exposer exposer(graph, inference);
  for (ExposedValue& value : values) exposer.add(value);
  exposer.forget_sizes();
  for (ExposedValue& value : values) value.type = value.inner.value->type;
  declared.restore();
  return values;
}

Result<std::vector<ReadValue>> leave_node(ir::Graph& graph, std::span<const Feed> feeds, std::string_view path) {
  Inference inference(lenient());
  TREADLE_TRY(infer_for(graph, feeds, inference));
  ir::Node* node = nullptr;
  ir::for_each_node(graph.top(), [&](ir::Node& n) {
    if (n.name == path) node = &n;
  });
  if (!node) return error(Code::kInvalidArgument, "the model has no node '{}'", path);
  std::vector<ReadValue> read;
  std::vector<ir::Value*> inputs;
  std::unordered_map<ir::Value*, ir::Value*> map;
  for (ir::Value* v : values_read(*node)) {
    read.push_back({name_of(*v), v->origin});
    inputs.push_back(graph.new_value(v->name, v->type, &graph.top()));
    map.emplace(v, inputs.back());
  }
  ir::Region& around = *node->parent;
  const auto at =
      std::find_if(around.nodes.begin(), around.nodes.end(), [&](const auto& n) { return n.get() == node; });
  std::unique_ptr<ir::Node> alone = opt::take_out(around, static_cast<size_t>(at - around.nodes.begin()));
  ir::replace_uses(*alone, map);
  ir::Region& top = graph.top();
  alone->parent = &top;
  top.nodes.clear();
  top.nodes.push_back(std::move(alone));
  top.inputs = std::move(inputs);
  top.outputs.clear();
  for (ir::Value* v : node->outputs) {
    if (!v) continue;
    v->owner = &top;
    top.outputs.push_back(v);
  }
  graph.input_defaults.clear();
  return read;
}

}  // namespace treadle::session
