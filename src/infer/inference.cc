#include "infer/inference.h"

#include <algorithm>
#include <utility>

#include "base/stop.h"
#include "infer/bodies.h"
#include "infer/onnx_rules.h"
#include "op/loop_view.h"
#include "op/place.h"
#include "op/type_rules.h"
#include "type/make_tensor.h"

namespace treadle {

namespace {

// A folded result is never larger than this if its inputs are smaller.
constexpr int64_t kMaxFoldedElements = int64_t{1} << 20;
constexpr size_t kMaxSymbolElements = 256;

// Whether contents of this type may be known: integers, and floats that sizes may be computed from.
bool may_have_symbols(const Type& type, bool as_onnx = false) {
  const bool real = type.element == ElementType::kFloat || type.element == ElementType::kDouble;
  const bool countable = is_integer(type.element) || type.element == ElementType::kBool || (real && !as_onnx);
  return type.is_tensor() && countable && type.has_shape && type.shape.size() <= 1;
}

// Whether onnx's own inference computes contents of the operator's results, from these versions on.
bool propagates_in_onnx(const ir::NodeInfo& node) {
  constexpr std::pair<std::string_view, int> kSince[] = {
      {"Add", 14},  {"Cast", 13},  {"Concat", 13},  {"Gather", 1}, {"Mul", 14},       {"Shape", 1},
      {"Size", 13}, {"Slice", 13}, {"Squeeze", 13}, {"Sub", 14},   {"Unsqueeze", 13},
  };
  for (const auto& [name, since] : kSince) {
    if (node.op->domain.empty() && node.op->name == name) return node.version->since >= since;
  }
  return false;
}

}  // namespace

Inference::Inference(InferenceOptions options) : options_(options), walk_(ir::new_walk()) {}

Inference::~Inference() {
  for (Fact* fact : facts_) fact->~Fact();
}

const Tensor* Inference::constant(const ir::Value* value) const {
  if (!value) return nullptr;
  if (value->is_constant()) return &value->constant;
  const Known* found = known(value);
  return found && found->fact && found->fact->constant.defined() ? &found->fact->constant : nullptr;
}

const Shape* Inference::symbols(const ir::Value* value) const {
  const Known* found = known(value);
  return found && found->fact && found->fact->has_symbols ? &found->fact->symbols : nullptr;
}

namespace {
const Type kNoType{};
}

Inference::Known& Inference::know(const ir::Value* value) {
  ir::Value::Note& note = value->note;
  const bool undeclared = note.walk == walk_ && note.number == kUndeclared;
  if (note.walk != walk_ || note.number < kFirstKnown) {
    note = {walk_, static_cast<uint32_t>(kFirstKnown + known_.size())};
    known_.push_back({nullptr, undeclared ? &kNoType : nullptr});
  }
  return known_[note.number - kFirstKnown];
}

Fact& Inference::fact(const ir::Value* value) {
  Known& entry = know(value);
  if (entry.fact) return *entry.fact;
  if (unused_facts_.empty()) {
    entry.fact = facts_.emplace_back(arena_.make<Fact>());
  } else {
    entry.fact = unused_facts_.back();
    unused_facts_.pop_back();
  }
  return *entry.fact;
}

void Inference::forget_fact(const ir::Value* value) {
  Known& entry = know(value);
  if (!entry.fact) return;
  *entry.fact = {};
  unused_facts_.push_back(std::exchange(entry.fact, nullptr));
}

const Type& Inference::declared(const ir::Value* value) {
  ir::Value::Note& note = value->note;
  const bool unseen = note.walk != walk_ || note.number == kUnseen;
  if (unseen && !value->type.is_known()) note = {walk_, kUndeclared};
  if (note.number == kUndeclared) return kNoType;
  Known& entry = know(value);
  if (!entry.declared) entry.declared = value->type.is_known() ? &declared_types_.emplace_back(value->type) : &kNoType;
  return *entry.declared;
}

void Inference::disbelieve(const ir::Value* value) {
  know(value).declared = &kNoType;
}

void Inference::set_constant(const ir::Value* value, Tensor contents) {
  Fact& entry = fact(value);
  entry.constant = std::move(contents);
  entry.has_symbols = false;
}

void Inference::set_symbols(const ir::Value* value, Shape contents) {
  Fact& entry = fact(value);
  entry.constant = {};
  entry.has_symbols = true;
  entry.symbols = std::move(contents);
}

struct Inference::Results {
  InlineVector<Type, 2> types;
  InlineVector<Shape, 2> symbols;
  InlineVector<bool, 8> known;
};

Status Inference::infer(ir::Region& region) {
  if (options_.name_unknowns && !region.parent_node) {
    find_taken_names(region);
    if (!as_onnx()) {
      for (ir::Value* input : region.inputs) {
        if (input) name_unknowns(input, input->type);
      }
    }
  }
  for (auto& node : region.nodes) {
    if (stop_requested()) return stopped();
    Status status = infer(*node);
    if (status.ok()) continue;
    if (!options_.fails_late || status.code() == Code::kCancelled) return status;
    set_unknown(*node);
  }
  return {};
}

void Inference::set_unknown(ir::Node& node) {
  for (ir::Value* out : node.outputs) {
    if (!out) continue;
    forget(out);
    out->type = {};
  }
}

Status Inference::infer(ir::Node& node) {
  InferenceMonitor* monitor = options_.strict ? options_.monitor : nullptr;
  const bool allowed = !monitor || monitor->allows(node);
  Status status = allowed ? infer_node(node) : Status();
  if (!waiting_.empty()) std::erase_if(waiting_, [&](const WaitingNode& w) { return w.node == &node; });
  if (allowed && status.ok()) return {};
  if (allowed) {
    // The innermost node that failed has set its place already.
    if (status.place().empty()) status = std::move(status).in(node_place(node));
    const bool waits = waits_for_run(node, status);
    if (monitor) {
      monitor->failed(node, std::move(status), waits);
    } else if (waits) {
      waiting_.push_back({&node, std::move(status), reach_});
    } else if (options_.strict) {
      return status;
    }
    if (waits) return {};
  }
  for (ir::Value* out : node.outputs) {
    if (!out) continue;
    forget(out);
    out->type = declared(out);
  }
  if (monitor) infer_unreached(node);
  return {};
}

namespace {

Type without_sizes(const Type& type) {
  Type out = type;
  for (Dim& size : out.shape) size = Dim::unknown();
  if (type.child) out.child = std::make_shared<const Type>(without_sizes(*type.child));
  return out;
}

}  // namespace

// Whether only sizes do not fit, in a node that a run may never reach. Its outputs then have element types and ranks.
bool Inference::waits_for_run(ir::Node& node, const Status& status) {
  const bool is_of_node = status.code() == Code::kInvalidModel || status.code() == Code::kInvalidArgument;
  if (!options_.sizes_wait || !options_.strict || reach_ == Reach::kSurely || !is_of_node) return false;
  const bool before = std::exchange(forgets_sizes_, true);
  const bool fits = infer_with_record(node).ok();
  forgets_sizes_ = before;
  return fits;
}

// Infers bodies that were not reached because their node failed, from the declared types of their inputs.
void Inference::infer_unreached(ir::Node& node) {
  for (auto& body : node.regions) {
    if (reached_.insert(body.get()).second) static_cast<void>(infer(*body).ok());
  }
}

Status Inference::infer_node(ir::Node& node) {
  const bool decided = node.op->control == Control::kIf && !as_onnx();
  const Tensor* condition = decided ? constant(node.inputs[0]) : nullptr;
  return condition ? infer_if_known(node, *condition) : infer_with_record(node);
}

Status Inference::infer_if_known(ir::Node& node, const Tensor& condition) {
  if (condition.element_count() != 1 || condition.type() != ElementType::kBool) {
    return error(Code::kInvalidModel, "cond is {} {}, expected one bool", name(condition.type()),
                 to_string(condition.dims()));
  }
  ir::Region& branch = *node.region(*condition.data<bool>() ? "then_branch" : "else_branch");
  if (options_.monitor) reached_.insert(&branch);
  if (branch.outputs.size() != node.outputs.size()) {
    return error(Code::kInvalidModel, "{} has {} outputs, the node {}", branch.attribute, branch.outputs.size(),
                 node.outputs.size());
  }
  TREADLE_TRY(infer(branch));
  if (options_.keep_declared)
    infer_leniently(*node.region(&branch == node.region("then_branch") ? "else_branch" : "then_branch"));
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    ir::Value* out = node.outputs[i];
    if (!out) continue;
    TREADLE_TRY(take_type(out, branch.outputs[i] ? branch.outputs[i]->type : Type()));
    if (!branch.outputs[i]) continue;
    share_facts(branch.outputs[i], out);
  }
  return {};
}

void Inference::infer_leniently(ir::Region& region) {
  const bool strict = std::exchange(options_.strict, false);
  (void)infer(region);
  options_.strict = strict;
}

Status Inference::infer_with_record(ir::Node& node) {
  const size_t inputs = node.inputs.size(), outputs = node.outputs.size();
  constexpr size_t kUsual = 6;
  InlineVector<const Type*, kUsual> types(inputs);
  InlineVector<const Tensor*, kUsual> values(inputs);
  InlineVector<const Shape*, kUsual> known_symbols(inputs);
  std::vector<Type> forgotten;
  if (forgets_sizes_) forgotten.reserve(inputs);
  // onnx ignores contents when it infers bodies.
  const bool sees_contents = !as_onnx() || node.op->control == Control::kNone;
  bool containers = false;
  for (size_t i = 0; i < inputs; ++i) {
    const ir::Value* v = node.inputs[i];
    if (!v) continue;
    types[i] = &v->type;
    containers |= v->type.is_known() && !v->type.is_tensor();
    if (forgets_sizes_ && !(v->is_constant() && node.op->shape_inputs >> i & 1)) {
      types[i] = &forgotten.emplace_back(without_sizes(v->type));
      continue;
    }
    if (!sees_contents) continue;
    values[i] = constant(v);
    known_symbols[i] = symbols(v);
  }
  Results results;
  results.types.resize(outputs);
  results.symbols.resize(outputs);
  results.known.resize(outputs);
  Bodies bodies(*this, node);
  InferContext context{node,
                       types,
                       values,
                       known_symbols,
                       {results.types.data(), outputs},
                       {results.symbols.data(), outputs},
                       {results.known.data(), outputs},
                       &bodies};
  if (options_.check_types) TREADLE_TRY(check_type_rules(node, types, {}));
  TREADLE_TRY(as_onnx() ? infer_as_onnx(context) : node.op->infer(context));
  if (options_.check_types) {
    InlineVector<const Type*, kUsual> made(outputs);
    for (size_t i = 0; i < outputs; ++i) made[i] = node.outputs[i] ? &results.types[i] : nullptr;
    TREADLE_TRY(check_type_rules(node, types, made));
  }
  const bool from_container = containers && node.op->control == Control::kNone && !options_.trust_containers;
  for (size_t i = 0; i < outputs; ++i) {
    ir::Value* v = node.outputs[i];
    if (!v) continue;
    Type& inferred = results.types[i];
    if (from_container && inferred.is_tensor()) inferred = Type::tensor(inferred.element);
    TREADLE_TRY(take_type(v, std::move(inferred)));
  }
  return take_facts(node, results);
}

Status Inference::take_type(ir::Value* value, Type&& inferred) {
  forget(value);
  if (as_onnx()) {
    forget_expressions(inferred);
  } else if (inferred.is_tensor() && inferred.element == ElementType::kUndefined) {
    // The operands were unknown; a declared type says more.
    if (options_.keep_declared && declared(value).is_tensor()) inferred.element = declared(value).element;
    const bool is_nothing = !inferred.has_shape || options_.fails_late;  // the operand's node will fail in the run
    if (inferred.element == ElementType::kUndefined && is_nothing) inferred = Type();
  }
  if (options_.name_unknowns) name_unknowns(value, inferred);
  if (!options_.keep_declared) {
    value->type = std::move(inferred);
    return {};
  }
  const Type& before = declared(value);
  if (!before.is_known()) {
    value->type = std::move(inferred);
    return {};
  }
  auto merged = merge(before, inferred);
  if (merged.ok()) {
    value->type = std::move(merged).value();
  } else if (options_.contradictions_fail) {
    return error(Code::kInvalidModel, "\"{}\" is declared as {}, but inferred as {}", value->name, before.to_string(),
                 inferred.to_string());
  } else {
    value->type = std::move(inferred);
    disbelieve(value);  // a declaration that was wrong once, such as for a first iteration, is not used again
  }
  return {};
}

Status Inference::take_facts(ir::Node& node, Results& results) {
  if (!options_.propagate || (as_onnx() && !propagates_in_onnx(node))) return {};
  if (node.op->control == Control::kIf) unite_facts(node);
  const bool has_batch = node.op->control == Control::kScan && node.version->since < 9;
  if (node.op->control == Control::kLoop || (node.op->control == Control::kScan && !has_batch)) keep_facts(node);
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    const ir::Value* v = node.outputs[i];
    if (!v || !results.known[i] || !may_have_symbols(v->type, as_onnx()) ||
        results.symbols[i].size() > kMaxSymbolElements) {
      continue;
    }
    if (as_onnx()) {
      for (Dim& d : results.symbols[i]) {
        if (d.is_symbolic() && d.symbol_name().empty()) d = Dim::unknown();
      }
    }
    set_symbols(v, std::move(results.symbols[i]));
  }
  if (options_.fold && !as_onnx()) fold(node);
  return {};
}

std::optional<Shape> Inference::contents(const ir::Value* value) const {
  if (const Shape* known = symbols(value)) return *known;
  const Tensor* tensor = constant(value);
  if (!tensor || is_float(value->type.element) || !may_have_symbols(value->type) || tensor->rank() > 1) {
    return std::nullopt;
  }
  if (tensor->element_count() > static_cast<int64_t>(kMaxSymbolElements)) return std::nullopt;
  Shape dims;
  for (int64_t i = 0; i < tensor->element_count(); ++i) dims.emplace_back(tensor->int64_at(i));
  return dims;
}

void Inference::unite_facts(const ir::Node& node) {
  const IfView choice(node);
  for (size_t i = 0; i < choice.results(); ++i) {
    const auto [yes, no, result] = choice.result(i);
    if (!result || !may_have_symbols(result->type)) continue;
    std::optional<Shape> a = contents(yes);
    const std::optional<Shape> b = contents(no);
    if (!a || !b || a->size() != b->size()) continue;
    for (size_t k = 0; k < a->size(); ++k) {
      if (!same((*a)[k], (*b)[k])) (*a)[k] = Dim::unknown();
    }
    set_symbols(result, std::move(*a));
  }
}

void Inference::keep_facts(const ir::Node& node) {
  const LoopView loop(node);
  for (size_t i = 0; i < loop.states(); ++i) {
    const auto [initial, before, after, final] = loop.state(i);
    if (initial && final && loop.stays_constant(i)) share_facts(initial, final);
  }
}

void Inference::share_facts(const ir::Value* from, const ir::Value* to) {
  if (const Tensor* tensor = constant(from)) {
    set_constant(to, *tensor);
  } else if (const Shape* known = symbols(from)) {
    set_symbols(to, *known);
  }
}

namespace {

// The tensor of `symbols` if all are numbers.
bool tensor_of_symbols(const Type& type, const Shape& symbols, Tensor& tensor) {
  if (!type.is_concrete() || !is_known(symbols)) return false;
  const Dims dims = known_dims(type.shape);
  if (known_element_count(type.shape) != static_cast<int64_t>(symbols.size())) return false;
  const auto fill = [&]<class T>(T) {
    tensor = make_tensor(type.element, dims);
    for (size_t i = 0; i < symbols.size(); ++i) tensor.mutable_data<T>()[i] = static_cast<T>(symbols[i].value());
    return true;
  };
  switch (type.element) {
    case ElementType::kInt64:
      return fill(int64_t{});
    case ElementType::kInt32:
      return fill(int32_t{});
    case ElementType::kBool:
      return fill(bool{});
    default:
      return false;
  }
}

}  // namespace

void Inference::fold(ir::Node& node) {
  for (ir::Value* v : node.outputs) {
    const Shape* known = v ? symbols(v) : nullptr;
    Tensor tensor;
    if (known && tensor_of_symbols(v->type, *known, tensor)) set_constant(v, std::move(tensor));
  }
  const OpDef& op = *node.op;
  if (!op.runs() || op.control != Control::kNone || !node.regions.empty() || !op.folds()) return;
  for (const ir::Value* v : node.inputs) {
    if (v && !constant(v)) return;
  }
  std::vector<AnyValue> inputs;
  for (const ir::Value* v : node.inputs) {
    const Tensor* t = constant(v);
    inputs.push_back(t ? AnyValue(*t) : AnyValue());
  }
  std::vector<Type> types;
  bool wanted = false;
  for (const ir::Value* v : node.outputs) {
    const bool open = v && !constant(v);
    types.push_back(open ? v->type : Type());
    wanted |= open;
  }
  if (!wanted || !worth_folding(inputs, types)) return;
  if (!folding_) folding_.emplace(options_.fold_limits);
  const auto results = folding_->evaluate(node, inputs);
  if (!results) return;  // the run reports the error if it gets here
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    if (node.outputs[i] && (*results)[i].is_tensor()) {
      const Tensor& t = (*results)[i].tensor();
      node.outputs[i]->type = Type::tensor(t.type(), to_shape(t.dims()));
      set_constant(node.outputs[i], t);
    }
  }
}

bool worth_folding(std::span<const AnyValue> inputs, std::span<const Type> outputs) {
  int64_t elements = 0;
  for (const AnyValue& v : inputs) {
    if (v.is_tensor()) elements += v.tensor().element_count();
  }
  for (const Type& type : outputs) {
    if (!type.is_known()) continue;
    if (!type.is_tensor()) return false;
    if (!type.is_concrete()) continue;
    const auto count = element_count(known_dims(type.shape));
    if (!count.ok() || *count > std::max(kMaxFoldedElements, 2 * elements)) return false;
  }
  return true;
}

}  // namespace treadle
