#pragma once
// Rewrites for models that other programs read: standard operators only, in the forms that tools look for.

#include "ir/graph.h"

namespace treadle::opt {

// Folds BatchNormalization, and Add and Mul of a constant, that treat each channel by itself into the constant weights
// and the bias of the Conv, ConvTranspose or MatMul before them, whose result must have no other reader. A MatMul
// becomes a Gemm. Needs types. Rounds differently.
void fold_channel_operations(ir::Graph& graph);

// Merges neighbouring nodes by the rules of a table: products and convolutions absorb the nodes around them, and the
// nodes of a norm, an activation or a computed size become that norm, activation or constant. Removes Dropouts of an
// inference, and Casts to another type and back. Needs types.
void join_neighbours(ir::Graph& graph);

// Removes Transposes that undo each other, with nodes between them that work in any order of axes. Needs types. Returns
// whether anything changed.
bool cancel_transposes(ir::Graph& graph);

// Weights that were kept as bytes become a DequantizeLinear of them if they have one scale for each position along one
// axis, otherwise constant floats.
void dequantize_weights(ir::Graph& graph);

}  // namespace treadle::opt
