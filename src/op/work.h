#pragma once
// Counts the work of a node. An operator states it in its record (OpDef::work) unless it is elementwise or a plain pass
// over its result. report/explain.h compares it with the machine's peak, and opt/ decides by it whether moving a node
// pays.

#include "kernels/elementwise_ops.h"
#include "op/elementwise.h"

namespace treadle {

struct Work {
  double flops = 0;       // of products: a multiplication and an addition count as two
  double operations = 0;  // per element of 32 bits: additions, comparisons, moves
  double functions = 0;   // the same for exp and other functions
  double one_by_one = 0;  // elements that depend on the one before; each takes as long as a dependent addition

  Work& operator+=(const Work& other);
  friend Work operator*(double times, const Work& work);
};

// The work of a node of known sizes. Zero if a size is unknown.
Work work_of(const ir::Node& node);
// The work of an operation on `elements` elements of a type.
Work work_of(kernels::Price price, ElementType type, double elements);
// The price of an elementwise node; nullopt if it is not a single operation.
std::optional<kernels::Price> price_of(const ir::Node& node);

// The latency of an elementwise node's result, in units of one dependent addition.
double latency_of(const ir::Node& node);

namespace work {

// The number of elements of a value; 0 for unknown sizes or null.
double elements_of(const ir::Value* v);
// The size of axis `from_the_end` (1: the last) of a value of known sizes; 1 if it has no such axis.
double size_of(const ir::Value* v, size_t from_the_end);

// --- for OpDef::work

// Each element of the result is a sum over the last axis of input `left`.
Work matrix_product(const ir::Node& node, size_t left);
template <size_t kLeft>
Work matrix_product(const ir::Node& node) {
  return matrix_product(node, kLeft);
}
// A convolution with filters in input `weights`: [filters, ...].
Work convolution(const ir::Node& node, size_t weights);
template <size_t kWeights>
Work convolution(const ir::Node& node) {
  return convolution(node, kWeights);
}
// Each element of input 0 is added up or compared, many at a time.
Work reduction(const ir::Node& node);
// Positions of the extremes of input 0: each element carries its number along.
Work positions(const ir::Node& node);
// Each element of input 0 depends on the ones before, which decide where it goes.
Work one_by_one(const ir::Node& node);
// Each element of input 0 is compared with the best so far; few are better.
Work search(const ir::Node& node);
// Each element of input 0 is the argument of a function.
Work functions_of_input(const ir::Node& node);
// `kFunctions` functions for each element of the result.
template <int kFunctions>
Work functions_of_result(const ir::Node& node) {
  return {.functions = kFunctions * elements_of(node.outputs[0])};
}

}  // namespace work

}  // namespace treadle
