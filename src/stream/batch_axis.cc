#include "stream/batch_axis.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_set>

#include "infer/inference.h"
#include "op/op_def.h"

namespace treadle::stream {

namespace {

bool is_batch(const Dim& d) {
  return depends_on(d, kBatchSymbol);
}

class BatchWalk {
 public:
  explicit BatchWalk(ir::Graph& graph) : graph_(graph) {}

  Result<BatchAxes> run() {
    BatchAxes found;
    for (ir::Value* v : graph_.top().inputs) {
      for (size_t i = 0; i < v->type.shape.size(); ++i) {
        Dim& size = v->type.shape[i];
        if (size.is_unknown()) size = Dim::symbol(v->name + "." + std::to_string(i));
      }
      TREADLE_ASSIGN(const int64_t axis, batch_of(*v));
      if (axis != kNoAxis) axes_[v] = axis;
      found.inputs.push_back(axis);
    }
    TREADLE_TRY(inference_.infer(graph_.top()));
    for (const auto& node : graph_.top().nodes) {
      Status status = visit(*node);
      if (!status.ok()) {
        return error(Code::kInvalidArgument, "{} '{}' mixes the entries of a batch: {}", node->op->name,
                     std::string_view(node->name), status.message());
      }
    }
    for (const ir::Value* v : graph_.top().outputs) {
      const auto it = axes_.find(v);
      if (it == axes_.end() && lengths_.contains(v)) {
        return error(Code::kInvalidArgument, "output '{}' follows from the size of the batch",
                     std::string_view(v->name));
      }
      found.outputs.push_back(it == axes_.end() ? kNoAxis : it->second);
    }
    return found;
  }

 private:
  // The axis whose size is the batch's. Error if a size only depends on the batch, or if several axes have it.
  static Result<int64_t> batch_of(const ir::Value& v) {
    int64_t axis = kNoAxis;
    for (size_t i = 0; i < v.type.shape.size(); ++i) {
      if (!is_batch(v.type.shape[i])) continue;
      if (axis != kNoAxis || v.type.shape[i].symbol_name() != kBatchSymbol) {
        return error(Code::kInvalidArgument, "'{}' is {}", std::string_view(v.name), to_string(v.type.shape));
      }
      axis = static_cast<int64_t>(i);
    }
    return axis;
  }

  Status visit(const ir::Node& node) {
    bool along = false, lengths = false;
    const auto add = [&](const ir::Value* v) {
      along |= axes_.contains(v);
      lengths |= lengths_.contains(v);
    };
    for (const ir::Value* v : node.inputs) add(v);
    for (const auto& body : node.regions) {
      for (const ir::Value* v : ir::captures(*body)) add(v);
    }
    const bool asks_size = node.op->over_time == TimeRule::kSize;
    if (along && asks_size) return take_length(node);
    if (along && lengths) TREADLE_TRY(check_lengths(node));
    if (along) TREADLE_TRY(carry_axis(node, axes_));
    for (const ir::Value* v : node.outputs) {
      if (v) TREADLE_TRY(check_output(node, *v, lengths && !along));
    }
    return {};
  }

  Status take_length(const ir::Node& node) {
    for (const ir::Value* v : node.outputs) {
      if (!is_free(*v)) lengths_.insert(v);
    }
    return {};
  }

  // Whether the contents, integers, certainly do not depend on the batch.
  bool is_free(const ir::Value& v) const {
    if (inference_.constant(&v)) return true;
    const Shape* symbols = inference_.symbols(&v);
    return symbols &&
           std::none_of(symbols->begin(), symbols->end(), [](const Dim& d) { return d.is_unknown() || is_batch(d); });
  }

  // A size may be the shape of a result, but the node must not compute with it.
  Status check_lengths(const ir::Node& node) const {
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      if (!lengths_.contains(node.inputs[i])) continue;
      const bool says_shape = i < 64 && (node.op->shape_inputs >> i & 1) != 0;
      if (!says_shape) return error(Code::kInvalidArgument, "it computes with the size of the batch");
    }
    for (const auto& body : node.regions) {
      for (const ir::Value* v : ir::captures(*body)) {
        if (lengths_.contains(v)) return error(Code::kInvalidArgument, "its body reads the size of the batch");
      }
    }
    return {};
  }

  // Types must agree with the rules. A value made for a whole batch has equal entries.
  Status check_output(const ir::Node& node, const ir::Value& v, bool of_lengths) {
    TREADLE_ASSIGN(const int64_t axis, batch_of(v));
    const auto it = axes_.find(&v);
    if (it != axes_.end()) {
      if (v.type.is_tensor() && (!v.type.has_shape || it->second == axis)) return {};
      return error(Code::kInvalidArgument, "it makes {}", v.type.to_string());
    }
    const bool fills = node.op->over_time == TimeRule::kFill || node.op->over_time == TimeRule::kExpand;
    if (axis != kNoAxis) {
      if (!fills) return error(Code::kInvalidArgument, "it makes {}", to_string(v.type.shape));
      axes_[&v] = axis;
    } else if (of_lengths && !is_free(v)) {
      lengths_.insert(&v);
    }
    return {};
  }

  ir::Graph& graph_;
  Inference inference_{{.fold = false, .keep_declared = false}};
  AxisMap axes_;
  std::unordered_set<const ir::Value*> lengths_;
};

}  // namespace

Result<BatchAxes> find_batch_axes(ir::Graph& graph) {
  return BatchWalk(graph).run();
}

}  // namespace treadle::stream
