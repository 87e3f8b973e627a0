// A node that treats each channel by itself is y = (x - mean) * scale + shift, with three numbers for each channel. The
// weights that make a channel are multiplied by its scale; the rest goes into the bias. The node is turned into the
// convolution or product, so that its result keeps its position and its name.
#include <algorithm>
#include <cmath>
#include <optional>
#include <unordered_map>
#include <unordered_set>

#include "base/in_pieces.h"
#include "op/axes.h"
#include "op/node.h"
#include "op/registry.h"
#include "ops/costs.h"
#include "opt/bytes.h"
#include "opt/match.h"
#include "opt/standard_form.h"
#include "opt/standard_nodes.h"
#include "opt/uses.h"

namespace treadle::opt {

namespace {

enum Input : size_t { kX, kWeights, kBias };

struct Channel {
  double mean = 0, scale = 1, shift = 0;
};
using Channels = std::vector<Channel>;

bool is_floats(const ir::Value* v) {
  return v && v->is_constant() && v->constant.type() == ElementType::kFloat;
}

double element(const ir::Value* v, int64_t i) {
  return static_cast<double>(v->constant.data<float>()[i]);
}

// Which channel of the result an element of the weights belongs to, and the number of channels.
class Weights {
 public:
  explicit Weights(const ir::Node& node) : op_(node.op->name), dims_(node.inputs[kWeights]->constant.dims()) {
    groups_ = node.attributes.get_int("group", 1);
  }
  bool is_usable() const {
    return dims_.size() >= 2 && channels() > 0 && elements() > 0 && (op_ != "MatMul" || dims_.size() == 2);
  }
  int64_t channels() const {
    if (op_ == "Conv") return dims_[0];
    return op_ == "ConvTranspose" ? dims_[1] * groups_ : dims_[1];
  }
  int64_t elements() const {
    int64_t count = 1;
    for (const int64_t d : dims_) count *= d;
    return count;
  }
  int64_t channel_of(int64_t element) const {
    if (op_ == "MatMul") return element % dims_[1];
    const int64_t each = elements() / dims_[0];  // elements in one row of the first axis
    if (op_ == "Conv") return element / each;
    const int64_t row = element / each, group = row / std::max<int64_t>(1, dims_[0] / groups_);
    return group * dims_[1] + element % each / (each / dims_[1]);
  }
  // Rank of the result.
  size_t rank() const { return dims_.size(); }

 private:
  std::string_view op_;
  Dims dims_;
  int64_t groups_;
};

std::optional<Channels> of_normalization(const ir::Node& norm, int64_t count) {
  if (norm.attributes.get_int("training_mode") != 0 || norm.attributes.get_int("spatial", 1) == 0) return {};
  if (std::any_of(norm.outputs.begin() + 1, norm.outputs.end(), [](const ir::Value* v) { return v; })) return {};
  for (size_t i = 1; i < norm.inputs.size(); ++i) {
    if (!is_floats(norm.inputs[i]) || norm.inputs[i]->constant.element_count() != count) return {};
  }
  const auto epsilon = static_cast<double>(norm.attributes.get_float("epsilon", 1e-5f));
  Channels channels;
  for (int64_t c = 0; c < count; ++c) {
    const double scale = element(norm.inputs[1], c) / std::sqrt(element(norm.inputs[4], c) + epsilon);
    channels.push_back({element(norm.inputs[3], c), scale, element(norm.inputs[2], c)});
  }
  return channels;
}

// Whether a constant has one element, or one for each channel of a result of that rank.
bool is_by_channel(const ir::Value* v, int64_t count, size_t rank) {
  if (!is_floats(v) || v->constant.rank() > static_cast<int64_t>(rank)) return false;
  const Dims& dims = v->constant.dims();
  for (size_t i = 0; i < dims.size(); ++i) {
    const bool is_channel = i + rank - dims.size() == 1;
    if (dims[i] != 1 && !(is_channel && dims[i] == count)) return false;
  }
  return true;
}

std::optional<Channels> of_arithmetic(const ir::Node& node, const ir::Value* other, int64_t count, size_t rank) {
  if (!is_by_channel(other, count, rank)) return {};
  Channels channels;
  for (int64_t c = 0; c < count; ++c) {
    const double number = element(other, other->constant.element_count() == 1 ? 0 : c);
    channels.push_back(is(node, "Add") ? Channel{0, 1, number} : Channel{0, number, 0});
  }
  return channels;
}

// The position of the last axis of a product after its Reshapes and Transposes; nullopt if it is no longer an axis.
std::optional<int64_t> axis_behind(const std::vector<const ir::Node*>& moves, int64_t axis) {
  for (const ir::Node* move : moves) {
    const Type &from = move->inputs[0]->type, &to = move->outputs[0]->type;
    if (!from.has_shape || !to.has_shape) return {};
    if (is(*move, "Reshape")) {
      axis = same_axis(from.shape, axis, to.shape);
    } else {
      const auto perm = move->attributes.get_ints("perm");
      const auto at = std::find(perm.begin(), perm.end(), axis);
      axis = perm.empty() ? from.rank() - 1 - axis : at - perm.begin();
    }
    if (axis == kNoAxis) return {};
  }
  return axis;
}

class Folder {
 public:
  explicit Folder(ir::Graph& graph) : graph_(graph), uses_(graph.top()) {}

  void run() {
    ir::for_each_node(graph_.top(), [&](ir::Node& node) {
      const bool is_norm = is(node, "BatchNormalization");
      for (size_t i = 0; i < (is_norm ? 1 : 2); ++i) {
        if ((is_norm || is(node, "Add") || is(node, "Mul")) && fold(node, i)) return;
      }
    });
    erase_nodes(graph_.top(), [&](const ir::Region&, const ir::Node& node) { return folded_.contains(&node); });
    ir::replace_uses(graph_, replaced_);
  }

 private:
  bool fold(ir::Node& node, size_t operand) {
    if (node.inputs.size() < 2) return false;
    if (is(node, "BatchNormalization") && fold_behind_moves(node)) return true;
    const ir::Node* base = sole_producer(node, node.inputs[operand], uses_, {"Conv", "ConvTranspose", "MatMul"});
    if (!base || !is_floats(base->inputs[kWeights])) return false;
    const Weights weights(*base);
    if (!weights.is_usable()) return false;
    const auto channels = is(node, "BatchNormalization")
                              ? of_normalization(node, weights.channels())
                              : of_arithmetic(node, node.inputs[1 - operand], weights.channels(), weights.rank());
    // A MatMul followed by a sum becomes a Gemm elsewhere (join_neighbours).
    if (!channels || (is(*base, "MatMul") && !is(node, "BatchNormalization"))) return false;
    if (!put(node, *base, weights, *channels)) return false;
    folded_.insert(base);
    return true;
  }

  // MatMul, Reshapes and Transposes, BatchNormalization: the MatMul becomes a Gemm, and the moves stay.
  bool fold_behind_moves(ir::Node& norm) {
    std::vector<const ir::Node*> moves;
    const ir::Node* last = &norm;
    while (const ir::Node* move = sole_producer(*last, last->inputs[0], uses_, {"Reshape", "Transpose"})) {
      moves.insert(moves.begin(), move);
      last = move;
    }
    ir::Node* const base = moves.empty() ? nullptr : sole_producer(*last, last->inputs[0], uses_, {"MatMul"});
    if (!base || !is_floats(base->inputs[kWeights]) || axis_behind(moves, 1) != 1) return false;
    const Weights weights(*base);
    const auto channels = weights.is_usable() ? of_normalization(norm, weights.channels()) : std::nullopt;
    if (!channels || !put(*base, *base, weights, *channels)) return false;
    replaced_[norm.outputs[0]] = norm.inputs[0];
    folded_.insert(&norm);
    return true;
  }

  // Turns `node` into `base` (which may be `node`) with the weights and bias of these channels.
  bool put(ir::Node& node, const ir::Node& base, const Weights& weights, const Channels& channels) {
    const bool is_product = is(base, "MatMul");
    if (is_product && !is_matrix(base.inputs[kX])) return false;  // a Gemm takes matrices only
    const ir::Value* bias = base.inputs.size() > kBias ? base.inputs[kBias] : nullptr;
    if (bias && (!is_floats(bias) || bias->constant.element_count() != weights.channels())) return false;
    const OpVersion* const version = is_product ? standard_version(graph_, "Gemm") : base.version;
    auto scaled = Tensor::allocate(ElementType::kFloat, base.inputs[kWeights]->constant.dims());
    auto shifted = Tensor::allocate(ElementType::kFloat, {weights.channels()});
    if (!version || !scaled.ok() || !shifted.ok()) return false;
    const bool goes_on = in_pieces(weights.elements(), costs::kScaledWeightNs, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const Channel& channel = channels[static_cast<size_t>(weights.channel_of(i))];
        scaled->mutable_data<float>()[i] = static_cast<float>(element(base.inputs[kWeights], i) * channel.scale);
      }
    });
    if (!goes_on) return false;
    for (int64_t c = 0; c < weights.channels(); ++c) {
      const auto& [mean, scale, shift] = channels[static_cast<size_t>(c)];
      const double before = bias ? element(bias, c) : 0.0;
      shifted->mutable_data<float>()[c] = static_cast<float>((before - mean) * scale + shift);
    }
    ir::Value* const w = graph_.new_constant(base.inputs[kWeights]->name, *scaled);
    ir::Value* const b = graph_.new_constant(std::string(base.inputs[kWeights]->name) + "_bias", *shifted);
    ir::Value* const x = base.inputs[kX];
    become(node, is_product ? require_op("Gemm") : *base.op, *version, is_product ? ir::Attributes() : base.attributes);
    if (!is_product) node.name = base.name;
    set_inputs(node, {x, w, b});
    node.outputs.resize(1);
    node.output_count = 1;
    return true;
  }

  ir::Graph& graph_;
  const Uses uses_;
  std::unordered_set<const ir::Node*> folded_;
  std::unordered_map<ir::Value*, ir::Value*> replaced_;
};

}  // namespace

void fold_channel_operations(ir::Graph& graph) {
  Folder(graph).run();
}

}  // namespace treadle::opt
