#pragma once
// Rewrites for models that other programs read: operators of the standard alone, in the forms that tools look for.

#include "ir/graph.h"

namespace treadle::opt {

// BatchNormalization, and Add and Mul of a constant, that treat each channel by itself go into the constant weights and
// the bias of the Conv, ConvTranspose or MatMul before them, which nothing else reads. A MatMul becomes a Gemm. Wants
// types. This rounds differently.
void fold_channel_operations(ir::Graph& graph);

// Pad goes into Conv, Add into MatMul, which becomes Gemm, and Transpose into Gemm. Dropouts of an inference and Casts
// to and fro go. Wants types.
void join_neighbours(ir::Graph& graph);

// Weights that were kept as bytes become DequantizeLinear of them where that has one scale for each position along one
// axis, and else constant floats.
void dequantize_weights(ir::Graph& graph);

}  // namespace treadle::opt
