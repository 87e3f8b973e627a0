#pragma once
// Rewrites of a graph. Each is a function from graph to graph; ir::verify holds before and after it. Changes to loops
// are written to the remarks, if these are given.

#include "infer/inference.h"
#include "ir/graph.h"
#include "opt/remarks.h"
#include "reference/folding.h"

namespace treadle::opt {

// Removes nodes whose outputs are unused. Unused outputs of bodies (scan outputs, results of branches) become null, in
// the body and in the node.
void remove_dead_nodes(ir::Graph& graph, Remarks* remarks = nullptr);

// Removes nodes whose output equals their input: Identity, and other nodes if sizes and types allow it.
void remove_identities(ir::Graph& graph, Remarks* remarks = nullptr);

// Removes states that every iteration passes on unchanged: the initial value is read instead. Needs types.
void drop_kept_states(ir::Graph& graph, Remarks* remarks = nullptr);

// CastLike becomes Cast. Needs element types; runs once, when a model is loaded.
void replace_cast_like(ir::Graph& graph, Remarks* remarks = nullptr);

// A state that is stacked of parts at the end of each iteration, and whose parts are read separately, becomes a state
// for each part. Needs types; results keep their bits.
void unstack_states(ir::Graph& graph, Remarks* remarks = nullptr);

// A node that picks rows of a state and a node that appends to them become one node. Runs last, because no other pass
// knows that node. Needs types; results keep their bits.
void append_to_picked_rows(ir::Graph& graph, Remarks* remarks = nullptr);

// A part that is taken out of a value stacked before becomes the value that was put in. Needs types; results keep their
// bits.
void take_stacked_parts(ir::Graph& graph, Remarks* remarks = nullptr);

// Replaces nodes by the simpler nodes that their operators define (OpDef::expand). Needs types. Results keep their
// bits, unless the operator's file says that more is rounded.
void expand_nodes(ir::Graph& graph, Remarks* remarks = nullptr);

// A product of a constant matrix and a vector reads the matrix transposed. A product of one column and one row becomes
// elementwise. An Einsum in a loop becomes products, elementwise or of matrices. Sums may be taken in another order.
void simplify_products(ir::Graph& graph, Remarks* remarks = nullptr);

// Keeps one of several nodes that compute the same from the same inputs, even if the first is in an outer region.
// Random nodes are left alone.
void merge_common_nodes(ir::Graph& graph, Remarks* remarks = nullptr);

// Moves nodes of loop bodies that depend on nothing inside the loop to before the loop. Nodes that can fail stay, and
// so do nodes of unknown sizes.
void hoist_invariants(ir::Graph& graph, Remarks* remarks = nullptr);

// An If whose branches are a few elementwise operations that cannot fail becomes both branches and a Where that picks
// the results.
void select_branches(ir::Graph& graph, Remarks* remarks = nullptr);

// Conv absorbs the nodes behind it if the values in between have no other reader: a constant added per channel becomes
// its bias, a tensor of the result's sizes its addend, Relu and Clip with constant bounds its limits. Needs types.
// Results keep their bits, since every step is still computed.
void fuse_convolutions(ir::Graph& graph, Remarks* remarks = nullptr);

// Convolutions, pools and the nodes between them keep their channels last, [N, spatial..., C], if that costs less than
// transposing their operands and results. Needs types; results keep their bits.
void lay_channels_last(ir::Graph& graph, Remarks* remarks = nullptr);

// MatMul, Gemm and Conv of dequantised bytes and dequantised constant weights become products that read the bytes and
// sum in integers: exact where float sums round. Needs no types, so it runs once, when a model is loaded.
void sum_in_integers(ir::Graph& graph, Remarks* remarks = nullptr);

// Products that sum in integers absorb the Cast, the scale, the bias and the QuantizeLinear behind them if the values
// in between have no other reader. Needs types. Results keep their bits, since every step is still computed.
void fuse_integer_products(ir::Graph& graph, Remarks* remarks = nullptr);

// Large constant bytes that are dequantised and moved before products read them as weights stay bytes
// (keep_byte_weights). Once operators have become products, products read them as bytes (read_byte_weights); bytes that
// no product can read become floats. keep_byte_weights needs no types. Results keep their bits. `limits`: as for
// fold_constants.
void keep_byte_weights(ir::Graph& graph, Remarks* remarks = nullptr, const reference::FoldLimits& limits = {});
void read_byte_weights(ir::Graph& graph, Remarks* remarks = nullptr, const reference::FoldLimits& limits = {});

// Nodes that depend on constants alone become constants; constants that only those nodes used are freed. Needs no
// types, so it runs once, when a model is loaded. A node that would exceed `limits` stays.
void fold_constants(ir::Graph& graph, Remarks* remarks = nullptr, const reference::FoldLimits& limits = {});

// The BatchNormalization of a Conv with constant weights is folded into the weights and the bias, if neither has
// another use. This rounds differently. Needs no types, so it runs once, when a model is loaded.
void fold_batch_normalization(ir::Graph& graph, Remarks* remarks = nullptr);

// A Transpose that only moves axes of one element becomes a Reshape.
void reshape_transposes(ir::Graph& graph, Remarks* remarks = nullptr);

// The Transpose of an operand of MatMul becomes the order in which the product reads the operand, if the transposed
// value has no other reader.
void fuse_transposes(ir::Graph& graph, Remarks* remarks = nullptr);

// The Softmax of a product, multiplied by a matrix, becomes one node if there are many rows.
void fuse_attention(ir::Graph& graph, Remarks* remarks = nullptr);

// Loops that run a known number of iterations, and that pick inputs by the iteration's number inside of their sizes,
// become Scans.
void scan_counted_loops(ir::Graph& graph, Remarks* remarks = nullptr);

// A Scan over one step of known sizes, with a body of nodes that cannot fail, is replaced by that body. Results keep
// their bits.
void unroll_single_iterations(ir::Graph& graph, Remarks* remarks = nullptr);

// Regroups chains of an operation that gives the same bits in any grouping (minima, integer sums, ...): the operand
// from the iteration before comes last, and operands that are the same in every iteration are combined before the loop.
// Without `compiles` only the latter, because the interpreter computes one operation after the other.
void reassociate(ir::Graph& graph, Remarks* remarks = nullptr, bool compiles = true);

// Scans that carry nothing from one iteration to the next become nodes that run for all iterations at once.
void run_maps_at_once(ir::Graph& graph, Remarks* remarks = nullptr);

// Products with weights, and convolutions, that depend on the scan inputs of a Scan alone run before the Scan, for all
// its iterations at once.
void batch_products(ir::Graph& graph, Remarks* remarks = nullptr);
// The same for loops that will be native code: products that native code inlines stay.
void batch_large_products(ir::Graph& graph, Remarks* remarks = nullptr);

// Scans over narrow states that are linear and elementwise become scans over time in blocks; all other nodes run for
// all iterations at once. Floats round differently.
void solve_recurrences(ir::Graph& graph, Remarks* remarks = nullptr);

// Products, reductions and functions of loop bodies that only scan outputs need run behind the loop, for all
// iterations.
void sink_outputs(ir::Graph& graph, Remarks* remarks = nullptr);

// Products in loops with constant float weights, and products that recurrent operators become, keep these weights in
// float16 (kHalfWeights) if no weight is too large for it. `mark_recurrent` runs before operators are lowered,
// `narrow_weights` after that and before any node leaves a loop.
void mark_recurrent(ir::Graph& graph, Remarks* remarks = nullptr);
void narrow_weights(ir::Graph& graph, Remarks* remarks = nullptr);

}  // namespace treadle::opt
