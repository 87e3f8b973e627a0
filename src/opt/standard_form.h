#pragma once
// Rewrites for models that other programs read: operators of the standard alone, in the forms that tools look for.

#include "ir/graph.h"

namespace treadle::opt {

// BatchNormalization, and Add and Mul of a constant, that treat each channel by itself go into the constant weights and
// the bias of the Conv, ConvTranspose or MatMul before them, which nothing else reads. A MatMul becomes a Gemm. Wants
// types. This rounds differently.
void fold_channel_operations(ir::Graph& graph);

// Neighbours become one node by the rules of a table: products and convolutions take in what stands around them, and
// the nodes of a norm, an activation or a computed size become that norm, activation or constant. Dropouts of an
// inference and Casts to and fro go. Wants types.
void join_neighbours(ir::Graph& graph);

// Transposes that undo each other go, with nodes between them that work in any order of axes. Wants types. Says whether
// anything has changed.
bool settle_transposes(ir::Graph& graph);

// Weights that were kept as bytes become DequantizeLinear of them where that has one scale for each position along one
// axis, and else constant floats.
void dequantize_weights(ir::Graph& graph);

}  // namespace treadle::opt
