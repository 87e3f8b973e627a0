#pragma once
// Rewrites of a graph. Each is a function from graph to graph; ir::verify holds before and after. What they do to loops
// is written into the remarks, if there is one.

#include "infer/inference.h"
#include "ir/graph.h"
#include "opt/remarks.h"
#include "reference/folding.h"

namespace treadle::opt {

// Removes nodes whose outputs nobody uses. Outputs of bodies that nobody uses (scan outputs, results of branches)
// become null, in the body and in the node.
void remove_dead_nodes(ir::Graph& graph, Remarks* remarks = nullptr);

// Removes nodes whose output is their input: Identity, and others where sizes and types say so.
void remove_identities(ir::Graph& graph, Remarks* remarks = nullptr);

// A state that every trip hands on as it is goes: its initial value is read in its place. Wants types.
void drop_kept_states(ir::Graph& graph, Remarks* remarks = nullptr);

// CastLike becomes Cast. Wants types of elements; done once when a model is loaded.
void settle_casts(ir::Graph& graph, Remarks* remarks = nullptr);

// A state that is stacked of parts at the end of each trip and read apart becomes a state for each part. Wants types;
// results are the same bit for bit.
void unstack_states(ir::Graph& graph, Remarks* remarks = nullptr);

// What goes on from picked rows of a state and makes it longer does both at once. Done last: nothing else knows the
// node that does. Wants types; results are the same bit for bit.
void append_to_picked_rows(ir::Graph& graph, Remarks* remarks = nullptr);

// What is taken out of what was stacked before is what was put in. Wants types; results are the same bit for bit.
void take_stacked_parts(ir::Graph& graph, Remarks* remarks = nullptr);

// Nodes become the simpler ones that their operators know for them (OpDef::expand). Wants types; results are the same
// bit for bit, but where the operator's file says that more is rounded.
void expand_nodes(ir::Graph& graph, Remarks* remarks = nullptr);

// Products of a constant matrix and a vector read the matrix transposed; of one column by one row they are elementwise;
// Einsum in loops becomes products, elementwise or of matrices. Sums may be taken in another order.
void simplify_products(ir::Graph& graph, Remarks* remarks = nullptr);

// One of several nodes that compute the same from the same inputs is enough, whether the first stands in the same
// region or in one around it. Random nodes are left alone.
void merge_common_nodes(ir::Graph& graph, Remarks* remarks = nullptr);

// Moves nodes of loop bodies that depend on nothing inside the loop to before the loop. Nodes that can fail stay, and
// those whose sizes are not known.
void hoist_invariants(ir::Graph& graph, Remarks* remarks = nullptr);

// If whose branches are a few elementwise operations that cannot fail runs both, and Where picks the results.
void select_branches(ir::Graph& graph, Remarks* remarks = nullptr);

// Conv takes in what follows it where nobody else uses what lies between: a constant added per channel becomes its
// bias, a tensor of the result's sizes its addend, Relu and Clip with constant bounds its limits. Wants types; results
// are the same bit for bit, since every step stays as it is.
void fuse_convolutions(ir::Graph& graph, Remarks* remarks = nullptr);

// Convolutions, pools and what lies between them keep their channels last, [N, spatial..., C], where that costs less
// than turning what each of them reads and stores. Wants types; results are the same bit for bit.
void lay_channels_last(ir::Graph& graph, Remarks* remarks = nullptr);

// MatMul, Gemm and Conv of dequantised bytes and dequantised constant weights become products that read the bytes and
// sum in integers: exact where sums of floats round. Needs no types, so that it is done once when a model is loaded.
void sum_in_integers(ir::Graph& graph, Remarks* remarks = nullptr);

// Products that sum in integers take in the Cast, the scale, the bias and the QuantizeLinear that follow where nobody
// else uses what lies between. Wants types; results are the same bit for bit, since every step stays as it is.
void fuse_integer_products(ir::Graph& graph, Remarks* remarks = nullptr);

// Large constant bytes that are dequantised and moved about on their way to products as weights stay bytes, until
// read_byte_weights, when operators have become products, lets products read them as bytes. Those that no product can
// read become floats. The first needs no types; results are the same bit for bit. `limits` as of fold_constants.
void keep_byte_weights(ir::Graph& graph, Remarks* remarks = nullptr, const reference::FoldLimits& limits = {});
void read_byte_weights(ir::Graph& graph, Remarks* remarks = nullptr, const reference::FoldLimits& limits = {});

// Nodes that depend on constants alone become constants; those that only they used are given back. Needs no types, so
// that it is done once when a model is loaded. What would go beyond `limits` stays.
void fold_constants(ir::Graph& graph, Remarks* remarks = nullptr, const reference::FoldLimits& limits = {});

// BatchNormalization of a Conv with constant weights, neither used elsewhere, goes into the weights and the bias. This
// rounds differently. Needs no types, so that it is done once when a model is loaded.
void fold_batch_normalization(ir::Graph& graph, Remarks* remarks = nullptr);

// Transpose that only moves axes of one element becomes Reshape.
void reshape_transposes(ir::Graph& graph, Remarks* remarks = nullptr);

// Transpose of an operand of MatMul becomes the order in which the product reads it, where nothing else reads the
// transposed value.
void fuse_transposes(ir::Graph& graph, Remarks* remarks = nullptr);

// Softmax of a product, times a matrix, becomes one node where rows are many.
void fuse_attention(ir::Graph& graph, Remarks* remarks = nullptr);

// Loops that run a known number of trips and pick inputs by the trip counter, inside of their sizes, become Scans.
void scan_counted_loops(ir::Graph& graph, Remarks* remarks = nullptr);

// A Scan over one step of known sizes, with a body of nodes that cannot fail, is replaced by that body. Results are the
// same bit for bit.
void unroll_single_trips(ir::Graph& graph, Remarks* remarks = nullptr);

// Chains of one operation in a loop that gives the same bits however it is grouped (minima, integer sums, ...) are
// grouped so that what the trip before has made comes last, and what is the same in every trip runs before the loop.
// Without `compiles` only for the latter: the interpreter takes one operation after the other.
void reassociate(ir::Graph& graph, Remarks* remarks = nullptr, bool compiles = true);

// Scans that carry nothing from trip to trip become nodes that run for all trips at once.
void run_maps_at_once(ir::Graph& graph, Remarks* remarks = nullptr);

// Products with weights and convolutions that depend on the scan inputs of a Scan alone run before it, for all its
// steps at once.
void batch_products(ir::Graph& graph, Remarks* remarks = nullptr);
// For loops that will be native code: products that it writes out stay in them.
void batch_large_products(ir::Graph& graph, Remarks* remarks = nullptr);

// Scans over narrow states that are linear and elementwise become scans over time in blocks, with all else for all
// trips at once. Floats round differently.
void solve_recurrences(ir::Graph& graph, Remarks* remarks = nullptr);

// Products, reductions and functions of loop bodies that only scan outputs need run behind the loop, for all trips.
void sink_outputs(ir::Graph& graph, Remarks* remarks = nullptr);

// Products in loops with constant float weights, and those that recurrent operators make, keep these weights in float16
// (kHalfWeights) where none of them is too large for it. `mark_recurrent` comes before operators are lowered,
// `narrow_weights` behind it and before anything leaves a loop.
void mark_recurrent(ir::Graph& graph, Remarks* remarks = nullptr);
void narrow_weights(ir::Graph& graph, Remarks* remarks = nullptr);

}  // namespace treadle::opt
