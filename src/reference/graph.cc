// Walks a graph node by node. All values lie in one map; each iteration of a loop overwrites the values of the body.
#include <cstring>
#include <unordered_map>

#include "kernels/dispatch.h"
#include "op/loop_view.h"
#include "op/lower.h"
#include "op/op_def.h"
#include "op/place.h"
#include "reference/interpreter.h"
#include "type/make_tensor.h"

namespace treadle::reference {

namespace {

using Environment = std::unordered_map<const ir::Value*, AnyValue>;

// Sizes of a row of a scan output without iterations: the known sizes that the model states, else those that inference
// found, and 0 for unknown ones.
const Type& type_of_row(const LoopView& loop, size_t scan_output) {
  const Type& stated = *loop.row_type(scan_output);
  return stated.is_known() ? stated : loop.scan_output(scan_output).row->type;
}

Tensor empty_stack(const Type& element) {
  Dims dims{0};
  if (element.has_shape) {
    for (const Dim& d : element.shape) dims.push_back(d.value_or(0));
  }
  const ElementType type = element.element == ElementType::kUndefined ? ElementType::kFloat : element.element;
  return make_tensor(type, dims);
}

// Copies `block` (the element of one iteration) to position `iteration` along `axis` of `whole`, or back.
struct SliceCopy {
  int64_t outer = 1, length = 1, inner = 1;

  SliceCopy(const Dims& whole, int64_t axis) {
    for (int64_t i = 0; i < axis; ++i) outer *= whole[static_cast<size_t>(i)];
    length = whole[static_cast<size_t>(axis)];
    for (size_t i = static_cast<size_t>(axis) + 1; i < whole.size(); ++i) inner *= whole[i];
  }
  template <class Fn>
  void each(int64_t iteration, Fn&& copy) const {
    for (int64_t o = 0; o < outer; ++o) copy((o * length + iteration) * inner, o * inner, inner);
  }
};

void copy_elements(const Tensor& from, int64_t from_index, Tensor& to, int64_t to_index, int64_t count) {
  if (is_string(from.type())) {
    std::copy_n(from.data<String>() + from_index, count, to.mutable_data<String>() + to_index);
    return;
  }
  const auto width = static_cast<int64_t>(byte_width(from.type()));
  if (count > 0) {
    std::memcpy(static_cast<char*>(to.mutable_raw()) + to_index * width,
                static_cast<const char*>(from.raw()) + from_index * width, static_cast<size_t>(count * width));
  }
}

Result<Tensor> take_slice(const Tensor& whole, int64_t axis, int64_t iteration) {
  Dims dims = whole.dims();
  dims.erase(static_cast<size_t>(axis));
  TREADLE_ASSIGN(Tensor slice, Tensor::allocate(whole.type(), dims));
  SliceCopy(whole.dims(), axis).each(iteration, [&](int64_t whole_index, int64_t slice_index, int64_t count) {
    copy_elements(whole, whole_index, slice, slice_index, count);
  });
  return slice;
}

// Stacks the elements of all iterations along `axis`.
Result<Tensor> stack(const std::vector<Tensor>& elements, int64_t axis, bool reverse) {
  Dims dims = elements[0].dims();
  dims.insert(static_cast<size_t>(axis), static_cast<int64_t>(elements.size()));
  TREADLE_ASSIGN(Tensor whole, Tensor::allocate(elements[0].type(), dims));
  const SliceCopy slices(dims, axis);
  for (size_t t = 0; t < elements.size(); ++t) {
    const auto position = static_cast<int64_t>(reverse ? elements.size() - 1 - t : t);
    slices.each(position, [&](int64_t whole_index, int64_t slice_index, int64_t count) {
      copy_elements(elements[t], slice_index, whole, whole_index, count);
    });
  }
  return whole;
}

// Marks that a loop is running.
class InLoop {
 public:
  explicit InLoop(Guard* guard) : guard_(guard) {
    if (guard_) ++guard_->loops;
  }
  ~InLoop() {
    if (guard_) --guard_->loops;
  }
  InLoop(const InLoop&) = delete;
  InLoop& operator=(const InLoop&) = delete;

 private:
  Guard* guard_;
};

class Walker {
 public:
  explicit Walker(Guard* guard) : guard_(guard) {}

  Status run(const ir::Region& region) {
    for (const auto& node : region.nodes) {
      Status s = guard_ ? guard_->step() : Status();
      if (s.ok()) s = run(*node);
      // No estimate covers an operator of the program's own, so limits are looked at after it as well.
      if (s.ok() && guard_ && node->op->custom) s = guard_->step();
      if (!s.ok()) return in_node(std::move(s), *node);
    }
    return {};
  }

  void set(const ir::Value* value, AnyValue v) {
    if (!value) return;
    AnyValue& held = values_[value] = std::move(v);
    if (guard_) guard_->made(*value, held);
  }

  const AnyValue& get(const ir::Value* value) {
    if (!value) return none_;
    if (value->is_constant()) {
      auto [it, fresh] = values_.try_emplace(value);
      if (fresh) it->second = AnyValue(value->constant);
      return it->second;
    }
    return values_[value];
  }

 private:
  static Status in_node(Status s, const ir::Node& node) {
    // The path of a node in a branch contains the If. The parts of a lowered node are named as the node.
    const bool is_loop = node.op->control == Control::kLoop || node.op->control == Control::kScan;
    if (!s.place().empty() && (!is_loop || is_lowered(node))) return s;
    // The parent names a loop that is part of the same lowering.
    const ir::Node* around = node.parent->parent_node;
    if (around && is_part(node, *around)) return s;
    return std::move(s).in(node_place(node));
  }

  static bool is_lowered(const ir::Node& node) { return !node.regions.empty() && node.op->lowers(*node.version); }

  static Status in_iteration(Status s, int64_t iteration) {
    const char* colon = s.place().empty() ? "" : ":";
    return std::move(s).in(fmt::format("body, iteration {}{}", iteration, colon));
  }

  std::vector<AnyValue> gather_inputs(const ir::Node& node) {
    std::vector<AnyValue> inputs;
    for (const ir::Value* v : node.inputs) inputs.push_back(get(v));
    return inputs;
  }

  Status run(const ir::Node& node) {
    if (is_lowered(node)) return run_lowered(node);
    switch (node.op->control) {
      case Control::kIf:
        return run_if(node);
      case Control::kLoop:
        return run_loop(node);
      case Control::kScan:
        return run_scan(node);
      case Control::kNone:
        break;
    }
    bool wanted[64];
    const size_t count = std::min<size_t>(node.outputs.size(), 64);
    for (size_t i = 0; i < count; ++i) wanted[i] = node.outputs[i] != nullptr;
    const bool all = node.outputs.size() > 64;
    TREADLE_ASSIGN(
        std::vector<AnyValue> results,
        run_node(node, gather_inputs(node), all ? std::span<const bool>() : std::span(wanted, count), guard_));
    for (size_t i = 0; i < node.outputs.size(); ++i) {
      if (node.outputs[i] && results[i].is_none()) return not_made(node, i);
      set(node.outputs[i], std::move(results[i]));
    }
    return {};
  }

  // Runs a node whose lowering inlines its bodies.
  Status run_lowered(const ir::Node& node) {
    std::vector<AnyValue> inputs = gather_inputs(node);
    TREADLE_TRY(infer_outputs(node, inputs).status());
    std::vector<Type> types;
    for (const AnyValue& v : inputs) types.push_back(v.type());
    std::vector<const Type*> type_pointers;
    for (size_t i = 0; i < inputs.size(); ++i) type_pointers.push_back(inputs[i].is_none() ? nullptr : &types[i]);
    std::vector<ir::Value*> captured;
    TREADLE_ASSIGN(auto graph, lower_node(node, type_pointers, {}, node.regions, &captured));
    TREADLE_TRY(check_outputs_made(node, *graph));
    for (const ir::Value* v : captured) inputs.push_back(get(v));
    Walker walker(guard_);
    for (size_t i = 0; i < inputs.size(); ++i) walker.set(graph->top().inputs[i], inputs[i]);
    TREADLE_TRY(walker.run(graph->top()));
    for (size_t i = 0; i < node.outputs.size(); ++i) set(node.outputs[i], walker.get(graph->top().outputs[i]));
    return {};
  }

  Result<bool> flag(const ir::Value* value, std::string_view what) {
    const AnyValue& v = get(value);
    if (!v.is_tensor() || v.tensor().type() != ElementType::kBool || v.tensor().element_count() != 1) {
      return error(Code::kRuntime, "{} is {}, expected one bool", what, v.type().to_string());
    }
    return *v.tensor().data<bool>();
  }

  Status run_if(const ir::Node& node) {
    TREADLE_ASSIGN(const bool condition, flag(node.inputs[0], "cond"));
    const ir::Region& branch = IfView(node).branch(condition);
    TREADLE_TRY(run(branch));
    for (size_t i = 0; i < node.outputs.size(); ++i) set(node.outputs[i], get(branch.outputs[i]));
    return {};
  }

  // Elements of scan outputs by iteration, checked to have the same shape.
  struct Stacks {
    std::vector<std::vector<Tensor>> elements;

    Status push(size_t i, const AnyValue& v) {
      if (!v.is_tensor()) return error(Code::kRuntime, "scan output {} is not a tensor", i);
      const Tensor& t = v.tensor();
      if (!elements[i].empty() && !(elements[i][0].dims() == t.dims() && elements[i][0].type() == t.type())) {
        return error(Code::kRuntime, "an element of a scan output has shape {}, in iteration 0 it had {}",
                     to_string(t.dims()), to_string(elements[i][0].dims()));
      }
      elements[i].push_back(t);
      return {};
    }
  };

  Status run_loop(const ir::Node& node) {
    const InLoop here(guard_);
    TREADLE_ASSIGN(const LoopView loop, LoopView::read(node));
    int64_t iterations = INT64_MAX;
    if (loop.trip_count()) {
      const AnyValue& m = get(loop.trip_count());
      if (!m.is_tensor() || m.tensor().type() != ElementType::kInt64 || m.tensor().element_count() != 1) {
        return error(Code::kRuntime, "M is {}, expected one int64", m.type().to_string());
      }
      iterations = *m.tensor().data<int64_t>();
    }
    bool continues = true;
    if (loop.condition()) {
      TREADLE_ASSIGN(continues, flag(loop.condition(), "cond"));
    }
    std::vector<AnyValue> state = initial_states(loop);
    Stacks stacks{std::vector<std::vector<Tensor>>(loop.scan_outputs())};
    for (int64_t iteration = 0; iteration < iterations && continues; ++iteration) {
      Status s = run_loop_iteration(loop, iteration, state, stacks, continues);
      if (!s.ok()) return in_iteration(std::move(s), iteration);
    }
    return finish(loop, state, stacks);
  }

  std::vector<AnyValue> initial_states(const LoopView& loop) {
    std::vector<AnyValue> states;
    for (size_t i = 0; i < loop.states(); ++i) states.push_back(get(loop.state(i).initial));
    return states;
  }

  Status finish(const LoopView& loop, const std::vector<AnyValue>& state, const Stacks& stacks) {
    for (size_t i = 0; i < state.size(); ++i) {
      if (const ir::Value* final = loop.state(i).final) set(final, state[i]);
    }
    for (size_t i = 0; i < loop.scan_outputs(); ++i) {
      const LoopView::ScanOutput out = loop.scan_output(i);
      if (!out.whole) continue;
      TREADLE_ASSIGN(Tensor whole, finish_scan_output(stacks.elements[i], out, loop, i));
      set(out.whole, AnyValue(std::move(whole)));
    }
    return {};
  }

  // A state that is an optional takes a value that the body returns without wrapping.
  static AnyValue as_optional(AnyValue value) {
    if (value.kind() == AnyValue::Kind::kOptional) return value;
    Type type = value.type();
    return AnyValue(Optional{std::move(type), std::make_shared<const AnyValue>(std::move(value))});
  }

  Status run_loop_iteration(const LoopView& loop, int64_t iteration, std::vector<AnyValue>& state, Stacks& stacks,
                            bool& continues) {
    if (guard_) TREADLE_TRY(guard_->iteration());
    set(loop.counter(), AnyValue(Tensor::scalar<int64_t>(ElementType::kInt64, iteration)));
    set(loop.condition_before(), AnyValue(Tensor::scalar<bool>(ElementType::kBool, continues)));
    for (size_t i = 0; i < state.size(); ++i) {
      const ir::Value* in = loop.state(i).before;
      set(in, in->type.kind == Type::Kind::kOptional ? as_optional(std::move(state[i])) : std::move(state[i]));
    }
    TREADLE_TRY(run(loop.body()));
    if (loop.condition()) {
      TREADLE_ASSIGN(continues, flag(loop.condition_after(), "the body's condition"));
    }
    for (size_t i = 0; i < state.size(); ++i) state[i] = get(loop.state(i).after);
    return push_rows(loop, stacks);
  }

  Status run_scan(const ir::Node& node) {
    const InLoop here(guard_);
    TREADLE_ASSIGN(const LoopView scan, LoopView::read(node));
    std::vector<AnyValue> state = initial_states(scan);
    std::vector<Tensor> sources;
    std::vector<int64_t> axes;
    int64_t length = 0;
    for (size_t i = 0; i < scan.scan_inputs(); ++i) {
      const LoopView::ScanInput in = scan.scan_input(i);
      const AnyValue& v = get(in.whole);
      if (!v.is_tensor()) return error(Code::kRuntime, "scan input {} is not a tensor", i);
      TREADLE_ASSIGN(const int64_t axis, normalize_axis(in.axis, v.tensor().rank(), "scan_input_axes"));
      const int64_t n = v.tensor().dims()[static_cast<size_t>(axis)];
      if (i > 0 && n != length) return unequal_lengths(i, n, length);
      length = n;
      axes.push_back(axis);
      sources.push_back(v.tensor());
    }
    Stacks stacks{std::vector<std::vector<Tensor>>(scan.scan_outputs())};
    for (int64_t iteration = 0; iteration < length; ++iteration) {
      for (size_t i = 0; i < sources.size(); ++i) {
        const LoopView::ScanInput in = scan.scan_input(i);
        TREADLE_ASSIGN(Tensor slice, take_slice(sources[i], axes[i], in.reverse ? length - 1 - iteration : iteration));
        set(in.element, AnyValue(std::move(slice)));
      }
      Status s = run_scan_iteration(scan, state);
      if (!s.ok()) return in_iteration(std::move(s), iteration);
      TREADLE_TRY(hand_over(scan, iteration, state));
      s = push_rows(scan, stacks);
      if (!s.ok()) return in_iteration(std::move(s), iteration);
    }
    return finish(scan, state, stacks);
  }

  Status run_scan_iteration(const LoopView& scan, const std::vector<AnyValue>& state) {
    if (guard_) TREADLE_TRY(guard_->iteration());
    for (size_t i = 0; i < state.size(); ++i) set(scan.state(i).before, state[i]);
    return run(scan.body());
  }

  Status hand_over(const LoopView& scan, int64_t iteration, std::vector<AnyValue>& state) {
    for (size_t i = 0; i < state.size(); ++i) {
      const AnyValue& next = get(scan.state(i).after);
      if (!next.is_tensor() || !state[i].is_tensor() || !(next.tensor().dims() == state[i].tensor().dims()) ||
          next.tensor().type() != state[i].tensor().type()) {
        return changed_state(Code::kRuntime, i, iteration, state[i].type(), next.type());
      }
      state[i] = next;
    }
    return {};
  }

  Status push_rows(const LoopView& loop, Stacks& stacks) {
    for (size_t i = 0; i < stacks.elements.size(); ++i) TREADLE_TRY(stacks.push(i, get(loop.scan_output(i).row)));
    return {};
  }

  Result<Tensor> finish_scan_output(const std::vector<Tensor>& elements, const LoopView::ScanOutput& how,
                                    const LoopView& loop, size_t scan_output) {
    if (!elements.empty()) {
      TREADLE_ASSIGN(const int64_t axis, normalize_axis(how.axis, elements[0].rank() + 1, "scan_output_axes"));
      return stack(elements, axis, how.reverse);
    }
    Tensor empty = empty_stack(type_of_row(loop, scan_output));
    TREADLE_ASSIGN(const int64_t axis, normalize_axis(how.axis, empty.rank(), "scan_output_axes"));
    Dims dims = empty.dims();
    dims.erase(0);
    dims.insert(static_cast<size_t>(axis), 0);
    return empty.reshaped(dims);
  }

  Guard* guard_;
  Environment values_;
  const AnyValue none_{};
};

}  // namespace

Result<std::vector<AnyValue>> run_graph(const ir::Graph& graph, std::span<const AnyValue> inputs, Guard* guard) {
  const kernels::ScopedIsa narrowest(narrowest_isa());
  return run_lowering(graph, inputs, guard);
}

Result<std::vector<AnyValue>> run_lowering(const ir::Graph& graph, std::span<const AnyValue> inputs, Guard* guard) {
  Walker walker(guard);
  const ir::Region& top = graph.top();
  for (size_t i = 0; i < top.inputs.size(); ++i) {
    if (top.inputs[i] && i < inputs.size()) walker.set(top.inputs[i], inputs[i]);
  }
  TREADLE_TRY(walker.run(top));
  std::vector<AnyValue> outputs;
  for (const ir::Value* v : top.outputs) outputs.push_back(walker.get(v));
  return outputs;
}

}  // namespace treadle::reference
