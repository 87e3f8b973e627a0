// One rule per family of operators. A rule gets the node and the axis of each input, and says which axis of each output
// it is. Whatever has no rule looks along the axis, as far as anybody knows.
#include "opt/axis_rules.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <string_view>

#include "op/op_def.h"

namespace treadle::opt {

namespace {

Status looks_along(std::string why) {
  return {Code::kInvalidArgument, std::move(why)};
}

// Product of the sizes [first, last).
Dim product(const Shape& shape, size_t first, size_t last) {
  Dim result = 1;
  for (size_t i = first; i < last; ++i) result = result * shape[i];
  return result;
}

// What a rule works with.
class Flow {
 public:
  Flow(const ir::Node& node, AxisMap& axes) : node_(node), axes_(axes) {
    for (const ir::Value* v : node.inputs) {
      const auto it = v ? axes.find(v) : axes.end();
      in_.push_back(it == axes.end() ? kNoAxis : it->second);
    }
  }

  const ir::Node& node() const { return node_; }
  size_t inputs() const { return in_.size(); }
  int64_t in(size_t i) const { return i < in_.size() ? in_[i] : kNoAxis; }
  bool runs_along(size_t i) const { return in(i) != kNoAxis; }
  bool present(size_t i) const { return i < node_.inputs.size() && node_.inputs[i]; }
  const Type& type(size_t i) const { return node_.inputs[i]->type; }
  int64_t rank(size_t i) const { return type(i).rank(); }
  const Shape& out_shape(size_t i = 0) const { return node_.outputs[i]->type.shape; }
  int64_t out_rank(size_t i = 0) const { return node_.outputs[i]->type.rank(); }
  const ir::Attributes& attributes() const { return node_.attributes; }
  std::string_view op() const { return node_.op->name; }
  int version() const { return node_.version->since; }

  // An axis attribute as a position among `rank` axes.
  int64_t axis(int64_t rank, int64_t otherwise) const {
    const int64_t axis = attributes().get_int("axis", otherwise);
    return axis < 0 ? axis + rank : axis;
  }
  bool only_runs_along(size_t input) const {
    for (size_t i = 0; i < in_.size(); ++i) {
      if ((i == input) != (in_[i] != kNoAxis)) return false;
    }
    return true;
  }

  Status give(size_t output, int64_t axis) {
    if (output < node_.outputs.size() && node_.outputs[output]) axes_[node_.outputs[output]] = axis;
    return {};
  }
  Status give_all(int64_t axis) {
    for (size_t i = 0; i < node_.outputs.size(); ++i) TREADLE_TRY(give(i, axis));
    return {};
  }
  AxisMap& axes() { return axes_; }

 private:
  const ir::Node& node_;
  AxisMap& axes_;
  std::vector<int64_t> in_;
};

using Rule = Status (*)(Flow&);

Status need_types(const Flow& f) {
  for (size_t i = 0; i < f.inputs(); ++i) {
    if (f.present(i) && f.type(i).is_tensor() && !f.type(i).has_shape) {
      return looks_along("the rank of its input is not known");
    }
  }
  for (const ir::Value* v : f.node().outputs) {
    if (v && v->type.is_tensor() && !v->type.has_shape) return looks_along("the rank of its result is not known");
  }
  return {};
}

Status only_first(const Flow& f) {
  if (f.only_runs_along(0)) return {};
  return looks_along("another input than its first runs along the axis");
}

// Aligned at the last axis, operands of size 1 spread.
Status broadcast(Flow& f) {
  if (f.attributes().has("broadcast") || !f.node().outputs[0]) return looks_along("it is of an old version");
  int64_t axis = kNoAxis;
  for (size_t i = 0; i < f.inputs(); ++i) {
    if (!f.runs_along(i)) continue;
    const int64_t here = f.in(i) + f.out_rank() - f.rank(i);
    if (axis != kNoAxis && here != axis) return looks_along("its operands run along unlike axes");
    axis = here;
  }
  for (size_t i = 0; i < f.inputs(); ++i) {
    if (f.runs_along(i) || !f.present(i)) continue;
    const int64_t at = axis - (f.out_rank() - f.rank(i));
    if (at >= 0 && !f.type(i).shape[static_cast<size_t>(at)].is_known(1)) {
      return looks_along(fmt::format("'{}' has a fixed size along it", std::string_view(f.node().inputs[i]->name)));
    }
  }
  return f.give_all(axis);
}

Status same_axis_of_all(Flow& f) {
  TREADLE_TRY(only_first(f));
  return f.give_all(f.in(0));
}

// Of the other operand only the type counts.
Status cast_like(Flow& f) {
  if (!f.runs_along(0)) return only_first(f);
  return f.give(0, f.in(0));
}

// Old versions take a vector of slopes for the channels.
Status prelu(Flow& f) {
  const bool by_channel = f.version() < 7 && f.rank(1) == 1 && !f.type(1).shape[0].is_known(1);
  if (by_channel && f.in(0) == 1) return looks_along("its slopes run along it");
  return by_channel ? same_axis_of_all(f) : broadcast(f);
}

Status quantize(Flow& f) {
  TREADLE_TRY(only_first(f));
  const bool per_tensor = f.rank(1) == 0 || (f.rank(1) == 1 && f.type(1).shape[0].is_known(1));
  const bool in_blocks = f.rank(1) > 1 && !f.type(1).shape[static_cast<size_t>(f.in(0))].is_known(1);
  if (!per_tensor && (in_blocks || f.axis(f.rank(0), 1) == f.in(0))) return looks_along("its scales run along it");
  return f.give(0, f.in(0));
}

// Axes are counted among as many as the longer operand has; a vector has no rows, or no columns, to give.
Status matmul(Flow& f) {
  const int64_t ranks[2] = {f.rank(0), f.rank(1)};
  const int64_t rank = std::max(ranks[0], ranks[1]);
  if (f.runs_along(0) && f.in(0) == ranks[0] - 1) return looks_along("its product sums along it");
  if (f.runs_along(1) && (ranks[1] == 1 || f.in(1) == ranks[1] - 2)) return looks_along("its product sums along it");
  int64_t axis = kNoAxis;
  for (size_t i = 0; i < 2; ++i) {
    if (!f.runs_along(i)) continue;
    const int64_t here = f.in(i) + rank - ranks[i];
    if (axis != kNoAxis && here != axis) return looks_along("its product pairs all positions with all");
    axis = here;
  }
  for (size_t i = 0; i < 2; ++i) {
    const int64_t at = axis - (rank - ranks[i]);
    if (f.runs_along(i) || axis >= rank - 2 || at < 0) continue;
    if (!f.type(i).shape[static_cast<size_t>(at)].is_known(1)) {
      return looks_along("an operand of its product has a fixed size along it");
    }
  }
  return f.give(0, ranks[0] == 1 && axis == rank - 1 ? axis - 1 : axis);
}

Status gemm(Flow& f) {
  if (f.runs_along(0) && f.runs_along(1)) return looks_along("both operands of its product run along it");
  const bool trans_a = f.attributes().get_int("transA") != 0, trans_b = f.attributes().get_int("transB") != 0;
  int64_t axis = kNoAxis;
  if (f.runs_along(0)) axis = f.in(0) == (trans_a ? 1 : 0) ? 0 : kNoAxis;
  if (f.runs_along(1)) axis = f.in(1) == (trans_b ? 0 : 1) ? 1 : kNoAxis;
  if (axis == kNoAxis) return looks_along("its product sums along it");
  if (f.present(2)) {
    const int64_t at = axis - (2 - f.rank(2));
    if (f.runs_along(2) ? at != f.in(2) : at >= 0 && !f.type(2).shape[static_cast<size_t>(at)].is_known(1)) {
      return looks_along("its addend has a fixed size along it");
    }
  }
  return f.give(0, axis);
}

Status transpose(Flow& f) {
  const auto perm = f.attributes().get_ints("perm");
  if (perm.empty()) return f.give(0, f.rank(0) - 1 - f.in(0));
  const auto it = std::find(perm.begin(), perm.end(), f.in(0));
  return f.give(0, it - perm.begin());
}

Status move_axis(Flow& f) {
  const int64_t rank = f.rank(0);
  const auto position = [&](const char* name) {
    const int64_t axis = f.attributes().get_int(name);
    return axis < 0 ? axis + rank : axis;
  };
  const int64_t from = position("from"), to = position("to");
  if (f.in(0) == from) return f.give(0, to);
  const int64_t without = f.in(0) - (f.in(0) > from ? 1 : 0);
  return f.give(0, without + (without >= to ? 1 : 0));
}

Status reshape(Flow& f) {
  TREADLE_TRY(only_first(f));
  const int64_t axis = same_axis(f.type(0).shape, f.in(0), f.out_shape());
  if (axis == kNoAxis) {
    return looks_along(fmt::format("it makes {} of {}", to_string(f.out_shape()), to_string(f.type(0).shape)));
  }
  return f.give(0, axis);
}

Status expand(Flow& f) {
  TREADLE_TRY(only_first(f));
  const int64_t axis = f.in(0) + f.out_rank() - f.rank(0);
  if (!same(f.out_shape()[static_cast<size_t>(axis)], f.type(0).shape[static_cast<size_t>(f.in(0))])) {
    return looks_along("it spreads the axis");
  }
  return f.give(0, axis);
}

Status concat(Flow& f) {
  const int64_t axis = f.in(0);
  for (size_t i = 0; i < f.inputs(); ++i) {
    if (f.in(i) != axis || axis == kNoAxis) return looks_along("not all that it puts together runs along it");
  }
  if (f.axis(f.rank(0), 1) == axis) return looks_along("it puts parts together along it");
  return f.give(0, axis);
}

Status split(Flow& f) {
  TREADLE_TRY(only_first(f));
  if (f.axis(f.rank(0), 0) == f.in(0)) return looks_along("it splits it");
  return f.give_all(f.in(0));
}

// A part of unit steps that is as long as the axis is all of it.
Status slice(Flow& f) {
  TREADLE_TRY(only_first(f));
  const auto axes = constant_axes(f.node(), 3);
  if (!axes) return looks_along("its axes are not known beforehand");
  const auto position = [&](int64_t a) { return (a < 0 ? a + f.rank(0) : a) == f.in(0); };
  const auto it = std::find_if(axes->begin(), axes->end(), position);
  const size_t at = axes->empty() ? static_cast<size_t>(f.in(0)) : static_cast<size_t>(it - axes->begin());
  if (!axes->empty() && it == axes->end()) return f.give(0, f.in(0));
  const auto steps = f.present(4) ? constant_ints(f.node(), 4) : std::vector<int64_t>(at + 1, 1);
  const auto axis = static_cast<size_t>(f.in(0));
  const bool all = steps && at < steps->size() && (*steps)[at] == 1 && same(f.out_shape()[axis], f.type(0).shape[axis]);
  if (!all) return looks_along("it cuts a part out of it");
  return f.give(0, f.in(0));
}

Status gather(Flow& f) {
  const int64_t axis = f.axis(f.rank(0), 0);
  if (f.runs_along(0) && f.runs_along(1)) return looks_along("both its data and its indices run along it");
  if (f.runs_along(1)) return f.give(0, axis + f.in(1));
  if (f.in(0) == axis) return looks_along("it picks positions of it");
  return f.give(0, f.in(0) < axis ? f.in(0) : f.in(0) + f.rank(1) - 1);
}

// GatherElements, ScatterElements, and others whose operands all have one shape.
Status elements(Flow& f) {
  for (size_t i = 1; i < f.inputs(); ++i) {
    if (f.in(i) != f.in(0)) return looks_along("not all of its inputs run along it");
  }
  if (f.axis(f.rank(0), 0) == f.in(0)) return looks_along("it picks positions of it");
  return f.give(0, f.in(0));
}

Status pad(Flow& f) {
  TREADLE_TRY(only_first(f));
  if (!same(f.out_shape()[static_cast<size_t>(f.in(0))], f.type(0).shape[static_cast<size_t>(f.in(0))])) {
    return looks_along("it pads it");
  }
  return f.give(0, f.in(0));
}

Status reduce(Flow& f) {
  TREADLE_TRY(only_first(f));
  const auto axes = constant_axes(f.node(), 1);
  if (!axes) return looks_along("its axes are not known beforehand");
  const int64_t rank = f.rank(0);
  if (axes->empty()) {
    if (f.attributes().get_int("noop_with_empty_axes") != 0) return f.give(0, f.in(0));
    return looks_along("it reduces all axes");
  }
  int64_t axis = f.in(0);
  for (int64_t a : *axes) {
    if (a < 0) a += rank;
    if (a == f.in(0)) return looks_along(fmt::format("it reduces axis {}", a));
    if (a < f.in(0) && f.attributes().get_int("keepdims", 1) == 0) --axis;
  }
  return f.give(0, axis);
}

Status arg_reduce(Flow& f) {
  const int64_t axis = f.axis(f.rank(0), 0);
  if (axis == f.in(0)) return looks_along(fmt::format("it searches axis {}", axis));
  const bool drops = f.attributes().get_int("keepdims", 1) == 0 && axis < f.in(0);
  return f.give(0, f.in(0) - (drops ? 1 : 0));
}

// Along one axis; with old versions along all from that axis on.
Status softmax(Flow& f) {
  const bool flattens = f.version() < 13;
  const int64_t axis = f.axis(f.rank(0), flattens ? 1 : -1);
  if (axis == f.in(0) || (flattens && f.in(0) > axis)) {
    return looks_along(fmt::format("it is taken over axis {}", f.in(0)));
  }
  return f.give(0, f.in(0));
}

Status along_attribute_axis(Flow& f) {
  TREADLE_TRY(only_first(f));
  if (f.axis(f.rank(0), -1) == f.in(0)) return looks_along(fmt::format("it runs over axis {}", f.in(0)));
  return f.give_all(f.in(0));
}

Status layer_normalization(Flow& f) {
  TREADLE_TRY(only_first(f));
  if (f.in(0) >= f.axis(f.rank(0), -1)) return looks_along(fmt::format("it normalises over axis {}", f.in(0)));
  return f.give_all(f.in(0));
}

Status batch_normalization(Flow& f) {
  TREADLE_TRY(only_first(f));
  if (f.in(0) == 1 || f.attributes().get_int("training_mode") != 0) return looks_along("it normalises over it");
  return f.give(0, f.in(0));
}

// What treats entries of axis 0 one by one.
Status entries(Flow& f) {
  TREADLE_TRY(only_first(f));
  if (f.in(0) != 0) return looks_along(fmt::format("it runs over axis {}", f.in(0)));
  return f.give_all(0);
}

// Entries and channels.
Status pool(Flow& f) {
  if (f.in(0) > 1) return looks_along(fmt::format("its windows run along axis {}", f.in(0)));
  return f.give_all(f.in(0));
}

Status lrn(Flow& f) {
  if (f.in(0) == 1) return looks_along("it normalises over axis 1");
  return f.give(0, f.in(0));
}

Status mean_variance(Flow& f) {
  for (const int64_t a : f.attributes().get_ints("axes")) {
    if ((a < 0 ? a + f.rank(0) : a) == f.in(0)) return looks_along(fmt::format("it normalises over axis {}", a));
  }
  return f.give(0, f.in(0));
}

Status top_k(Flow& f) {
  TREADLE_TRY(only_first(f));
  return along_attribute_axis(f);
}

Status cum_sum(Flow& f) {
  TREADLE_TRY(only_first(f));
  const auto axis = constant_ints(f.node(), 1);
  if (!axis || axis->size() != 1) return looks_along("its axis is not known beforehand");
  if (((*axis)[0] < 0 ? (*axis)[0] + f.rank(0) : (*axis)[0]) == f.in(0)) return looks_along("it sums along it");
  return f.give(0, f.in(0));
}

Status one_hot(Flow& f) {
  TREADLE_TRY(only_first(f));
  const int64_t axis = f.axis(f.rank(0) + 1, -1);
  return f.give(0, f.in(0) + (f.in(0) >= axis ? 1 : 0));
}

Status trilu(Flow& f) {
  if (f.in(0) >= f.rank(0) - 2) return looks_along("it looks at positions along it");
  return f.give(0, f.in(0));
}

// Of a batch: queries, keys, values and what is kept of them. Masks are the same for all entries, or run along it too.
Status attention(Flow& f) {
  constexpr size_t kMask = 3;
  for (size_t i = 0; i < f.inputs(); ++i) {
    if (f.in(i) > 0) return looks_along("it relates its positions to all others");
    if (!f.present(i) || f.in(i) == 0) continue;
    const bool alike = i == kMask && (f.rank(i) < 4 || f.type(i).shape[0].is_known(1));
    if (!alike) return looks_along("not all of its inputs run along it");
  }
  return f.give_all(0);
}

// The batch of a recurrence.
Status recurrence(Flow& f) {
  const bool batch_first = f.attributes().get_int("layout") != 0;
  const int64_t x_axis = batch_first ? 0 : 1;
  if (f.in(0) != x_axis) {
    return looks_along(f.in(0) == 1 - x_axis ? "it runs over time" : "its product sums along it");
  }
  for (size_t i = 1; i < f.inputs(); ++i) {
    if (!f.present(i)) continue;
    const int64_t expected = i == 4 ? 0 : i == 5 || (i == 6 && f.op() == "LSTM") ? x_axis : kNoAxis;
    if (f.in(i) != expected) return looks_along("not all of its inputs run along it");
  }
  TREADLE_TRY(f.give(0, batch_first ? 0 : 2));
  TREADLE_TRY(f.give(1, x_axis));
  return f.give(2, x_axis);
}

// --- control flow

// Pairs of values that must run along the axis alike.
Status agree(const AxisMap& axes, const ir::Value* a, const ir::Value* b) {
  const auto ia = axes.find(a), ib = axes.find(b);
  const int64_t axis_a = ia == axes.end() ? kNoAxis : ia->second, axis_b = ib == axes.end() ? kNoAxis : ib->second;
  if (axis_a == axis_b) return {};
  return looks_along("a value of its body changes the axis that it runs along");
}

void hand_over(AxisMap& axes, const ir::Value* from, const ir::Value* to, int64_t shift = 0) {
  const auto it = from ? axes.find(from) : axes.end();
  if (to && it != axes.end()) {
    const int64_t axis = it->second + shift;
    axes[to] = axis;
  }
}

Status branches(Flow& f) {
  if (f.runs_along(0)) return looks_along("its condition runs along it");
  const ir::Node& node = f.node();
  for (const auto& branch : node.regions) TREADLE_TRY(carry_axis(*branch, f.axes()));
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    if (!node.outputs[i]) continue;
    TREADLE_TRY(agree(f.axes(), node.regions[0]->outputs[i], node.regions[1]->outputs[i]));
    hand_over(f.axes(), node.regions[0]->outputs[i], node.outputs[i]);
  }
  return {};
}

// The axis of what is stacked stands before or behind axis `at`, along which the loop puts its rows.
Status stacked(Flow& f, const ir::Value* row, const ir::Value* whole, int64_t at) {
  const auto it = f.axes().find(row);
  if (!whole || it == f.axes().end()) return {};
  const int64_t axis = it->second + (it->second >= at ? 1 : 0);
  f.axes()[whole] = axis;
  return {};
}

Status loop(Flow& f) {
  if (f.runs_along(0) || f.runs_along(1)) return looks_along("its trips depend on it");
  const ir::Node& node = f.node();
  const ir::Region& body = *node.regions[0];
  const size_t states = node.inputs.size() - 2;
  for (size_t i = 0; i < states; ++i) hand_over(f.axes(), node.inputs[i + 2], body.inputs[i + 2]);
  TREADLE_TRY(carry_axis(body, f.axes()));
  if (f.axes().contains(body.outputs[0])) return looks_along("its condition runs along it");
  for (size_t i = 0; i < states; ++i) {
    TREADLE_TRY(agree(f.axes(), body.inputs[i + 2], body.outputs[i + 1]));
    hand_over(f.axes(), body.outputs[i + 1], node.outputs[i]);
  }
  for (size_t i = states; i < node.outputs.size(); ++i) {
    TREADLE_TRY(stacked(f, body.outputs[i + 1], node.outputs[i], 0));
  }
  return {};
}

int64_t entry(std::span<const int64_t> list, size_t i) {
  return i < list.size() ? list[i] : 0;
}

Status scan(Flow& f) {
  if (f.version() < 9) return looks_along("it is of an old version");
  const ir::Node& node = f.node();
  const ir::Region& body = *node.regions[0];
  const auto scanned = static_cast<size_t>(node.attributes.get_int("num_scan_inputs"));
  const size_t states = node.inputs.size() - scanned;
  for (size_t i = 0; i < states; ++i) hand_over(f.axes(), node.inputs[i], body.inputs[i]);
  for (size_t i = 0; i < scanned; ++i) {
    if (!f.runs_along(states + i)) continue;
    int64_t along = entry(node.attributes.get_ints("scan_input_axes"), i);
    if (along < 0) along += f.rank(states + i);
    const int64_t axis = f.in(states + i);
    if (axis == along) return looks_along("it runs over it");
    f.axes()[body.inputs[states + i]] = axis - (axis > along ? 1 : 0);
  }
  TREADLE_TRY(carry_axis(body, f.axes()));
  for (size_t i = 0; i < states; ++i) {
    TREADLE_TRY(agree(f.axes(), body.inputs[i], body.outputs[i]));
    hand_over(f.axes(), body.outputs[i], node.outputs[i]);
  }
  for (size_t i = states; i < node.outputs.size(); ++i) {
    int64_t at = entry(node.attributes.get_ints("scan_output_axes"), i - states);
    if (at < 0 && node.outputs[i]) at += node.outputs[i]->type.rank();
    TREADLE_TRY(stacked(f, body.outputs[i], node.outputs[i], at));
  }
  return {};
}

// ---------------------------------------------------------------------------------------------------------------------

struct Row {
  std::string_view op;
  Rule rule;
};

constexpr Row kRules[] = {
    {"ArgMax", arg_reduce},
    {"ArgMin", arg_reduce},
    {"Attention", attention},
    {"AveragePool", pool},
    {"BatchNormalization", batch_normalization},
    {"Cast", same_axis_of_all},
    {"CastLike", cast_like},
    {"Clip", same_axis_of_all},
    {"Concat", concat},
    {"Conv", entries},
    {"ConvInteger", entries},
    {"ConvTranspose", entries},
    {"CumSum", cum_sum},
    {"DepthToSpace", entries},
    {"DequantizeLinear", quantize},
    {"Dropout", same_axis_of_all},
    {"DynamicQuantizeLinear", nullptr},  // one scale for all
    {"Expand", expand},
    {"Flatten", reshape},
    {"GRU", recurrence},
    {"Gather", gather},
    {"GatherElements", elements},
    {"Gemm", gemm},
    {"GlobalAveragePool", pool},
    {"GlobalLpPool", pool},
    {"GlobalMaxPool", pool},
    {"GroupNormalization", entries},
    {"Hardmax", softmax},
    {"Identity", same_axis_of_all},
    {"If", branches},
    {"InstanceNormalization", entries},
    {"LRN", lrn},
    {"LSTM", recurrence},
    {"LayerNormalization", layer_normalization},
    {"LogSoftmax", softmax},
    {"Loop", loop},
    {"LpNormalization", along_attribute_axis},
    {"LpPool", pool},
    {"MatMul", matmul},
    {"MatMulInteger", matmul},
    {"MaxPool", pool},
    {"MeanVarianceNormalization", mean_variance},
    {"MoveAxis", move_axis},
    {"OneHot", one_hot},
    {"PRelu", prelu},
    {"Pad", pad},
    {"QLinearConv", entries},
    {"QLinearMatMul", nullptr},
    {"QuantizeLinear", quantize},
    {"RMSNormalization", layer_normalization},
    {"RNN", recurrence},
    {"ReduceL1", reduce},
    {"ReduceL2", reduce},
    {"ReduceLogSum", reduce},
    {"ReduceLogSumExp", reduce},
    {"ReduceMax", reduce},
    {"ReduceMean", reduce},
    {"ReduceMin", reduce},
    {"ReduceProd", reduce},
    {"ReduceSum", reduce},
    {"ReduceSumSquare", reduce},
    {"Reshape", reshape},
    {"Scan", scan},
    {"ScatterElements", elements},
    {"Slice", slice},
    {"Softmax", softmax},
    {"SpaceToDepth", entries},
    {"Split", split},
    {"Squeeze", reshape},
    {"TopK", top_k},
    {"Transpose", transpose},
    {"Trilu", trilu},
    {"Unsqueeze", reshape},
};

Rule rule_of(const OpDef& op) {
  const bool ours = op.domain.empty() || (op.domain == "treadle" && op.name == "MoveAxis");
  if (!ours) return nullptr;
  if (op.batch == BatchRule::kElementwise && op.name != "Clip" && op.name != "PRelu") return broadcast;
  const auto* row = std::find_if(std::begin(kRules), std::end(kRules), [&](const Row& r) { return r.op == op.name; });
  return row == std::end(kRules) ? nullptr : row->rule;
}

bool captures_axis(const ir::Node& node, const AxisMap& axes) {
  for (const auto& body : node.regions) {
    for (const ir::Value* v : ir::captures(*body)) {
      if (axes.contains(v)) return true;
    }
  }
  return false;
}

}  // namespace

int64_t same_axis(const Shape& in, int64_t axis, const Shape& out) {
  const auto at = static_cast<size_t>(axis);
  const Dim before = product(in, 0, at), behind = product(in, at + 1, in.size());
  for (size_t i = 0; i < out.size(); ++i) {
    if (same(out[i], in[at]) && same(product(out, 0, i), before) && same(product(out, i + 1, out.size()), behind)) {
      return static_cast<int64_t>(i);
    }
  }
  return kNoAxis;
}

std::optional<std::vector<int64_t>> constant_ints(const ir::Node& node, size_t input) {
  if (input >= node.inputs.size() || !node.inputs[input] || !node.inputs[input]->is_constant()) return std::nullopt;
  const Tensor& t = node.inputs[input]->constant;
  if (t.type() != ElementType::kInt64 && t.type() != ElementType::kInt32) return std::nullopt;
  std::vector<int64_t> values;
  for (int64_t i = 0; i < t.element_count(); ++i) values.push_back(t.int64_at(i));
  return values;
}

std::optional<std::vector<int64_t>> constant_axes(const ir::Node& node, size_t input, const char* attribute) {
  if (node.attributes.has(attribute)) {
    const auto list = node.attributes.get_ints(attribute);
    return std::vector<int64_t>(list.begin(), list.end());
  }
  if (input >= node.inputs.size() || !node.inputs[input]) return std::vector<int64_t>();
  return constant_ints(node, input);
}

Status carry_axis(const ir::Node& node, AxisMap& axes) {
  Flow flow(node, axes);
  bool any = captures_axis(node, axes);
  for (size_t i = 0; i < flow.inputs(); ++i) any |= flow.runs_along(i);
  if (!any) return {};
  const Rule rule = rule_of(*node.op);
  if (!rule) return looks_along("nothing is known of how it treats an axis");
  TREADLE_TRY(need_types(flow));
  return rule(flow);
}

Status carry_axis(const ir::Region& region, AxisMap& axes) {
  for (const auto& node : region.nodes) {
    Status status = carry_axis(*node, axes);
    if (!status.ok()) return std::move(status).in(node->op->name + " '" + std::string(node->name) + "'");
  }
  return {};
}

}  // namespace treadle::opt
