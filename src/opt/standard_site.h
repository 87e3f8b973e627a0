#pragma once
// The view of a rule of opt/standard_form.cc: the last node that the rule replaces. It stays in place, and keeps the
// name and type of its result.

#include <span>
#include <string_view>

#include "opt/standard_nodes.h"

namespace treadle::opt {

// Facts about the whole graph, as it was before the first rule ran.
struct Facts {
  explicit Facts(const ir::Region& top);

  Uses uses;
  ValueSet beside_conditions;  // values with a reader that is not a Where with them as condition
  // Attention behind a LayerNormalization: the inputs of its three products, and the value that it passes to the sum
  // behind it.
  ValueSet attention_inputs, attention_results;
};

class Site {
 public:
  Site(ir::Graph& graph, const Facts& facts, ir::Region& region, size_t at)
      : graph_(graph), facts_(facts), region_(region), at_(at) {}

  ir::Graph& graph() const { return graph_; }
  const Facts& facts() const { return facts_; }
  const Uses& uses() const { return facts_.uses; }
  ir::Node& node() const { return *region_.nodes[at_]; }
  size_t at() const { return at_; }
  // The node that makes input `i` for this node alone, in the same region, if it is one of these operators.
  ir::Node* sole_producer(size_t i, std::initializer_list<std::string_view> ops) const {
    return opt::sole_producer(node(), node().inputs[i], uses(), ops);
  }

  // The version of a standard operator that the model imports; null if there is none.
  const OpVersion* version_of(std::string_view op) const { return standard_version(graph_, op); }
  // The result of a new node in front of this one. Its name is this node's name with `part`.
  ir::Value* before(std::string_view op, std::initializer_list<ir::Value*> inputs, Type type, std::string_view part,
                    const ir::Attributes& attributes = {});
  ir::Value* constant(Tensor tensor, std::string_view part) const;
  // Turns the node into an `op` of these inputs.
  void put(std::string_view op, std::initializer_list<ir::Value*> inputs, const ir::Attributes& attributes = {});

 private:
  ir::Graph& graph_;
  const Facts& facts_;
  ir::Region& region_;
  size_t at_;
};

// Each rule returns whether it changed the node. Needs types. The comments name the rules that round differently.

// --- standard_products.cc

bool adds_to_product(Site& site);     // MatMul, Add: Gemm. With more axes than two, Reshapes stand around it
bool sums_with_product(Site& site);   // Gemm without C, Sum: Gemm
bool transposes_product(Site& site);  // Gemm without C, Transpose: Gemm of the operands the other way around
bool reads_transposed(Site& site);    // Transpose, Gemm: Gemm
bool pads_convolution(Site& site);    // Pad with zeros, Conv: Conv
bool pads_average(Site& site);        // Pad with zeros, AveragePool: AveragePool that counts them
bool multiplies_floats(Site& site);   // a product that sums in integers: DequantizeLinear and a product of floats

// --- standard_elements.cc

bool asks_before_cast(Site& site);  // Cast, Shape: Shape
bool casts_once(Site& site);        // Cast to a type that holds all values, Cast: Cast
bool divides_once(Site& site);      // 1 / x * y: y / x. Rounds once
bool clips_at_zero(Site& site);     // Relu, Clip: Clip
bool chooses_other(Site& site);     // Not, Where: Where
bool encodes_once(Site& site);      // two LabelEncoders: one

// --- standard_norms.cc, which round differently

bool is_layer_normalization(Site& site);  // ReduceMean, Sub, Pow, ReduceMean, Add, Sqrt, Div, Mul, Add
bool is_gelu(Site& site);                 // Div, Erf, Add, Mul, Mul
// Functions without a kernel in onnxruntime, which expands their bodies.
bool is_hard_swish(Site& site);  // HardSigmoid, Mul
bool is_mish(Site& site);        // Softplus, Tanh, Mul

// --- standard_moves.cc

bool states_sizes(Site& site);   // Reshape to sizes that are computed: Reshape to constants
bool reshapes_once(Site& site);  // Reshape, then Reshape, Squeeze or Unsqueeze: Reshape
bool moves_blocks(Site& site);   // Slices of every second row and column, Concat: SpaceToDepth
bool permutes_once(Site& site);  // two Transposes: one

}  // namespace treadle::opt
